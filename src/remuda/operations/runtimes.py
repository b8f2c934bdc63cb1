"""What Remuda knows about each runtime, and what is installed of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from remuda.dispatch import installation
from remuda.operations.world import World
from remuda.runtimes import registry
from remuda.runtimes.base import Feature, Runtime


class ChannelReport(msgspec.Struct, frozen=True):
    """A prompt channel and the version it was proven on."""

    mode: str
    verified: str | None
    on_request: bool
    note: str


class RuntimeReport(msgspec.Struct, frozen=True):
    """One runtime: the claims, and the program found on this machine."""

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
    instruction_file: str
    notes: tuple[str, ...]


class Runtimes(msgspec.Struct, frozen=True):
    """The answer of ``remuda runtimes``."""

    runtimes: list[RuntimeReport]


async def runtimes(world: World) -> Runtimes:
    """All runtimes; versions are asked for side by side."""
    return Runtimes(
        list(await asyncio.gather(*(_report(world, runtime) for runtime in registry.all_runtimes())))
    )


async def _report(world: World, runtime: Runtime) -> RuntimeReport:
    found = installation.find(runtime, world.environ, world.config)
    version = (
        await installation.version(runtime, found, world.environ, world.folders.cache) if found else None
    )
    return RuntimeReport(
        name=runtime.name,
        title=runtime.title,
        installed=found is not None,
        path=found.path if found else None,
        version=version,
        verified_version=runtime.verified_version,
        minimum_version=runtime.minimum_version,
        stability=runtime.stability,
        install=runtime.install,
        channels=[ChannelReport(c.mode, c.verified, c.on_request, c.note) for c in runtime.channels],
        features=runtime.features,
        instruction_file=runtime.instruction_file,
        notes=runtime.notes,
    )
