"""The environment of an agent's process."""

from __future__ import annotations

from collections.abc import Mapping

from remuda.core.environment import BASE, allowed, without
from remuda.operations.world import World
from remuda.runtimes import registry
from remuda.runtimes.base import Runtime

ENDPOINT = "REMUDA_ENDPOINT"
"""Points every agent at another model endpoint: a rehearsal, or a gateway."""

_SECRETS = ("*TOKEN*", "*KEY*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*")


def _nested_markers(runtime: Runtime) -> list[str]:
    """What a runtime itself, or any built-in one, leaves in the environment of its children and must not be
    taken over from there."""
    return [marker for each in (*registry.all_runtimes(), runtime) for marker in each.nested_markers]


def headless_environment(world: World, runtime: Runtime, extra: Mapping[str, str]) -> dict[str, str]:
    """For an agent that nobody watches: an allow-list, quiet, and no real key for a stand-in endpoint."""
    needs = (*BASE, *runtime.environment, *world.config.environment.pass_, ENDPOINT)
    environ = without(allowed(world.environ, needs), runtime.nested_markers)
    if world.environ.get(ENDPOINT):
        environ = without(environ, _SECRETS)
    return {**runtime.quiet, **environ, "REMUDA_AGENT_BINARY": runtime.name, **extra}


def interactive_environment(world: World, runtime: Runtime) -> dict[str, str]:
    """For a person's own session: their environment, less the traces of the session they are in."""
    return {
        **runtime.quiet,
        **without(world.environ, _nested_markers(runtime)),
        "REMUDA_AGENT_BINARY": runtime.name,
    }
