"""What Remuda knows about each runtime, and what is installed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from remuda.core import evidence
from remuda.dispatch import installation
from remuda.operations.world import World
from remuda.runtimes.base import Feature, Runtime


class ChannelReport(msgspec.Struct, frozen=True):
    """A prompt channel and the version it was proven on."""

    mode: str
    verified: str | None
    on_request: bool
    note: str


class RuntimeReport(msgspec.Struct, frozen=True):
    """One runtime: the claims, and the program found on this machine.

    ``evidence`` tells which claims held, and which did not, when ``doctor --verify`` tried this version here.
    ``guard`` is how a capability is held: by approval, by the removal of tools, or by nothing. ``trouble`` is
    why the program cannot be used as it is installed, if so.
    """

    name: str
    title: str
    installed: bool
    path: str | None
    version: str | None
    verified_version: str
    minimum_version: str
    stability: str
    install: str
    channels: list[ChannelReport]
    features: Mapping[str, Feature]
    guard: str
    instruction_file: str
    notes: tuple[str, ...]
    evidence: Mapping[str, bool] = {}
    trouble: str = ""


class Runtimes(msgspec.Struct, frozen=True):
    """The answer of ``remuda runtimes``; ``problems`` are those of runtimes that cannot be used."""

    runtimes: list[RuntimeReport]
    problems: list[str]


async def runtimes(world: World) -> Runtimes:
    """All runtimes; versions are asked for side by side."""
    herd = world.herd.survey()
    reports = await asyncio.gather(*(_report(world, runtime) for runtime in herd.runtimes))
    return Runtimes(list(reports), list(herd.problems))


async def _report(world: World, runtime: Runtime) -> RuntimeReport:
    found = installation.find(runtime, world.environ, world.config)
    if found is None:
        return report(runtime, trouble=runtime.absence(world.environ) or "")
    version = await installation.version(runtime, found, world.environ, world.folders.cache)
    known = evidence.latest(world.folders.evidence_file, runtime.name, version.number)
    seen = {claim: item.holds for claim, item in known.items()}
    return report(runtime, found.path, version.number, seen, version.trouble)


def report(
    runtime: Runtime,
    path: str | None = None,
    version: str | None = None,
    seen: Mapping[str, bool] | None = None,
    trouble: str = "",
) -> RuntimeReport:
    """A runtime's claims, its program if there is one, and what was seen of it."""
    return RuntimeReport(
        name=runtime.name,
        title=runtime.title,
        installed=path is not None,
        path=path,
        version=version,
        verified_version=runtime.verified_version,
        minimum_version=runtime.minimum_version,
        stability=runtime.stability,
        install=runtime.install,
        channels=[ChannelReport(c.mode, c.verified, c.on_request, c.note) for c in runtime.channels],
        features=runtime.features,
        guard=runtime.guarding.by,
        instruction_file=runtime.instruction_file,
        notes=runtime.notes,
        evidence=seen or {},
        trouble=trouble,
    )
