"""Run an agent on a prompt: the one door that every prompt enters by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core import clock, evidence, log
from remuda.core.children import Command
from remuda.core.errors import NotFoundError, NotInstalledError, UsageError
from remuda.core.events import Event, Failure, Result
from remuda.core.files import private_folder
from remuda.core.ids import ulid, uuid4
from remuda.dispatch import installation
from remuda.dispatch.capability import access_for
from remuda.operations.agents import which
from remuda.operations.environment import ENDPOINT, headless_environment
from remuda.operations.world import World
from remuda.prompts import delivery, selection
from remuda.runtimes import registry
from remuda.runtimes.base import Mode, Permission, Runtime, Turn
from remuda.sessions import headless

if TYPE_CHECKING:
    from remuda.sessions.store import Session


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for one agent. ``session`` continues an earlier session; a limit of 0 means none."""

    prompt: str
    agent: str | None = None
    model: str | None = None
    capability: str | None = None
    permission: Permission = "ask"
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    cwd: Path | None = None
    session: str | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    env: Mapping[str, str] = {}
    extra: tuple[str, ...] = ()


class _Plan(msgspec.Struct, frozen=True):
    """Who runs, where, and in which session."""

    runtime: Runtime
    cwd: Path
    session: str
    runtime_session: str
    resume: bool


async def run(world: World, request: RunRequest, stop: asyncio.Event | None = None) -> AsyncGenerator[Event]:
    """The events of the turn; the last one carries the result. Setting ``stop`` cancels it."""
    delivery.check_prompt(request.prompt)
    plan = _plan(world, request)
    with ExitStack() as held:
        try:
            job = await _prepare(world, request, plan, held)
        except NotInstalledError as error:
            yield _not_installed(plan, error)
            return
        result: Result | None = None
        events = headless.stream(job, stop or asyncio.Event(), started=lambda: _begin(world, plan))
        try:
            async for event in events:
                result = event.result
                yield event
        finally:
            await events.aclose()
            _end(world, plan, result)


def _plan(world: World, request: RunRequest) -> _Plan:
    """Decide who runs. A resumed session keeps its agent, its folder and its own id."""
    cwd = (request.cwd or world.cwd).absolute()
    if not cwd.is_dir():
        raise NotFoundError(f"{cwd} is not a folder", "Choose an existing one with --cwd.")
    earlier = _earlier(world, request.session) if request.session else None
    wanted = request.agent or (earlier.agent if earlier else None)
    runtime = registry.get(which(msgspec.structs.replace(world, cwd=cwd), wanted).agent)
    if earlier is None:
        native = request.session or uuid4()
        return _Plan(runtime, cwd, ulid(), native, resume=request.session is not None)
    if earlier.runtime != runtime.name or not earlier.runtime_session:
        raise UsageError(
            f"session {request.session} belongs to {earlier.runtime}, not to {runtime.name}",
            "Leave out --agent, or start a new session.",
        )
    folder = cwd if request.cwd else Path(earlier.cwd)
    return _Plan(runtime, folder, earlier.id, earlier.runtime_session, resume=True)


def _earlier(world: World, session: str) -> Session | None:
    from remuda.sessions import store

    return store.find(world.folders.database, session)


async def _prepare(world: World, request: RunRequest, plan: _Plan, held: ExitStack) -> headless.Job:
    """Find the program, choose the prompt's channel and build the command."""
    runtime = plan.runtime
    found = installation.find(runtime, world.environ, world.config)
    if found is None:
        raise NotInstalledError(
            f"{runtime.title} is not installed: {runtime.binary} is not on PATH",
            f"Install it with '{runtime.install}', or choose another agent ('remuda agents').",
        )
    scratch = held.enter_context(delivery.scratch_folder(world.folders.runtime / "scratch"))
    turn = _turn(world, request, plan, scratch)
    invocation = runtime.print_command(turn)
    if invocation.keeps:
        private_folder(turn.keep)
    text = delivery.payload(runtime, invocation, request.prompt)
    requested = selection.from_env(world.environ, world.config.prompt_delivery, log.warn)
    withdrawn = await _withdrawn(world, runtime, found)
    chosen = selection.select(runtime, requested, len(text.encode()), withdrawn)
    for warning in chosen.warnings:
        log.warn(warning, agent=runtime.name)
    command = Command(
        argv=(*found.program, *invocation.arguments),
        env={**headless_environment(world, runtime, request.env), **invocation.env},
        cwd=plan.cwd,
    )
    return headless.Job(
        session=plan.session,
        agent=runtime.name,
        command=delivery.deliver(command, runtime.channel(chosen.mode), text, invocation.files, scratch),
        parser=runtime.parser(turn, text),
        leftover=scratch / runtime.leaves if runtime.leaves else None,
        limits=_limits(world, request),
    )


def _turn(world: World, request: RunRequest, plan: _Plan, scratch: Path) -> Turn:
    settings = world.config.runtimes.get(plan.runtime.name)
    return Turn(
        cwd=plan.cwd,
        scratch=scratch,
        keep=world.folders.data / "sessions" / plan.session,
        session=plan.runtime_session,
        resume=plan.resume,
        model=request.model or (settings and settings.model) or None,
        permission=request.permission,
        access=access_for(request.capability),
        system_prompt=request.system_prompt,
        append_system_prompt=request.append_system_prompt,
        endpoint=request.env.get(ENDPOINT) or world.environ.get(ENDPOINT) or None,
        extra=request.extra,
    )


async def _withdrawn(world: World, runtime: Runtime, found: installation.Installation) -> set[Mode]:
    """Channels that were seen to fail on exactly the installed version."""
    if not any(item.runtime == runtime.name for item in evidence.read(world.folders.evidence_file)):
        return set()
    version = await installation.version(runtime, found, world.environ, world.folders.cache)
    known = evidence.latest(world.folders.evidence_file, runtime.name, version)
    return {
        channel.mode
        for channel in runtime.channels
        if (item := known.get(f"channel.{channel.mode}")) and not item.holds
    }


def _limits(world: World, request: RunRequest) -> headless.Limits:
    config = world.config.run
    return headless.Limits(
        timeout=config.timeout if request.timeout is None else request.timeout,
        idle=config.idle_timeout if request.idle_timeout is None else request.idle_timeout,
        patience=config.retry_patience,
        patience_midway=config.retry_patience_midway,
    )


def _begin(world: World, plan: _Plan) -> None:
    from remuda.sessions import store

    now = clock.rfc3339(clock.now())
    name = plan.runtime.name
    record = store.Session(plan.session, name, name, plan.runtime_session, str(plan.cwd), "running", now)
    store.begin(world.folders.database, record)


def _end(world: World, plan: _Plan, result: Result | None) -> None:
    from remuda.sessions import store

    good = result is not None and result.error is None
    native = result.runtime_session if result else None
    now = clock.rfc3339(clock.now())
    store.end(world.folders.database, plan.session, "ended" if good else "failed", native, now)


def _not_installed(plan: _Plan, error: NotInstalledError) -> Event:
    result = Result(
        stop_reason="error",
        text="",
        usage=None,
        cost_usd=None,
        exit_code=None,
        error=Failure("not_installed", str(error)),
    )
    return headless.envelope(plan.session, plan.runtime.name, 1, result=result)
