"""``remuda trust``"""

from __future__ import annotations

from pathlib import Path

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json

_FOLDER = click.argument("folder", required=False, type=click.Path(path_type=Path))


@click.group()
def trust() -> None:
    """Say in which folders agents may act unasked while nobody watches.

    An unattended run that bypasses permissions is refused in any other folder. A folder is trusted with all
    that is below it, by its real path; without a folder, the current one is meant.

    \b
    Examples:
      remuda trust add
      remuda trust add ~/app
      remuda trust list
      remuda trust remove ~/app
    """


@trust.command("add")
@_FOLDER
def add_folder(folder: Path | None) -> None:
    """Trust a folder with all below it."""
    from remuda.operations.trust import add
    from remuda.operations.world import bare_world

    world = bare_world()
    added = add(world, world.cwd / (folder or ""))
    click.echo(f"trusted: {added.path}", err=True)


@trust.command("list")
@as_json
def list_folders(as_json: bool) -> None:
    """Show the trusted folders."""
    from remuda.operations.trust import listed
    from remuda.operations.world import bare_world

    answer = listed(bare_world())
    if as_json:
        write_json(answer)
        return
    if not answer.trusted:
        click.echo("no folder is trusted", err=True)
        return
    rows = table("folder", "since")
    for each in answer.trusted:
        rows.add_row(each.path, each.since)
    draw(rows)


@trust.command("remove")
@_FOLDER
def remove_folder(folder: Path | None) -> None:
    """Trust a folder no longer."""
    from remuda.operations.trust import remove
    from remuda.operations.world import bare_world

    world = bare_world()
    gone = remove(world, world.cwd / (folder or ""))
    click.echo(f"no longer trusted: {gone.path}", err=True)
