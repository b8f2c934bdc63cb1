"""The environment of an agent's process."""

from __future__ import annotations

from collections.abc import Mapping

from remuda.core.environment import BASE, ENDPOINT, allowed, without
from remuda.dispatch.agents import Agent
from remuda.operations.agentsecrets import with_keys, with_secrets
from remuda.operations.world import World
from remuda.runtimes import registry
from remuda.runtimes.base import Runtime

_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}


def _nested_markers(runtime: Runtime) -> list[str]:
    """What a runtime itself, or any built-in one, leaves in the environment of its children and must not be
    taken over from there."""
    return [marker for each in (*registry.all_runtimes(), runtime) for marker in each.nested_markers]


def home_of(agent: Agent, runtime: Runtime) -> dict[str, str]:
    """The variables that give an agent its own home: the runtime's variable for that, or all that say where a
    user's files lie."""
    if agent.home is None:
        return {}
    if runtime.home_variable is not None:
        return {runtime.home_variable: str(agent.home)}
    return {"HOME": str(agent.home), **{name: str(agent.home / place) for name, place in _XDG.items()}}


def headless_environment(
    world: World, agent: Agent, runtime: Runtime, extra: Mapping[str, str]
) -> dict[str, str]:
    """For an agent that nobody watches: an allow-list, quiet, its own home, the keys of its own account, and
    no real key for a stand-in endpoint."""
    needs = (*BASE, *runtime.environment, *world.config.environment.pass_, ENDPOINT)
    given = {**world.environ, **allowed(extra, (ENDPOINT,))}
    environ = without(allowed(given, needs), runtime.nested_markers)
    environ = with_secrets(world, agent, runtime, environ)
    return {**runtime.quiet, **environ, **_identity(agent, runtime), **extra}


def interactive_environment(world: World, agent: Agent, runtime: Runtime) -> dict[str, str]:
    """For a person's own session: their environment, less the traces of the session they are in."""
    return {
        **runtime.quiet,
        **with_keys(world, agent, runtime, without(world.environ, _nested_markers(runtime))),
        **_identity(agent, runtime),
    }


def _identity(agent: Agent, runtime: Runtime) -> dict[str, str]:
    return {**home_of(agent, runtime), "REMUDA_AGENT_BINARY": agent.name}
