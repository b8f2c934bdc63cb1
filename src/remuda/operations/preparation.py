"""Prepares a run: decides who runs and in which session, chooses the prompt's channel, builds the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core import evidence, log
from remuda.core.errors import NotFoundError, NotInstalledError, UsageError
from remuda.core.files import private_folder, write_atomic
from remuda.core.ids import ulid, uuid4
from remuda.core.processes import Command
from remuda.dispatch import installation
from remuda.operations.agents import which
from remuda.operations.environment import ENDPOINT, headless_environment
from remuda.operations.guarding import bounded, way_of
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World
from remuda.prompts import delivery, selection
from remuda.runtimes.base import Invocation, Mode, Runtime, Turn
from remuda.sessions.job import Job, Limits

if TYPE_CHECKING:
    from remuda.sessions.store import Session


def plan_run(world: World, request: RunRequest) -> Plan:
    """Decide who runs. A resumed session keeps its agent, its folder and its own id."""
    cwd = (request.cwd or world.cwd).absolute()
    if not cwd.is_dir():
        raise NotFoundError(f"{cwd} is not a folder", "Choose an existing one with --cwd.")
    earlier = _earlier(world, request.session) if request.session else None
    wanted = request.agent or (earlier.agent if earlier else None)
    runtime = world.herd.get(which(msgspec.structs.replace(world, cwd=cwd), wanted).agent)
    if earlier is None:
        native = request.session or uuid4()
        return Plan(runtime, cwd, ulid(), native, resume=request.session is not None)
    if earlier.runtime != runtime.name or not earlier.runtime_session:
        raise UsageError(
            f"session {request.session} belongs to {earlier.runtime}, not to {runtime.name}",
            "Leave out --agent, or start a new session.",
        )
    folder = cwd if request.cwd else Path(earlier.cwd)
    return Plan(runtime, folder, earlier.id, earlier.runtime_session, resume=True)


def _earlier(world: World, session: str) -> Session | None:
    from remuda.sessions import store

    return store.find(world.folders.database, session)


def prepare(world: World, request: RunRequest, plan: Plan, scratch: Path) -> Job:
    """Find the program, choose the prompt's channel and build the command."""
    runtime = plan.runtime
    found = found_program(world, runtime)
    turn = bounded(world, request, plan, found, turn_of(world, request, plan, scratch))
    way = way_of(runtime, turn)
    invocation = way.command(turn)
    keep(turn, invocation)
    text = delivery.payload(runtime, invocation, request.prompt)
    channel = way.channel or runtime.channel(_mode(world, runtime, found, len(text.encode())))
    command = command_of(found, turn, invocation)
    return Job(
        session=plan.session,
        agent=runtime.name,
        command=delivery.deliver(command, channel, text, invocation.files, scratch),
        parser=way.parser(turn, text),
        leftover=scratch / runtime.leaves if runtime.leaves else None,
        limits=_limits(world, request, runtime),
    )


def found_program(world: World, runtime: Runtime) -> installation.Installation:
    """The runtime's program, which has to be there."""
    found = installation.find(runtime, world.environ, world.config)
    if found is None:
        raise NotInstalledError(
            f"{runtime.title} is not installed: {installation.absence(runtime, world.environ)}",
            f"Install it with '{runtime.install}', or choose another agent ('remuda agents').",
        )
    return found


def keep(turn: Turn, invocation: Invocation) -> None:
    """Put the files that stay with a session into its folder."""
    if invocation.keeps:
        private_folder(turn.keep)
        for file in invocation.kept:
            write_atomic(turn.keep / file.name, file.content.encode())


def command_of(found: installation.Installation, turn: Turn, invocation: Invocation) -> Command:
    """The command that carries out an invocation, its prompt still missing."""
    return Command(
        argv=(*invocation.launcher, *found.program, *invocation.arguments),
        env={**turn.environ, **invocation.env, "PWD": str(turn.cwd)},
        cwd=turn.cwd,
    )


def _mode(world: World, runtime: Runtime, found: installation.Installation, size: int) -> Mode:
    """The prompt's channel, with a warning when it is not the one that was asked for."""
    requested = selection.from_env(world.environ, world.config.prompt_delivery, log.warn)
    chosen = selection.select(runtime, requested, size, _withdrawn(world, runtime, found))
    for warning in chosen.warnings:
        log.warn(warning, agent=runtime.name)
    return chosen.mode


def _withdrawn(world: World, runtime: Runtime, found: installation.Installation) -> set[Mode]:
    """Channels that were seen to fail on exactly the installed version, as it was when that was seen."""
    version = installation.known_version(runtime, found, world.folders.cache)
    known = evidence.latest(world.folders.evidence_file, runtime.name, version)
    return {
        channel.mode
        for channel in runtime.channels
        if (item := known.get(f"channel.{channel.mode}")) and not item.holds
    }


def turn_of(world: World, request: RunRequest, plan: Plan, scratch: Path) -> Turn:
    """What the runtime is to do, before any bounds."""
    settings = world.config.runtimes.get(plan.runtime.name)
    environ = headless_environment(world, plan.runtime, request.env)
    return Turn(
        cwd=plan.cwd,
        scratch=scratch,
        keep=world.folders.data / "sessions" / plan.session,
        session=plan.runtime_session,
        resume=plan.resume,
        model=request.model or (settings and settings.model) or None,
        permission=request.permission,
        system_prompt=request.system_prompt,
        append_system_prompt=request.append_system_prompt,
        endpoint=environ.get(ENDPOINT) or None,
        environ=environ,
        extra=request.extra,
    )


def _limits(world: World, request: RunRequest, runtime: Runtime) -> Limits:
    config = world.config.run
    return Limits(
        timeout=config.timeout if request.timeout is None else request.timeout,
        idle=config.idle_timeout if request.idle_timeout is None else request.idle_timeout,
        patience=runtime.patience if config.retry_patience is None else config.retry_patience,
        patience_midway=config.retry_patience_midway,
    )
