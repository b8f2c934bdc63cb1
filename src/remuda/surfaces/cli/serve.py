"""``remuda serve``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_OK, UsageError
from remuda.surfaces.cli.values import AMOUNT

if TYPE_CHECKING:
    from remuda.operations.serve import Status


@click.command()
@click.option("--keep", is_flag=True, help="Stay when idle, too.")
@click.option("--idle", type=AMOUNT, metavar="SECONDS", help="End after that long without work.")
@click.option("--status", is_flag=True, help="Tell whether it runs.")
@click.option("--stop", is_flag=True, help="End it, and wait until it has ended.")
@click.option("--json", "as_json", is_flag=True, help="The status as one JSON document.")
def serve(keep: bool, idle: float | None, status: bool, stop: bool, as_json: bool) -> int:
    """Run the process that answers hooks, so that they need not load the guard themselves.

    It also answers HTTP at the same socket: what the verbs do, for programs.

    It listens on a socket that only you can open, is there once, and ends when it has had nothing to do for
    a while (serve.idle, 5 minutes). You rarely call it: hooks and guarded runs start it when they miss it,
    unless guard.resident is false. Without it every hook judges for itself, which gives the same answers and
    takes longer; so it may be ended at any time.

    \b
    Examples:
      remuda serve --keep
      remuda serve --status --json
      remuda serve --stop
    """
    from remuda.operations import serve as operation
    from remuda.operations.world import bare_world, open_world

    if (status and stop) or ((status or stop) and (keep or idle is not None)):
        raise UsageError("--status and --stop stand alone", "Call it once for each.")
    world = bare_world() if status or stop else open_world()
    if stop:
        ended = operation.stop(world.folders)
        click.echo("it has ended" if ended else "it does not run", err=True)
    elif not status:
        from remuda.surfaces.http import hosting

        operation.serve(world, idle, keep=keep, ready=_announce, hosting=hosting)
        return EXIT_OK
    if status or as_json:
        _show(operation.status(world.folders), as_json=as_json)
    return EXIT_OK


def _announce(status: Status) -> None:
    click.echo(f"answering hooks at {status.socket}   (Ctrl-C ends it)", err=True)


def _show(status: Status, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode(status))
        return
    click.echo(f"runs as process {status.pid or '?'}" if status.running else "does not run")
    click.echo(f"  socket   {status.socket}" + (f" ({status.note})" if status.note else ""))
    if status.running:
        stays = "stays" if status.keep else "ends when idle"
        click.echo(f"  version  {status.version}, since {status.since}, {stays}")
