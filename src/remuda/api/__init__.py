"""The programming interface: the operations of the command line, typed, blocking or asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TypedDict, Unpack

from remuda.api import sessions
from remuda.api.blocking import iterate
from remuda.api.sessions import (
    READY,
    AsyncSession,
    ConnectionState,
    Receipt,
    Seen,
    Session,
    SessionOptions,
    Shown,
)
from remuda.api.tasks import AsyncTasks, BlockingTasks, Submitted, Tasks, TaskShown, Waited
from remuda.core.dispatchconfig import Policy
from remuda.core.errors import RemudaError
from remuda.core.events import Event, Failure, Question, Result, Tried, Usage, Work
from remuda.dispatch.resolve import Resolution
from remuda.operations import agents, doctor, runtimes
from remuda.operations import run as running
from remuda.operations import usage as using
from remuda.operations.session.requests import Wanted
from remuda.operations.session.starting import ResumeRequest
from remuda.operations.world import open_world
from remuda.runtimes.base import Permission
from remuda.runtimes.transcripts import TranscriptSummary
from remuda.usage.report import By, Report

__all__ = [
    "AsyncRemuda",
    "AsyncSession",
    "ConnectionState",
    "Event",
    "Failure",
    "Question",
    "Receipt",
    "Remuda",
    "RemudaError",
    "Report",
    "Result",
    "RunOptions",
    "Seen",
    "Session",
    "SessionOptions",
    "Shown",
    "Submitted",
    "TaskShown",
    "Tasks",
    "TranscriptSummary",
    "Tried",
    "Usage",
    "UsageOptions",
    "Waited",
    "Work",
]


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
    tag: str | None
    policy: Policy | None
    resume_elsewhere: bool
    sandbox: str | None
    unsafe_yes: bool
    isolated: bool
    unattended: bool
    nested: bool
    queue_within: float | None


class UsageOptions(TypedDict, total=False):
    """What to add up, and over which time; see ``remuda usage --help``."""

    by: By
    since: str | None
    until: str | None
    runtime: str | None
    session: str | None
    refresh: bool


class AsyncRemuda(AsyncTasks):
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

    async def submit(
        self,
        prompt: str,
        *,
        key: str | None = None,
        priority: int = 0,
        expires_in: float | None = None,
        **options: Unpack[RunOptions],
    ) -> Submitted:
        """Hand a run in as a task, which outlives this program; the same key again gives the same task."""
        return await self._submit(running.RunRequest(prompt=prompt, **options), key, priority, expires_in)

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

    async def usage(self, **options: Unpack[UsageOptions]) -> Report:
        """Tokens and cost over all transcripts on this machine."""
        request = using.UsageRequest(**options)
        return await asyncio.to_thread(using.usage, self._world, request)

    async def parse_transcript(self, runtime: str, path: Path | str) -> TranscriptSummary | None:
        """What one transcript of a runtime comes to; None if it is not there or cannot be read."""
        return await asyncio.to_thread(using.parse_transcript, runtime, Path(path))

    async def start_session(
        self,
        name: str,
        *,
        mode: Wanted = "auto",
        prompt: str | None = None,
        consent: tuple[str, ...] = (),
        wait: float = READY,
        **options: Unpack[SessionOptions],
    ) -> AsyncSession:
        """Start a session and wait until it takes prompts, or shows a dialog that only a person may answer; a
        first prompt is sent as soon as it is ready."""
        return await sessions.begin(self._world, name, mode, prompt, consent, wait, options)

    async def resume_session(
        self,
        name: str,
        *,
        consent: tuple[str, ...] = (),
        wait: float = READY,
        env: Mapping[str, str] | None = None,
    ) -> AsyncSession:
        """Take up a session that has ended, with what it was started with; variables are given anew."""
        request = ResumeRequest(name=name, wait=wait, consent=consent, env=env or {})
        return await sessions.take_up(self._world, request)

    async def session(self, name: str) -> AsyncSession:
        """The session of this name or id, the one that runs before those that have ended."""
        return sessions.known(self._world, name)

    async def sessions(self, all_: bool = False) -> list[Seen]:
        """The sessions that run, or all, with their true state; the newest first."""
        return sessions.listed(self._world, all_)


class Remuda(BlockingTasks):
    """Remuda for ordinary, blocking programs."""

    _remuda: AsyncRemuda

    def __init__(self, *, cwd: Path | str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._remuda = AsyncRemuda(cwd=cwd, environ=environ)

    def stream(self, prompt: str, **options: Unpack[RunOptions]) -> Generator[Event]:
        """Run an agent and yield its events; the last one carries the result. Closing it ends the agent."""
        return iterate(self._remuda.stream(prompt, **options))

    def run(self, prompt: str, **options: Unpack[RunOptions]) -> Result:
        """Run an agent to its end. How it ended, a failure too, is in the result."""
        return asyncio.run(self._remuda.run(prompt, **options))

    def submit(
        self,
        prompt: str,
        *,
        key: str | None = None,
        priority: int = 0,
        expires_in: float | None = None,
        **options: Unpack[RunOptions],
    ) -> Submitted:
        """Hand a run in as a task, which outlives this program; the same key again gives the same task."""
        submitted = self._remuda.submit(prompt, key=key, priority=priority, expires_in=expires_in, **options)
        return asyncio.run(submitted)

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

    def usage(self, **options: Unpack[UsageOptions]) -> Report:
        """Tokens and cost over all transcripts on this machine."""
        return asyncio.run(self._remuda.usage(**options))

    def parse_transcript(self, runtime: str, path: Path | str) -> TranscriptSummary | None:
        """What one transcript of a runtime comes to; None if it is not there or cannot be read."""
        return asyncio.run(self._remuda.parse_transcript(runtime, path))

    def start_session(
        self,
        name: str,
        *,
        mode: Wanted = "auto",
        prompt: str | None = None,
        consent: tuple[str, ...] = (),
        wait: float = READY,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """Start a session and wait until it takes prompts, or shows a dialog that only a person may answer; a
        first prompt is sent as soon as it is ready."""
        begun = self._remuda.start_session(
            name, mode=mode, prompt=prompt, consent=consent, wait=wait, **options
        )
        return Session(asyncio.run(begun))

    def resume_session(
        self,
        name: str,
        *,
        consent: tuple[str, ...] = (),
        wait: float = READY,
        env: Mapping[str, str] | None = None,
    ) -> Session:
        """Take up a session that has ended, with what it was started with; variables are given anew."""
        begun = self._remuda.resume_session(name, consent=consent, wait=wait, env=env)
        return Session(asyncio.run(begun))

    def session(self, name: str) -> Session:
        """The session of this name or id, the one that runs before those that have ended."""
        return Session(asyncio.run(self._remuda.session(name)))

    def sessions(self, all_: bool = False) -> list[Seen]:
        """The sessions that run, or all, with their true state; the newest first."""
        return asyncio.run(self._remuda.sessions(all_))
