"""``remuda runtimes``"""

from __future__ import annotations

import asyncio

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json

_FEATURES = ("headless", "connection", "hooks", "sandbox", "resume", "usage")


@click.command()
@as_json
def runtimes(as_json: bool) -> None:
    """List the supported agent CLIs: what is installed, and what is proven on which version."""
    from remuda.operations.runtimes import runtimes as operation
    from remuda.operations.world import open_world

    answer = asyncio.run(operation(open_world()))
    if as_json:
        write_json(answer)
        return
    drawn = table("runtime", "installed", "verified", "prompt channels", *_FEATURES)
    for runtime in answer.runtimes:
        installed = (runtime.version or "unknown version") if runtime.installed else "no"
        channels = ", ".join(channel.mode for channel in runtime.channels)
        features = [runtime.features[name].state if name in runtime.features else "no" for name in _FEATURES]
        drawn.add_row(runtime.name, installed, runtime.verified_version, channels, *features)
    draw(drawn)
