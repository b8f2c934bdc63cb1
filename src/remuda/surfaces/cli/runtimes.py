"""``remuda runtimes``"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from remuda.core.errors import UsageError
from remuda.surfaces.cli.output import as_json, draw, table, write_json

if TYPE_CHECKING:
    from remuda.operations.runtimes import Runtimes


@click.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the matrix as a Markdown table.")
@as_json
def runtimes(as_markdown: bool, as_json: bool) -> None:
    """List the supported agent CLIs: what is installed, and what is proven on which version.

    A cell says whether something was verified, is documented by the vendor, or is not there. Runtimes that
    you declared in files, or installed as packages, are listed too; what is wrong with them goes to standard
    error.
    """
    from remuda.operations.matrix import markdown
    from remuda.operations.runtimes import runtimes as operation
    from remuda.operations.world import open_world

    if as_markdown and as_json:
        raise UsageError("--markdown and --json exclude each other", "Choose one.")
    answer = asyncio.run(operation(open_world()))
    if as_json:
        write_json(answer)
        return
    if as_markdown:
        click.echo(markdown(answer.runtimes, installed=True))
    else:
        _draw(answer)
    for problem in (
        *answer.problems,
        *(f"{one.name}: {one.trouble}" for one in answer.runtimes if one.trouble),
    ):
        click.echo(f"✗ {problem}", err=True)


def _draw(answer: Runtimes) -> None:
    from remuda.operations.matrix import FEATURES, guard, installed_version, state

    drawn = table("runtime", "installed", "last verified", "stability", "prompt channels", *FEATURES, "guard")
    for report in answer.runtimes:
        channels = ", ".join(channel.mode for channel in report.channels)
        features = (state(report, name) for name in FEATURES)
        drawn.add_row(
            report.name,
            installed_version(report),
            report.verified_version,
            report.stability,
            channels,
            *features,
            guard(report),
        )
    draw(drawn)
