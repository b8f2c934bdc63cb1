"""How agents stand: is the program there, is there a login, are they left alone for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from remuda.core import clock
from remuda.core.environment import ENDPOINT
from remuda.core.errors import ConfigError, RemudaError
from remuda.dispatch import installation
from remuda.dispatch.agents import Agent
from remuda.dispatch.policy import Standing
from remuda.operations.environment import headless_environment
from remuda.operations.world import World

if TYPE_CHECKING:
    from remuda.dispatch.cooldown import Cooldown


def program(world: World, agent: Agent) -> str | None:
    """Where an agent's program is; None where it is not, or cannot be used."""
    try:
        found = installation.find(world.herd.get(agent.runtime), world.environ, world.config)
    except ConfigError:
        return None
    return found.path if found else None


def cooldowns(world: World, agents: Iterable[Agent]) -> Mapping[str, Cooldown]:
    """Which of these are left alone for a while. Where nothing was ever shared, nobody is."""
    from remuda.dispatch.cooldown import current

    database = world.shared()
    try:
        return current(database, [agent.name for agent in agents])
    finally:
        database.close()


def standings(world: World, agents: Iterable[Agent], cooling: Mapping[str, Cooldown]) -> dict[str, Standing]:
    """How these stand, by name."""
    return {agent.name: standing(world, agent, cooling.get(agent.name)) for agent in agents}


def standing(world: World, agent: Agent, cooldown: Cooldown | None) -> Standing:
    """How one stands, whether it has a login apart."""
    if agent.disabled:
        return Standing(agent=agent, status="disabled", reason=f"agents.{agent.name}.disabled is set")
    try:
        runtime = world.herd.get(agent.runtime)
    except ConfigError as error:
        return Standing(agent=agent, status="unusable", reason=error.message)
    if installation.find(runtime, world.environ, world.config) is None:
        absence = installation.absence(runtime, world.environ)
        reason = f"{absence}; install it with: {runtime.install}"
        return Standing(agent=agent, status="not installed", reason=reason)
    if cooldown is not None:
        return Standing(
            agent=agent,
            status="cooling down",
            reason=f"{cooldown.kind} until {clock.rfc3339(cooldown.until)}: {cooldown.reason}",
            until=cooldown.until,
            kind=cooldown.kind,
        )
    return Standing(agent=agent)


def logged_in(world: World, seen: Standing) -> Standing:
    """The same, with what can be told about a login without reading one: an agent whose keys cannot be read
    passes no gate. A model that stands in for the real one needs none."""
    if seen.status != "callable" or world.environ.get(ENDPOINT):
        return seen
    runtime = world.herd.get(seen.agent.runtime)
    try:
        environ = headless_environment(world, seen.agent, runtime, {})
    except RemudaError as error:
        return msgspec.structs.replace(seen, status="unusable", reason=error.message)
    if runtime.logins is None or runtime.logins.seen(environ, runtime.home_variable):
        return seen
    reason = f"no login was found; {runtime.binary} itself knows better"
    return msgspec.structs.replace(seen, status="not logged in", reason=reason)
