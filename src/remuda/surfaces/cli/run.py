"""``remuda run``"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import aclosing
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from remuda.surfaces.cli.output import exit_code
from remuda.surfaces.cli.runoptions import run_options, run_request

if TYPE_CHECKING:
    from remuda.core.events import Event
    from remuda.operations.requests import RunRequest
    from remuda.operations.run import Run
    from remuda.operations.world import World


@click.command(context_settings={"ignore_unknown_options": False})
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
def run(as_json: bool, **given: Any) -> int:
    """Run an agent on PROMPT and wait for its answer.

    PROMPT is the text itself, - for standard input, or @file for a file. The answer goes to standard output,
    progress to standard error. What follows -- is passed to the agent's own command line.

    \b
    Examples:
      remuda run "explain this repo"
      git diff | remuda run --agent claude --capability reviewer -
      remuda run --agent codex --permission bypass @task.md -- --search

    Exit codes: 0 done, 1 the agent failed, 2 wrong usage, 3 timed out, 4 not found, 5 refused by policy,
    6 not installed, not logged in or not startable, 130 interrupted.
    """
    return _run(run_request(**given), as_json)


class _Interrupts:
    """Catches the signals that ask us to end from the first moment on, while the event loop loads too."""

    def __init__(self) -> None:
        self._seen = False
        self._tell: Callable[[], object] | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._seen = True
        if self._tell:
            self._tell()

    def tell(self, how: Callable[[], object]) -> None:
        """Pass them on from now on, those that have come already included."""
        self._tell = how
        if self._seen:
            how()


def _run(request: RunRequest, as_json: bool) -> int:
    """Start the agent, then load what is needed to follow it: the two take their time side by side."""
    from remuda.operations import proving
    from remuda.operations.run import begin
    from remuda.operations.world import open_world

    world = open_world(cwd=request.cwd)
    for runtime in proving.due(world, request):
        import asyncio

        asyncio.run(proving.prove(world, runtime, _say))
    interrupts = _Interrupts()
    with begin(world, request) as begun:
        import asyncio
        import gc

        gc.enable()
        return asyncio.run(_follow(world, begun, interrupts, as_json))


def _say(text: str) -> None:
    click.echo(f"remuda: {text}", err=True)


async def _follow(world: World, begun: Run, interrupts: _Interrupts, as_json: bool) -> int:
    """Show the events and turn the result into an exit code. The first Ctrl-C asks the agent to end."""
    import asyncio

    from remuda.operations.run import follow
    from remuda.surfaces.cli.progress import JsonLines, Progress

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    interrupts.tell(lambda: loop.is_closed() or loop.call_soon_threadsafe(stop.set))
    show = JsonLines() if as_json else Progress(sys.stderr)
    last: Event | None = None
    async with aclosing(follow(world, begun, stop, _say)) as events:
        async for event in events:
            show.event(event)
            last = event
    assert last is not None
    assert last.result is not None
    return exit_code(last.result)
