"""Durable tasks, for programs: looked at, waited for, followed and cancelled, blocking or asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing

from remuda.api.blocking import iterate
from remuda.core.events import Event
from remuda.dispatch.tasks.model import TaskState
from remuda.operations.requests import RunRequest
from remuda.operations.task import cancelling, following, looking, submitting
from remuda.operations.task.requests import (
    ListRequest,
    SubmitRequest,
    Submitted,
    Tasks,
    TaskShown,
    Waited,
    WaitRequest,
)
from remuda.operations.world import World

__all__ = ["AsyncTasks", "BlockingTasks", "Submitted", "TaskShown", "TaskState", "Tasks", "Waited"]


class AsyncTasks:
    """The part of the interface that is about tasks."""

    _world: World

    async def _submit(
        self, run: RunRequest, key: str | None, priority: int, expires_in: float | None
    ) -> Submitted:
        request = SubmitRequest(run=run, key=key, priority=priority, expires_in=expires_in)
        return await asyncio.to_thread(submitting.submit, self._world, request)

    async def task(self, id_: str) -> TaskShown:
        """All that is known of a task; the beginning of its id is enough."""
        return await asyncio.to_thread(looking.get, self._world, id_)

    async def tasks(
        self,
        *,
        states: tuple[TaskState, ...] = (),
        agent: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Tasks:
        """Tasks, the newest first; ``before`` goes on where an earlier list ended."""
        request = ListRequest(states=states, agent=agent, limit=limit, before=before)
        return await asyncio.to_thread(looking.listed, self._world, request)

    async def wait(self, *ids: str, first: bool = False, timeout: float | None = None) -> Waited:
        """Wait until all of these tasks have ended, or the ``first`` of them, or the time is up. How they
        ended, a failure too, is in the answer."""
        return await following.wait(self._world, WaitRequest(ids=ids, first=first, timeout=timeout))

    async def watch(self, id_: str, since: int = 0) -> AsyncGenerator[Event]:
        """The events of a task behind a sequence number, as they come; the last one carries the result.
        Closing it changes nothing about the task."""
        async with aclosing(following.watch(self._world, id_, since)) as events:
            async for event in events:
                yield event

    async def cancel(self, id_: str) -> TaskShown:
        """Cancel a task; one that runs is ended by its worker, soon."""
        return await asyncio.to_thread(cancelling.cancel, self._world, id_)


class BlockingTasks:
    """The same, for ordinary programs."""

    _remuda: AsyncTasks

    def task(self, id_: str) -> TaskShown:
        """All that is known of a task; the beginning of its id is enough."""
        return asyncio.run(self._remuda.task(id_))

    def tasks(
        self,
        *,
        states: tuple[TaskState, ...] = (),
        agent: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Tasks:
        """Tasks, the newest first; ``before`` goes on where an earlier list ended."""
        return asyncio.run(self._remuda.tasks(states=states, agent=agent, limit=limit, before=before))

    def wait(self, *ids: str, first: bool = False, timeout: float | None = None) -> Waited:
        """Wait until all of these tasks have ended, or the ``first`` of them, or the time is up. How they
        ended, a failure too, is in the answer."""
        return asyncio.run(self._remuda.wait(*ids, first=first, timeout=timeout))

    def watch(self, id_: str, since: int = 0) -> Generator[Event]:
        """The events of a task behind a sequence number, as they come; the last one carries the result.
        Closing it changes nothing about the task."""
        return iterate(self._remuda.watch(id_, since))

    def cancel(self, id_: str) -> TaskShown:
        """Cancel a task; one that runs is ended by its worker, soon."""
        return asyncio.run(self._remuda.cancel(id_))
