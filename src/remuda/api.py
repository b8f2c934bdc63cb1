"""The programming interface: the operations of the command line, typed, blocking or asynchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TypedDict, Unpack

from remuda.core.errors import RemudaError
from remuda.core.events import Event, Failure, Result, Usage
from remuda.dispatch.resolve import Resolution
from remuda.operations import agents, doctor, runtimes
from remuda.operations import run as running
from remuda.operations.world import open_world
from remuda.runtimes.base import Permission

__all__ = ["AsyncRemuda", "Event", "Failure", "Remuda", "RemudaError", "Result", "RunOptions", "Usage"]


class RunOptions(TypedDict, total=False):
    """What a run can be told besides its prompt; see ``remuda run --help``."""

    agent: str | None
    model: str | None
    capability: str | None
    worktree: Path | None
    branch_prefix: str | None
    unproven: bool
    permission: Permission
    system_prompt: str | None
    append_system_prompt: str | None
    session: str | None
    timeout: float | None
    idle_timeout: float | None
    env: Mapping[str, str]
    extra: tuple[str, ...]


class AsyncRemuda:
    """Remuda for asynchronous programs. ``environ`` and ``cwd`` default to the process's own."""

    def __init__(self, *, cwd: Path | str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._world = open_world(environ, None if cwd is None else Path(cwd))

    async def stream(self, prompt: str, **options: Unpack[RunOptions]) -> AsyncGenerator[Event]:
        """Run an agent and yield its events; the last one carries the result. Closing it ends the agent."""
        request = running.RunRequest(prompt=prompt, **options)
        async with aclosing(running.run(self._world, request, asyncio.Event())) as events:
            async for event in events:
                yield event

    async def run(self, prompt: str, **options: Unpack[RunOptions]) -> Result:
        """Run an agent to its end. How it ended, a failure too, is in the result."""
        result: Result | None = None
        async for event in self.stream(prompt, **options):
            result = event.result
        assert result is not None
        return result

    async def which(self, agent: str | None = None) -> Resolution:
        """The active agent and where that comes from."""
        return agents.which(self._world, agent, full=True)

    async def use(self, agent: str) -> Resolution:
        """Make an agent the sticky choice."""
        return agents.use(self._world, agent)

    async def agents(self) -> agents.Agents:
        """All agents with their state."""
        return agents.agents(self._world)

    async def runtimes(self) -> runtimes.Runtimes:
        """All runtimes: what is claimed and what is installed."""
        return await runtimes.runtimes(self._world)

    async def doctor(self) -> doctor.Diagnosis:
        """Examine the installation."""
        return await doctor.doctor(self._world)


class Remuda:
    """Remuda for ordinary, blocking programs."""

    def __init__(self, *, cwd: Path | str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._remuda = AsyncRemuda(cwd=cwd, environ=environ)

    def stream(self, prompt: str, **options: Unpack[RunOptions]) -> Generator[Event]:
        """Run an agent and yield its events; the last one carries the result. Closing it ends the agent."""
        return _iterate(self._remuda.stream(prompt, **options))

    def run(self, prompt: str, **options: Unpack[RunOptions]) -> Result:
        """Run an agent to its end. How it ended, a failure too, is in the result."""
        return asyncio.run(self._remuda.run(prompt, **options))

    def which(self, agent: str | None = None) -> Resolution:
        """The active agent and where that comes from."""
        return asyncio.run(self._remuda.which(agent))

    def use(self, agent: str) -> Resolution:
        """Make an agent the sticky choice."""
        return asyncio.run(self._remuda.use(agent))

    def agents(self) -> agents.Agents:
        """All agents with their state."""
        return asyncio.run(self._remuda.agents())

    def runtimes(self) -> runtimes.Runtimes:
        """All runtimes: what is claimed and what is installed."""
        return asyncio.run(self._remuda.runtimes())

    def doctor(self) -> doctor.Diagnosis:
        """Examine the installation."""
        return asyncio.run(self._remuda.doctor())


def _iterate(events: AsyncIterator[Event]) -> Generator[Event]:
    """An asynchronous stream as a blocking one. Its loop runs in a thread, so that deadlines hold while the
    consumer is busy."""
    passed: queue.Queue[Event | BaseException | None] = queue.Queue()
    loop = asyncio.new_event_loop()

    async def pump() -> None:
        try:
            async for event in events:
                passed.put(event)
            passed.put(None)
        except BaseException as error:  # handed to the consumer, whatever it is
            passed.put(error)

    task = loop.create_task(pump())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,), daemon=True)
    thread.start()
    try:
        while (item := passed.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
