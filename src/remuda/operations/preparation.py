"""Prepares a run: decides who runs and in which session, chooses the prompt's channel, builds the command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remuda.core import evidence, log
from remuda.core.environment import ENDPOINT, ORIGIN
from remuda.core.errors import NotInstalledError, StartError, UsageError
from remuda.core.files import private_folder, write_atomic
from remuda.core.ids import ulid, uuid4
from remuda.core.processes import Command
from remuda.dispatch import installation, origin
from remuda.dispatch.agents import Agent
from remuda.dispatch.policy import FAILS_OVER
from remuda.operations.environment import headless_environment
from remuda.operations.gating import check_origin, pass_gate
from remuda.operations.guarding import bounded, way_of
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.routing import earlier, folder_of, route
from remuda.operations.sandboxing import contained, seconds
from remuda.operations.world import World
from remuda.prompts import delivery, selection
from remuda.runtimes.base import Invocation, Mode, Runtime, Turn
from remuda.sessions.job import Job, Limits

if TYPE_CHECKING:
    from remuda.sessions.store import Session

_ELSEWHERE = 15.0
"""Seconds of patience in the middle of the work, where another agent could take it up."""


def plan_run(world: World, request: RunRequest) -> Plan:
    """Decide who runs, of those that may: the first on the route. Refused is what may not be."""
    agent = route(world, request).candidates[0]
    pass_gate(world, request, agent)
    check_origin(world, request, agent)
    return plan_for(world, request, agent)


def plan_for(world: World, request: RunRequest, agent: Agent) -> Plan:
    """The plan of an agent's run. A resumed session keeps its agent, its folder and its own id."""
    runtime, cwd = world.herd.get(agent.runtime), folder_of(world, request)
    before = earlier(world, request)
    if before is None:
        native = request.session or uuid4()
        return Plan(agent, runtime, cwd, ulid(), native, resume=request.session is not None)
    _check_owner(world, before, agent)
    if not before.runtime_session:
        raise UsageError(f"session {request.session} cannot be continued", "Start a new one.")
    folder = cwd if request.cwd else Path(before.cwd)
    return Plan(agent, runtime, folder, before.id, before.runtime_session, resume=True)


def _check_owner(world: World, before: Session, agent: Agent) -> None:
    """Nobody but the agent that has a session continues it, and not while it runs."""
    from remuda.sessions import store

    owner = before.agent if before.agent in world.config.agents else before.runtime
    if owner not in (agent.name, agent.runtime):
        raise UsageError(
            f"session {before.id} belongs to {owner}, not to {agent.name}",
            "Leave out --agent, or start a new session.",
        )
    store.ensure_over(before)


def prepare(world: World, request: RunRequest, plan: Plan, scratch: Path, *, others: bool = False) -> Job:
    """Find the program, choose the prompt's channel and build the command. With ``others`` to turn to, there
    is less patience with an agent at its limits."""
    runtime = plan.runtime
    found = found_program(world, runtime)
    turn = bounded(world, request, plan, found, turn_of(world, request, plan, scratch))
    way = way_of(runtime, turn)
    invocation = way.command(turn)
    keep(turn, invocation)
    text = delivery.payload(runtime, invocation, request.prompt)
    channel = way.channel or runtime.channel(_mode(world, runtime, found, len(text.encode())))
    command = contained(world, request, plan, turn, invocation, command_of(found, turn, invocation))
    return Job(
        session=plan.session,
        agent=plan.agent.name,
        command=delivery.deliver(command, channel, text, invocation.files, scratch),
        parser=way.parser(turn, text),
        leftover=scratch / runtime.leaves if runtime.leaves else None,
        limits=_limits(world, request, plan, others=others),
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
    environ = {
        **headless_environment(world, plan.agent, plan.runtime, request.env),
        ORIGIN: _chain(world, request, plan),
    }
    _make_home(plan.agent)
    return Turn(
        cwd=plan.cwd,
        scratch=scratch,
        keep=world.folders.data / "sessions" / plan.session,
        session=plan.runtime_session,
        resume=plan.resume,
        model=request.model or plan.agent.model or (settings and settings.model) or None,
        permission=request.permission,
        system_prompt=request.system_prompt,
        append_system_prompt=request.append_system_prompt,
        endpoint=environ.get(ENDPOINT) or None,
        environ=environ,
        extra=request.extra,
    )


def _make_home(agent: Agent) -> None:
    """Make sure of an agent's own home; without it the agent cannot start."""
    if agent.home is None:
        return
    try:
        private_folder(agent.home)
    except OSError as error:
        raise StartError(
            f"{agent.home} cannot be the home of {agent.name}: {error.strerror}",
            f"Name a folder in agents.{agent.name}.home.",
        ) from None


def _chain(world: World, request: RunRequest, plan: Plan) -> str:
    """Who calls whom, with the agent that is about to be started at the end."""
    above = origin.here(world.environ, request.origin)
    return origin.written((*above, origin.Link(plan.agent.name, plan.session)))


def _limits(world: World, request: RunRequest, plan: Plan, *, others: bool) -> Limits:
    config = world.config.run
    asked = config.timeout if request.timeout is None else request.timeout
    midway = config.retry_patience_midway
    return Limits(
        timeout=seconds(world, request, plan.agent, asked),
        idle=config.idle_timeout if request.idle_timeout is None else request.idle_timeout,
        patience=plan.runtime.patience if config.retry_patience is None else config.retry_patience,
        patience_midway=min(midway, _ELSEWHERE) if others and request.resume_elsewhere else midway,
        hasty=FAILS_OVER if others else frozenset(),
    )
