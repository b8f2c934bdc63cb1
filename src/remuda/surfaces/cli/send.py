"""``remuda send``"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from remuda.surfaces.cli.runoptions import CAPABILITIES, read_prompt, variables
from remuda.surfaces.cli.sessionsend import do, say, world_of
from remuda.surfaces.cli.values import AGENTS, AMOUNT, PROFILES

if TYPE_CHECKING:
    from remuda.core.events import Event
    from remuda.operations.send import Heard, SendRequest, Sent
    from remuda.operations.world import World

MODES = ("peer-prefer", "peer-only", "spawn-only", "auto-tmux")


@click.command()
@click.argument("agent", shell_complete=AGENTS)
@click.argument("prompt")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="peer-prefer",
    show_default=True,
    help="peer-only: never start anything; spawn-only: always a fresh run; auto-tmux: a session or a pane.",
)
@click.option("--wait", is_flag=True, help="Wait until it is answered, and show that.")
@click.option(
    "--timeout",
    type=AMOUNT,
    metavar="SECONDS",
    help="Of a fresh run, and with --wait; 0: without end.",
)
@click.option("--no-auto-close", is_flag=True, help="Leave a pane open that is opened for this.")
@click.option(
    "--ready-within",
    type=AMOUNT,
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a pane may take to be ready for it.",
)
@click.option("--task", metavar="ID", help="What it belongs to; replies belong to the same.")
@click.option("--key", metavar="TEXT", help="Sent again under the same key, it does not become two.")
@click.option("--model", metavar="NAME", help="The model; never put into a session that runs already.")
@click.option(
    "--capability", type=click.Choice(CAPABILITIES), help="What the agent may do; a fresh run only."
)
@click.option(
    "--sandbox", metavar="PROFILE", shell_complete=PROFILES, help="A wall around the agent; a fresh run only."
)
@click.option("--unsafe-yes", is_flag=True, help="Agree to a sandbox that is none.")
@click.option("--isolated", is_flag=True, help="In a git worktree of its own; a fresh run only.")
@click.option(
    "--permission",
    type=click.Choice(("ask", "bypass")),
    default="ask",
    show_default=True,
    help="Of a fresh run or a new pane: whether tool calls are asked about.",
)
@click.option("--nested", is_flag=True, help="The agent that asks may be called itself.")
@click.option("--cwd", type=Path, metavar="DIR", help="Only a session that works there, or a new one there.")
@click.option("--env", multiple=True, metavar="KEY=VALUE", help="A variable for a new agent; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the receipt, then events, a line each.")
def send(
    agent: str,
    prompt: str,
    mode: str,
    wait: bool,
    timeout: float | None,
    no_auto_close: bool,
    ready_within: float,
    task: str | None,
    key: str | None,
    env: tuple[str, ...],
    as_json: bool,
    **options: object,
) -> int:
    """Send PROMPT to AGENT: to a session of it that runs, else into a new pane, else to a fresh run.

    A session that runs is told, and there is a receipt: by which channel it arrived, and what proves that. A
    receipt is not an answer; --wait waits for one. Inside tmux a pane is opened where no session runs, and it
    closes after its work; without tmux it is a fresh run, whose answer goes to standard output.

    \b
    Examples:
      remuda send claude "how far are you?"
      remuda send codex "review the last commit" --wait
      remuda send claude-work "stop what you do" --mode peer-only
      git diff | remuda send codex - --mode spawn-only

    Exit codes: as 'remuda run'; 3 nothing heard in time, 4 no live peer, 5 refused, 6 no tmux.
    """
    import msgspec

    from remuda.operations.requests import RunRequest
    from remuda.operations.send import SendRequest

    text = read_prompt(prompt)
    run = msgspec.convert(
        {**options, "agent": agent, "prompt": text, "env": variables(env), "timeout": timeout}, RunRequest
    )
    request = msgspec.convert(
        {
            "run": run,
            "mode": mode,
            "wait": wait,
            "timeout": timeout or 0,
            "ready_within": ready_within,
            "auto_close": not no_auto_close,
            "task": task,
            "key": key,
        },
        SendRequest,
    )
    return do(_sent(world_of(), request, as_json))


async def _sent(world: World, request: SendRequest, as_json: bool) -> int:
    """Show what happens; the first Ctrl-C ends a fresh run, and the waiting for a peer."""
    import asyncio
    import signal
    from contextlib import aclosing

    from remuda.core.events import Event
    from remuda.operations.send import Sent
    from remuda.operations.send import send as operation
    from remuda.surfaces.cli.progress import JsonLines, Progress

    stop = asyncio.Event()
    here = asyncio.current_task()
    show = JsonLines() if as_json else Progress(sys.stderr)
    last: Event | None = None
    sent: Sent | None = None

    def end() -> None:
        stop.set()
        if here is not None and (last is None or sent is not None):  # nothing but a fresh run looks at it
            here.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    try:
        async with aclosing(operation(world, request, stop, say)) as said:
            async for each in said:
                if isinstance(each, Event):
                    show.event(each)
                    last = each
                else:
                    sent = each if isinstance(each, Sent) else sent
                    _tell(each, as_json)
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED
    failed = sent is not None and sent.receipt.state == "failed"
    return EXIT_FAILED if failed else _code(last)


def _tell(what: Sent | Heard, as_json: bool) -> None:
    from remuda.operations.send import Sent
    from remuda.surfaces.cli.output import write_json, write_text

    if as_json:
        write_json(what)
    elif isinstance(what, Sent):
        proof = f" ({what.receipt.proof})" if what.receipt.proof else ""
        click.echo(f"{what.message} to {what.peer.name}: {what.receipt.state}{proof}", err=True)
    elif what.reply is not None:
        write_text(what.reply)
    elif what.screen is not None:
        write_text("\n".join(line for line in what.screen.splitlines() if line.strip()))


def _code(last: Event | None) -> int:
    from remuda.surfaces.cli.output import exit_code

    return EXIT_OK if last is None or last.result is None else exit_code(last.result)
