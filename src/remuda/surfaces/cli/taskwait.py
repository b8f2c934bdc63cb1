"""``remuda task wait`` and ``remuda task watch``"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_OK, EXIT_TIMEOUT
from remuda.surfaces.cli.output import as_json as json_option
from remuda.surfaces.cli.output import write_json, write_text
from remuda.surfaces.cli.tasknames import exit_code_of, named, several, told, world_of
from remuda.surfaces.cli.values import SEQ

if TYPE_CHECKING:
    from remuda.operations.task.requests import Waited
    from remuda.operations.world import World


@click.command()
@several()
@click.option("--first", is_flag=True, help="Wait for the first of them only.")
@click.option("--timeout", type=click.FloatRange(min=0, max=1e9), metavar="SECONDS", help="Wait no longer.")
@json_option
def wait(idents: tuple[str, ...], first: bool, timeout: float | None, as_json: bool) -> int:
    """Wait until tasks have ended: all of them, or the first.

    One task's answer goes to standard output; of several, their states do. Whoever stops waiting changes
    nothing: the tasks go on.

    \b
    Examples:
      remuda task wait 01M7
      remuda task wait --first --timeout 60 --json 01M7A 01M7B

    Exit codes: 0 all succeeded (or the first did), 3 the time was up, else that of the first that did not
    succeed, as of 'remuda run'.
    """
    waited = finished(world_of(), idents, first=first, timeout=timeout)
    if as_json:
        write_json(waited)
    else:
        _tell(waited)
    if waited.timed_out:
        return EXIT_TIMEOUT
    codes = [exit_code_of(task) for task in (waited.tasks[:1] if first else waited.tasks)]
    return next((code for code in codes if code != EXIT_OK), EXIT_OK)


def _tell(waited: Waited) -> None:
    alone = len(waited.tasks) == 1 and not waited.timed_out
    for task in waited.tasks:
        if alone and task.result is not None and task.result.text:
            write_text(task.result.text)
        elif not alone:
            click.echo(f"{task.id}  {task.state}")
        if task.error is not None:
            click.echo(f"{task.id} is {task.state} ({task.error.kind}): {task.error.message}", err=True)
    if waited.timed_out:
        click.echo("The time is up; what has not ended goes on.", err=True)


@click.command()
@named()
@click.option("--since", type=SEQ, default=0, metavar="SEQ", help="Begin behind this event.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
def watch(ident: str, since: int, as_json: bool) -> int:
    """Show a task's events as they come, from its first one, to its end.

    Each event has a number (seq), which goes on over all attempts: give the last one that you saw with
    --since, and no event is missed or shown twice. Leaving (Ctrl-C) changes nothing: the task goes on.

    \b
    Examples:
      remuda task watch 01M7
      remuda task watch --json --since 17 01M7

    Exit codes: as of 'remuda task wait'.
    """
    return followed(world_of(), ident, since, as_json=as_json)


def finished(
    world: World, idents: tuple[str, ...], *, first: bool = False, timeout: float | None = None
) -> Waited:
    """Wait for tasks."""
    from remuda.operations.task.following import wait as operation
    from remuda.operations.task.requests import WaitRequest

    request = WaitRequest(ids=idents, first=first, timeout=timeout)
    return told(operation(world, request), " ".join(idents))


def followed(world: World, ident: str, since: int, *, as_json: bool = False) -> int:
    """Show a task's events to its end; its exit code."""
    from remuda.operations.task.looking import get

    told(_show(world, ident, since, as_json), ident)
    return exit_code_of(get(world, ident))


async def _show(world: World, ident: str, since: int, as_json: bool) -> None:
    from contextlib import aclosing

    from remuda.operations.task.following import watch as operation
    from remuda.surfaces.cli.progress import JsonLines, Progress

    show = JsonLines() if as_json else Progress(sys.stderr)
    async with aclosing(operation(world, ident, since)) as events:
        async for event in events:
            show.event(event)
