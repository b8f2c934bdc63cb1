"""``remuda session screen``"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from remuda.core.errors import UsageError
from remuda.surfaces.cli.sessionnames import named

if TYPE_CHECKING:
    from remuda.operations.world import World


@click.command()
@named(required=False)
@click.option("--history", is_flag=True, help="What has scrolled away, too.")
@click.option("--classify", is_flag=True, help="Tell what the screen means, as one line of JSON.")
@click.option("--runtime", metavar="NAME", help="… of a captured screen of this runtime, on standard input.")
@click.option("--title", default="", metavar="TEXT", help="… with this title of its terminal, if known.")
def screen(name: str | None, history: bool, classify: bool, runtime: str | None, title: str) -> None:
    """Print what a session's pane shows, or tell what a screen means.

    \b
    A meaning is one line of JSON: {"state": …, "rule": …, "kind": …}. The state is dialog, working, ready or
    loading; without a rule that knows the screen it is loading.
      remuda session screen fix
      remuda session screen fix --classify
      tmux capture-pane -p | remuda session screen --runtime claude --classify
    """
    from remuda.operations.session.panes import capture
    from remuda.operations.session.speaking import running
    from remuda.operations.world import open_world

    world = open_world()
    if name is not None and runtime is None:
        found = running(world, name)
        text = capture(world, found, history=history)
        if classify:
            _classify(world, found.runtime, text, title)
        else:
            click.echo(text, nl=False)
    elif name is None and runtime is not None and classify:
        _classify(world, runtime, sys.stdin.buffer.read().decode("utf-8", "replace"), title)
    else:
        raise UsageError(
            "name a session, or a runtime with --runtime and --classify",
            "For example: remuda session screen fix",
        )


def _classify(world: World, runtime: str, text: str, title: str) -> None:
    import msgspec

    from remuda.operations import screens

    found = screens.classify(world, screens.ClassifyRequest(runtime, text, title))
    click.echo(msgspec.json.encode(found).decode())
