"""Run an agent on a prompt: the one door that every prompt enters by."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING

import msgspec

from remuda.core import clock, log
from remuda.core.errors import NotInstalledError, RefusedError, StartError
from remuda.core.events import Event, Failure, Result
from remuda.core.processes import Process, started
from remuda.dispatch import installation
from remuda.operations import proving
from remuda.operations.preparation import plan_run, prepare
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World
from remuda.prompts import delivery
from remuda.runtimes.base import Runtime
from remuda.sessions.job import Job, envelope

if TYPE_CHECKING:
    import asyncio

    from remuda.sessions.store import Session

__all__ = ["Run", "RunRequest", "begin", "follow", "run"]


_UNEXPLAINED = frozenset({"start_failed", "protocol"})
"""Failures that an outdated program would give."""


class Live(msgspec.Struct, frozen=True):
    """A job and the process that carries it out."""

    job: Job
    process: Process


class Run(msgspec.Struct, frozen=True):
    """A run that has begun, or the failure that kept it from beginning."""

    plan: Plan
    state: Live | Failure


@contextmanager
def begin(world: World, request: RunRequest) -> Iterator[Run]:
    """Start the agent, before anything slow is imported; :func:`follow` tells what happens to it.

    Leaving the block ends the agent.
    """
    delivery.check_prompt(request.prompt)
    plan = plan_run(world, request)
    with ExitStack() as held:
        yield Run(plan, _start(world, request, plan, held))


def _start(world: World, request: RunRequest, plan: Plan, held: ExitStack) -> Live | Failure:
    try:
        scratch = held.enter_context(delivery.scratch_folder(world.folders.runtime / "scratch"))
        job = prepare(world, request, plan, scratch)
        return Live(job, held.enter_context(started(job.command)))
    except NotInstalledError as error:
        return Failure("not_installed", str(error))
    except RefusedError as error:
        return Failure("refused", str(error))
    except StartError as error:
        return Failure("start_failed", error.message)


async def follow(world: World, begun: Run, stop: asyncio.Event) -> AsyncGenerator[Event]:
    """The events of a run; the last one carries the result. Setting ``stop`` cancels it."""
    from remuda.sessions import headless, store

    plan = begun.plan
    if isinstance(begun.state, Failure):
        yield envelope(plan.session, plan.runtime.name, 1, result=Result.failed(begun.state))
        return
    store.begin(world.folders.database, _record(plan, begun.state.process.mark))
    result: Result | None = None
    events = headless.follow(begun.state.job, begun.state.process, stop)
    try:
        async for event in events:
            result = event.result and await _explained(world, plan.runtime, event.result)
            yield msgspec.structs.replace(event, result=result) if result else event
    finally:
        await events.aclose()
        failure = result.error if result else Failure("cancelled", "the run was broken off")
        native = result.runtime_session if result else None
        now = clock.rfc3339(clock.now())
        store.end(world.folders.database, plan.session, now, failure, "process", native)


async def _explained(world: World, runtime: Runtime, result: Result) -> Result:
    """Say so where a run failed that the installed version may be unfit for."""
    error = result.error
    if error is None or error.kind not in _UNEXPLAINED:
        return result
    found = installation.find(runtime, world.environ, world.config)
    if found is None:
        return result
    version = await installation.version(runtime, found, world.environ, world.folders.cache)
    reason = version.trouble.rpartition(": ")[2]
    if not reason or reason in error.message:
        return result
    failure = Failure(error.kind, f"{error.message} ({version.trouble})")
    return msgspec.structs.replace(result, error=failure)


def _record(plan: Plan, mark: str) -> Session:
    from remuda.core.identity import identity
    from remuda.sessions import store

    now = clock.rfc3339(clock.now())
    return store.Session(
        id=plan.session,
        agent=plan.runtime.name,
        runtime=plan.runtime.name,
        runtime_session=plan.runtime_session,
        cwd=str(plan.cwd),
        state="working",
        source="process",
        seen_at=now,
        started_at=now,
        holder=identity(os.getpid()),
        mark=mark,
    )


async def run(world: World, request: RunRequest, stop: asyncio.Event) -> AsyncGenerator[Event]:
    """Begin and follow in one, for programs that have an event loop already. A guard that nobody has seen at
    work is proven first."""
    if runtime := proving.due(world, request):
        await proving.prove(world, runtime, log.info)
    with begin(world, request) as begun:
        async with aclosing(follow(world, begun, stop)) as events:
            async for event in events:
                yield event
