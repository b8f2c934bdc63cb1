"""``remuda guard prove``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.output import as_json


@click.command()
@as_json
@click.argument("names", nargs=-1, metavar="[NAME…]")
def prove(names: tuple[str, ...], as_json: bool) -> int:
    """See whether the guard really holds the installed agents.

    Each named agent (without names: every installed one) is run against the built-in model server, out of
    reach of any network, in a home of its own. The model has it write a file that it may write and one that
    it may not. What is seen is kept with version and date: blocked, not blocked, or hooks not loaded. Runs
    with a capability start only where it was blocked.

    \b
    Examples:
      remuda guard prove claude
      remuda guard prove --json

    Exit code 1 when the guard does not hold.
    """
    from remuda.surfaces.cli.verify import show_verification

    return show_verification(names, as_json, "guard")
