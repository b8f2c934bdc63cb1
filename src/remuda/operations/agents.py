"""The agents that can be called, and which one is active."""

from __future__ import annotations

from collections import Counter

import msgspec

from remuda.core import clock
from remuda.core.errors import UsageError
from remuda.dispatch.agents import Agent as Named
from remuda.dispatch.policy import Standing, Status
from remuda.dispatch.resolve import Inputs, Resolution, remember, resolve
from remuda.dispatch.shell_twin import is_plain, shell_snippet
from remuda.operations.standing import cooldowns, logged_in, program, standing
from remuda.operations.world import World
from remuda.runtimes import registry


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and whether it can be called. A runtime that the configuration names no agent of is an agent
    of its own name. ``until`` is when a cooldown ends."""

    name: str
    runtime: str
    status: Status
    reason: str
    path: str | None
    active: bool
    tags: tuple[str, ...] = ()
    failover_to: tuple[str, ...] = ()
    sandbox: str | None = None
    home: str | None = None
    model: str | None = None
    until: str | None = None


class Agents(msgspec.Struct, frozen=True):
    """The answer of ``remuda agents``."""

    agents: list[Agent]


def which(world: World, explicit: str | None = None, *, full: bool = False) -> Resolution:
    """The agent, or the runtime, that a request without a name, or with this one, means."""
    inputs = Inputs(
        cwd=world.cwd,
        environ=world.environ,
        names=world.roster,
        installed=lambda: [agent.name for agent in _callable(world)],
        sticky=world.folders.sticky_file,
        config_agent=world.config.agent,
        explicit=explicit,
    )
    return resolve(inputs, full=full)


def chosen(world: World, explicit: str | None = None) -> str:
    """The name that something is dispatched to. The built-in default counts only if it can be called."""
    found = which(world, explicit)
    if found.source != "default" or any(
        found.agent in (each.name, each.runtime) for each in _callable(world)
    ):
        return found.agent
    counts = Counter(agent.runtime for agent in _callable(world))
    told = ", ".join(f"{name}×{number}" for name, number in sorted(counts.items()))
    raise UsageError(
        f"no agent is named, and several can be called: {told}"
        if told
        else "no agent is named, and none can be called",
        "Name one with --agent NAME, by REMUDA_AGENT_BINARY=NAME, with 'remuda use NAME', or by"
        " agent = \"NAME\" in config.toml. 'remuda agents' shows them all.",
    )


def use(world: World, name: str) -> Resolution:
    """Make an agent the sticky choice, and say which one is active now: a stronger source may still win."""
    chosen = which(world, name)
    remember(world.folders.sticky_file, chosen.agent)
    return which(world)


def snippet(world: World) -> str:
    """The resolver as a POSIX shell program. It looks for programs with plain names only."""
    binaries = {
        agent.name: binary
        for agent in _own(world)
        if not agent.disabled and is_plain(binary := world.herd.get(agent.runtime).binary)
    }
    return shell_snippet(sorted({*world.herd, *world.config.agents}), binaries, registry.DEFAULT)


def agents(world: World) -> Agents:
    """All agents with their state."""
    active, roster = which(world).agent, world.roster
    named = [roster.get(name) for name in roster]
    cooling = cooldowns(world, named)
    rows = (logged_in(world, standing(world, agent, cooling.get(agent.name))) for agent in named)
    return Agents([_row(world, each, _is_active(world, each.agent, active)) for each in rows])


def _is_active(world: World, agent: Named, active: str) -> bool:
    """An agent is active by its own name, or as the only one of a runtime that is."""
    return agent.name == active or world.roster.named(active) == (agent,)


def _row(world: World, seen: Standing, active: bool) -> Agent:
    agent = seen.agent
    return Agent(
        name=agent.name,
        runtime=agent.runtime,
        status=seen.status,
        reason=seen.reason,
        path=program(world, agent),
        active=active,
        tags=agent.tags,
        failover_to=agent.failover_to,
        sandbox=agent.sandbox,
        home=str(agent.home) if agent.home else None,
        model=agent.model,
        until=None if seen.until is None else clock.rfc3339(seen.until),
    )


def _own(world: World) -> list[Named]:
    """The agents of the configuration, and the runtimes without one there. What comes with Remuda does not
    count unless it is configured, nor do those of packages: finding them takes too long."""
    roster = world.roster
    configured = [roster.get(name) for name in world.config.agents]
    taken = {agent.runtime for agent in configured}
    plain = (each.name for each in world.herd.own() if not each.built_in and each.name not in taken)
    return [*configured, *(roster.get(name) for name in plain)]


def _callable(world: World) -> list[Named]:
    """The agents whose program is there."""
    return [agent for agent in _own(world) if not agent.disabled and program(world, agent) is not None]
