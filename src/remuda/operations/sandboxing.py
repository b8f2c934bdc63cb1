"""Puts a sandbox around an agent's command, where one is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import remuda
from remuda.core.environment import allowed, without
from remuda.core.errors import RefusedError
from remuda.core.files import private_folder, write_new
from remuda.core.ids import ulid
from remuda.core.paths import folders
from remuda.core.processes import Command
from remuda.dispatch import gate, installation
from remuda.dispatch.agents import Agent
from remuda.operations.agentsecrets import scrubbed
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World
from remuda.runtimes.base import Invocation, Runtime, Turn
from remuda.sandbox.profile import Profile, UnresolvableError, resolve
from remuda.sessions import eventlog

if TYPE_CHECKING:
    from remuda.sandbox.mounts import Mount
    from remuda.sandbox.scene import Scene

_OUTSIDE = ("TMPDIR", "XDG_RUNTIME_DIR")
"""Variables that name folders of the machine outside."""

_RECORDS = (eventlog.NAME, eventlog.ASIDE)
"""What we write ourselves into the folder that stays with a session."""


def check(world: World, request: RunRequest, agent: Agent) -> Profile | None:
    """The profile that walls an agent in, if any; one that cannot be enforced here is refused."""
    profile = _profile(world, request, agent)
    if profile is not None:
        from remuda.sandbox.abilities import look
        from remuda.sandbox.engine import choose

        choose(profile, look(world.environ))
    return profile


def _profile(world: World, request: RunRequest, agent: Agent) -> Profile | None:
    """The profile that walls an agent in; None where none is wanted. The one without walls has to be
    confirmed."""
    name = request.sandbox or agent.sandbox
    profile = resolve(name, world.config.sandboxes) if name is not None else None
    if profile is None or profile.walls:
        return profile
    if objection := gate.danger(profile.name, request.unsafe_yes):
        raise RefusedError(objection.message, objection.hint)
    return None


def seconds(world: World, request: RunRequest, agent: Agent, asked: float) -> float:
    """How long a run may take: what is asked for, or less where its profile says so; 0 means any time."""
    profile = _profile(world, request, agent)
    own = profile.limits.timeout if profile else 0
    return min(asked, own) if asked and own else asked or own


def contained(
    world: World,
    request: RunRequest,
    plan: Plan,
    turn: Turn,
    invocation: Invocation,
    command: Command,
    *,
    terminal: bool = False,
    trusted: bool = False,
) -> Command:
    """The command inside its sandbox; one that cannot be enforced is refused. In a ``trusted`` folder the
    program need not ask whether it is."""
    profile = _profile(world, request, plan.agent)
    if profile is None:
        return command
    if why := plan.runtime.cell.objection(command.argv):
        raise UnresolvableError(why)
    from remuda.sandbox.abilities import look
    from remuda.sandbox.engine import choose
    from remuda.sandbox.network import PROXY_VARIABLES, outlets
    from remuda.sandbox.walls import Site, built

    able = look(world.environ)
    engine = choose(profile, able)
    env = _environment(world, profile, plan.runtime, command)
    if trusted:
        env |= plan.runtime.cell.trusting
    ways = outlets(profile, turn.endpoint, plan.runtime.cell.hosts, world.environ)
    if not ways.shared:
        env = {**without(env, PROXY_VARIABLES), **ways.env}
    if engine == "landlock":
        env["TMPDIR"] = str(private_folder(turn.scratch / "tmp"))
    site = Site(
        profile=profile,
        able=able,
        outlets=ways,
        mounts=_mounts(profile, _scene(world, plan, turn, invocation, command, env)),
        cwd=turn.cwd,
        scratch=turn.scratch,
        resident=world.folders.runtime if turn.guard else None,
        asked=folders(env).runtime if turn.guard else None,
        terminal=terminal,
    )
    place = write_new(turn.scratch / f"sandbox-{ulid()}.json", built(engine, site))
    launcher = Path(remuda.__file__).parent / "sandbox" / "launch.py"
    argv = (sys.executable, "-I", "-S", str(launcher), str(place), *command.argv)
    return msgspec.structs.replace(command, argv=argv, env=env)


def _environment(world: World, profile: Profile, runtime: Runtime, command: Command) -> dict[str, str]:
    """What the agent finds in its environment inside."""
    own = scrubbed(world, runtime, allowed(world.environ, profile.passes))
    passed = {**own, **command.env, **runtime.cell.env}
    return without(passed, (*_OUTSIDE, *profile.drops))


def _mounts(profile: Profile, scene: Scene) -> tuple[Mount, ...]:
    """What is mounted; where a place cannot be looked at, or made, there are no walls."""
    from remuda.sandbox.scene import mounts_of

    try:
        return mounts_of(profile, scene)
    except OSError as error:
        raise UnresolvableError(f"{error.filename} cannot be walled in: {error.strerror}") from None


def _scene(
    world: World, plan: Plan, turn: Turn, invocation: Invocation, command: Command, env: dict[str, str]
) -> Scene:
    """What is known of an agent's surroundings."""
    from remuda.sandbox.scene import Scene

    runtime = plan.runtime
    ours = (*(file.name for file in invocation.kept), *_RECORDS)
    found = installation.find(runtime, world.environ, world.config)
    others = (each for each in map(world.herd.get, world.herd) if each.name != runtime.name)
    return Scene(
        cwd=turn.cwd,
        home=Path(world.environ.get("HOME") or "/nonexistent"),
        environ=env,
        programs=(command.argv[0], *(found.program[:1] if found else ()), sys.executable),
        cell=runtime.cell,
        strangers=tuple(place for each in others for place in (*each.cell.state, *each.cell.reads)),
        folders=world.folders,
        lends=(Path(remuda.__file__).parents[1], *((turn.guard.hooks,) if turn.guard else ())),
        gives=(turn.scratch, *((turn.keep,) if invocation.keeps else ())),
        holds=tuple(turn.keep / name for name in ours) if invocation.keeps else (),
    )
