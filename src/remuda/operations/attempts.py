"""One agent's attempt at a prompt: started when its turn has come, followed to its end, put on record."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING

import msgspec

from remuda.core import clock
from remuda.core.errors import NotInstalledError, RefusedError, RemudaError, StartError
from remuda.core.events import Event, Failure, Result
from remuda.core.ids import ulid
from remuda.core.processes import Process, started
from remuda.dispatch import installation
from remuda.dispatch.agents import Agent
from remuda.operations.agentsecrets import unquoted
from remuda.operations.cooling import note_end
from remuda.operations.gating import check_origin
from remuda.operations.preparation import prepare
from remuda.operations.requests import Announce, Plan, RunRequest
from remuda.operations.world import World
from remuda.prompts import delivery
from remuda.runtimes.base import Runtime
from remuda.sessions.job import Job, envelope

if TYPE_CHECKING:
    import asyncio

    from remuda.sessions.store import Session

_UNEXPLAINED = frozenset({"start_failed", "protocol"})
"""Failures that an outdated program would give."""


class Live(msgspec.Struct, frozen=True):
    """A job and the process that carries it out."""

    job: Job
    process: Process


class Attempt(msgspec.Struct, frozen=True):
    """An agent that was started, or the failure that kept it from starting. Closing ``held`` ends it."""

    plan: Plan
    state: Live | Failure
    held: ExitStack

    @property
    def answered(self) -> bool:
        """Whether its model has answered, though no event tells what."""
        return isinstance(self.state, Live) and self.state.job.parser.state.answered


def attempt(
    world: World,
    request: RunRequest,
    plan: Plan,
    *,
    others: bool,
    instead: bool = False,
    announce: Announce | None = None,
) -> Attempt:
    """Start an agent. With ``others`` to turn to, it is given less time to get over its own limits. One that
    is called ``instead`` of another and cannot do what was asked of that one has failed to start."""
    if announce is not None:
        announce(plan)
    with ExitStack() as held:
        try:
            state = _started(world, request, plan, held, others=others)
        except RemudaError as error:
            if not instead:
                raise
            state = Failure("start_failed", str(error))
        return Attempt(plan, state, held.pop_all())


def _started(
    world: World, request: RunRequest, plan: Plan, held: ExitStack, *, others: bool
) -> Live | Failure:
    try:
        check_origin(world, request, plan.agent)
        if request.unattended:
            from remuda.operations import trust

            trust.record(world, request, plan)
        scratch = held.enter_context(delivery.scratch_folder(world.folders.runtime / "scratch"))
        job = prepare(world, request, plan, scratch, others=others)
        return Live(job, held.enter_context(started(job.command)))
    except NotInstalledError as error:
        return Failure("not_installed", str(error))
    except RefusedError as error:
        return Failure("refused", str(error))
    except StartError as error:
        return Failure("start_failed", str(error))


def is_limited(world: World, agent: Agent) -> bool:
    """Whether an agent has to wait for its turn."""
    given = agent.limits or world.config.dispatch.limits
    return bool(given.rate or given.max_concurrent)


async def turn(
    world: World, request: RunRequest, plan: Plan, held: AsyncExitStack, stop: asyncio.Event, *, others: bool
) -> Attempt | None:
    """Wait until it is an agent's turn, which ``held`` keeps; the attempt that has failed where it did not
    come. Where others can be turned to, nobody is waited for."""
    failure = await _waited(world, request, plan, held, stop, others=others)
    return None if failure is None else Attempt(plan, failure, ExitStack())


async def _waited(
    world: World, request: RunRequest, plan: Plan, held: AsyncExitStack, stop: asyncio.Event, *, others: bool
) -> Failure | None:
    """Wait for an agent's turn; why it did not come."""
    if not is_limited(world, plan.agent):
        return None
    import asyncio

    from remuda.dispatch.limits import LimitedError, acquire_async, limits_of

    common = world.config.dispatch
    within = common.queue_within if request.queue_within is None else request.queue_within
    database = world.shared()
    held.callback(database.close)
    limits = limits_of(plan.agent.limits, common.limits)
    least = min(within, request.timeout or within)
    hurried, within = least < within and not others, 0.0 if others else least
    turn = acquire_async(database, plan.agent.name, limits, holder=ulid(), within=within)
    entering = asyncio.ensure_future(held.enter_async_context(turn))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({entering, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not entering.done():
            return Failure("cancelled", "interrupted")
        entering.result()
    except LimitedError as error:
        if hurried:
            return Failure("timeout", f"{error.message}; a run has only so much time (--timeout)")
        return Failure(error.kind, str(error))
    finally:
        stopping.cancel()
        entering.cancel()
        await asyncio.wait({entering})
    return None


async def events(world: World, tries: Attempt, stop: asyncio.Event) -> AsyncGenerator[Event]:
    """The events of one attempt; the last one carries its result. Setting ``stop`` cancels it."""
    from remuda.sessions import headless, store

    plan = tries.plan
    if isinstance(tries.state, Failure):
        yield envelope(plan.session, plan.agent.name, 1, result=Result.failed(tries.state))
        return
    store.begin(world.folders.database, _record(plan, tries.state.process.mark))
    result: Result | None = None

    def named(native: str) -> None:
        if native != plan.runtime_session:
            store.name(world.folders.database, plan.session, native)

    followed = headless.follow(tries.state.job, tries.state.process, stop, named)
    try:
        async for event in followed:
            result = event.result and await _explained(world, plan.runtime, _told(tries.state, event.result))
            if result is not None and result.error is not None:
                await note_end(world, plan.agent, result.error)
            yield msgspec.structs.replace(event, result=result) if result else event
    finally:
        await followed.aclose()
        failure = result.error if result else Failure("cancelled", "the run was broken off")
        native = result.runtime_session if result else None
        now = clock.rfc3339(clock.now())
        store.end(world.folders.database, plan.session, now, failure, "process", native)


def _told(live: Live, result: Result) -> Result:
    """The same, without the keys that a program may quote in its complaint."""
    error = result.error
    if error is None:
        return result
    failure = Failure(error.kind, unquoted(error.message, live.job.command.env))
    return msgspec.structs.replace(result, error=failure)


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
        agent=plan.agent.name,
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
