"""The first guarded run of a version proves the guard on it before anything else."""

from __future__ import annotations

from collections.abc import Callable

from remuda.core import evidence
from remuda.core.errors import RefusedError
from remuda.dispatch import installation
from remuda.dispatch.capability import capability_of
from remuda.operations.guarding import CLAIM
from remuda.operations.preparation import plan_run
from remuda.operations.requests import RunRequest
from remuda.operations.world import World
from remuda.runtimes.base import Runtime

Say = Callable[[str], None]
"""Hears that something is going to take its time, and why."""


def due(world: World, request: RunRequest) -> Runtime | None:
    """The runtime whose guard nobody has looked at on the installed version, if the run needs that."""
    if capability_of(request.capability) is None or request.unproven:
        return None
    runtime = plan_run(world, request).runtime
    found = installation.find(runtime, world.environ, world.config)
    if found is None or runtime.built_in or runtime.guarding.by == "nothing":
        return None
    version = installation.known_version(runtime, found, world.folders.cache)
    known = version and CLAIM in evidence.latest(world.folders.evidence_file, runtime.name, version)
    return None if known else runtime


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
