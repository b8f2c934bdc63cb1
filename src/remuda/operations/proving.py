"""The first guarded run of a version proves the guard on it before anything else."""

from __future__ import annotations

from collections.abc import Callable

from remuda.core import evidence
from remuda.core.errors import RefusedError
from remuda.dispatch import installation
from remuda.dispatch.agents import Agent
from remuda.dispatch.capability import capability_of
from remuda.operations.gating import pass_gate
from remuda.operations.guarding import CLAIM
from remuda.operations.requests import RunRequest
from remuda.operations.routing import possible
from remuda.operations.world import World
from remuda.runtimes.base import Runtime

Say = Callable[[str], None]
"""Hears that something is going to take its time, and why."""


def due(world: World, request: RunRequest) -> tuple[Runtime, ...]:
    """The runtimes whose guard nobody has looked at on the installed version, of all that the run may come
    to, if it needs that."""
    if capability_of(request.capability) is None or request.unproven:
        return ()
    agents = possible(world, request)
    if not all(_passes(world, request, agent) for agent in agents):
        return ()
    names = dict.fromkeys(agent.runtime for agent in agents)
    return tuple(runtime for name in names if not _known(world, runtime := world.herd.get(name)))


def _passes(world: World, request: RunRequest, agent: Agent) -> bool:
    """Whether a request passes the gate; one that does not is refused later, and needs no proof."""
    try:
        pass_gate(world, request, agent)
    except RefusedError:
        return False
    return True


def _known(world: World, runtime: Runtime) -> bool:
    """Whether there is nothing to be looked at, or somebody has looked."""
    found = installation.find(runtime, world.environ, world.config)
    if found is None or runtime.built_in or runtime.guarding.by == "nothing":
        return True
    version = installation.known_version(runtime, found, world.folders.cache)
    return bool(version) and CLAIM in evidence.latest(world.folders.evidence_file, runtime.name, version)


async def prove(world: World, runtime: Runtime, say: Say) -> None:
    """Look whether the guard holds, and keep what was seen. Whether the run may start is decided by that."""
    from remuda.operations.verification.enclosure import EnclosureError
    from remuda.operations.verify import verify

    found = installation.find(runtime, world.environ, world.config)
    assert found is not None
    number = (await installation.version(runtime, found, world.environ, world.folders.cache)).number
    if CLAIM in evidence.latest(world.folders.evidence_file, runtime.name, number):
        return
    say(f"the guard was not yet seen at work on {runtime.title} {number}: proving it, which takes a moment")
    try:
        await verify(world, [runtime.name], lambda _name, _message: None, "run")
    except EnclosureError as error:
        raise RefusedError(
            f"the guard cannot be proven on {runtime.title} {number}: {error.message}",
            f"{error.hint} Or insist with --unproven.",
        ) from None
