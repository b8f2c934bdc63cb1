"""``remuda session send``, and what the verbs of sessions share."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.output import as_json, write_json
from remuda.surfaces.cli.runoptions import read_prompt
from remuda.surfaces.cli.sessionnames import named
from remuda.surfaces.cli.values import AMOUNT

if TYPE_CHECKING:
    from remuda.core.events import Event
    from remuda.operations.session.speaking import Accepted, Receipt
    from remuda.operations.world import World

Got = TypeVar("Got")


def world_of(cwd: Path | None = None) -> World:
    from remuda.operations.world import open_world

    return open_world(cwd=cwd)


def do(work: Coroutine[Any, Any, Got]) -> Got:
    import asyncio

    return asyncio.run(work)


def say(text: str) -> None:
    click.echo(f"remuda: {text}", err=True)


@click.command()
@named()
@click.argument("prompt")
@click.option(
    "--follow", is_flag=True, help="Show what happens in the turn; of a pane, its screen at the end."
)
@click.option(
    "--wait",
    type=AMOUNT,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a pane may take to be ready for it; a connection lets it wait for its turn.",
)
@as_json
def send(name: str, prompt: str, follow: bool, wait: float, as_json: bool) -> int:
    """Send PROMPT to a session, and print the receipt: the channel, and what proves that it arrived.

    PROMPT is the text itself, - for standard input, or @file for a file.
    """
    world = world_of()
    if not follow:
        receipt = do(receipt_for(world, name, read_prompt(prompt), quiet=as_json, wait=wait))
        if as_json:
            write_json(receipt)
        else:
            click.echo(told(receipt))
        return EXIT_OK
    return do(_followed(world, name, read_prompt(prompt), as_json=as_json, wait=wait))


async def receipt_for(world: World, name: str, text: str, *, quiet: bool, wait: float = 60.0) -> Receipt:
    """The receipt for a prompt."""
    from contextlib import aclosing

    from remuda.operations.session.speaking import Accepted, GoneError, Receipt
    from remuda.operations.session.speaking import send as operation

    async with aclosing(operation(world, name, text, wait=wait)) as said:
        async for each in said:
            if isinstance(each, Receipt):
                return each
            if isinstance(each, Accepted) and not quiet:
                _accepted(each)
    raise GoneError("the session ended before the prompt arrived", "Look with 'remuda session show'.")


def _accepted(accepted: Accepted) -> None:
    if accepted.before:
        say(f"it waits for its turn, behind {accepted.before} other(s)")


def told(receipt: Receipt) -> str:
    return f"arrived by {receipt.channel} ({receipt.bytes} bytes); proof: {receipt.proof}"


async def _followed(world: World, name: str, text: str, *, as_json: bool, wait: float) -> int:
    from contextlib import aclosing

    from remuda.core.events import Event
    from remuda.operations.session.panes import capture
    from remuda.operations.session.speaking import Receipt, running
    from remuda.operations.session.speaking import send as operation
    from remuda.surfaces.cli.progress import JsonLines, Progress

    show = JsonLines() if as_json else Progress(sys.stderr)
    last: Event | None = None
    async with aclosing(operation(world, name, text, follow=True, wait=wait)) as said:
        async for each in said:
            if isinstance(each, Event):
                show.event(each)
                last = each
            elif isinstance(each, Receipt) and not as_json:
                say(told(each))
    if last is None and not as_json:
        click.echo(capture(world, running(world, name)), nl=False)
    return _outcome(last)


def _outcome(last: Event | None) -> int:
    from remuda.core.errors import exit_code_for

    if last is None or last.result is None or last.result.error is None:
        return EXIT_OK
    return exit_code_for(last.result.error.kind)
