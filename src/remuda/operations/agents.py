"""The agents that can be called, and which one is active."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core.errors import ConfigError
from remuda.dispatch import installation
from remuda.dispatch.resolve import Inputs, Resolution, remember, resolve
from remuda.dispatch.shell_twin import is_plain, shell_snippet
from remuda.operations.world import World
from remuda.runtimes import registry


class Agent(msgspec.Struct, frozen=True):
    """An agent and whether it can be called. An installed runtime is an agent of its own name."""

    name: str
    runtime: str
    status: Literal["callable", "not installed", "unusable"]
    reason: str
    path: str | None
    active: bool


class Agents(msgspec.Struct, frozen=True):
    """The answer of ``remuda agents``."""

    agents: list[Agent]


def which(world: World, explicit: str | None = None, *, full: bool = False) -> Resolution:
    """The agent that a request without a name, or with this one, means."""
    inputs = Inputs(
        cwd=world.cwd,
        environ=world.environ,
        names=world.herd,
        installed=lambda: _installed(world),
        sticky=world.folders.sticky_file,
        config_agent=world.config.agent,
        explicit=explicit,
    )
    return resolve(inputs, full=full)


def use(world: World, name: str) -> Resolution:
    """Make an agent the sticky choice, and say which one is active now: a stronger source may still win."""
    chosen = which(world, name)
    remember(world.folders.sticky_file, chosen.agent)
    return which(world)


def snippet(world: World) -> str:
    """The resolver as a POSIX shell program. It looks for programs with plain names only."""
    binaries = {
        runtime.name: runtime.binary
        for runtime in world.herd.own()
        if not runtime.built_in and is_plain(runtime.binary)
    }
    return shell_snippet([*world.herd], binaries, registry.DEFAULT)


def agents(world: World) -> Agents:
    """All agents with their state."""
    active = which(world).agent
    return Agents([_agent(world, name, active) for name in world.herd])


def _agent(world: World, name: str, active: str) -> Agent:
    try:
        runtime = world.herd.get(name)
    except ConfigError as error:
        return Agent(name, name, "unusable", error.message, None, name == active)
    found = installation.find(runtime, world.environ, world.config)
    absence = "" if found else installation.absence(runtime, world.environ)
    return Agent(
        name=name,
        runtime=name,
        status="callable" if found else "not installed",
        reason=f"{absence}; install it with: {runtime.install}" if absence else "",
        path=found.path if found else None,
        active=name == active,
    )


def _installed(world: World) -> list[str]:
    """The agents whose program is there. Those of packages do not count: finding them takes too long."""
    return [
        runtime.name
        for runtime in world.herd.own()
        if not runtime.built_in and installation.find(runtime, world.environ, world.config)
    ]
