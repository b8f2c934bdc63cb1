"""``remuda launch`` and its shorthand ``remuda NAME``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.values import AGENTS

_RAW = {"ignore_unknown_options": True, "help_option_names": []}


def _launch(name: str | None, arguments: tuple[str, ...]) -> int:
    from remuda.operations.launch import LaunchRequest
    from remuda.operations.launch import launch as operation
    from remuda.operations.world import open_world

    return operation(open_world(), LaunchRequest(name, arguments))


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False, shell_complete=AGENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def launch(name: str | None, arguments: tuple[str, ...]) -> int:
    """Launch the agent NAME (default: the active one) interactively in this terminal.

    ARGUMENTS go to the agent's own command line. The choice is remembered for this repository for a day
    (.claude/runtime/launcher_context.json). The exit code is the agent's; 128+n when signal n killed it.

    \b
    Examples:
      remuda launch claude
      remuda launch codex -- --search
      remuda claude --continue          shorthand for any agent; all after the name is the agent's
    """
    return _launch(name, arguments)


def shorthand(name: str) -> click.Command:
    """``remuda NAME …``: every argument, ``--help`` too, is the agent's own."""

    def callback(arguments: tuple[str, ...]) -> int:
        return _launch(name, arguments)

    return click.Command(
        name,
        callback=callback,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings=dict(_RAW),
        add_help_option=False,
        short_help=f"Launch {name}.",
    )
