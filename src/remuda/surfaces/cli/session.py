"""``remuda session``"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.output import as_json, draw, table, write_json
from remuda.surfaces.cli.sessionnames import RUNNING, named
from remuda.surfaces.cli.sessionscreen import screen
from remuda.surfaces.cli.sessionsend import do, send, world_of
from remuda.surfaces.cli.sessionshow import show_session
from remuda.surfaces.cli.sessionstart import resume, start
from remuda.surfaces.cli.values import AMOUNT, SEQ

if TYPE_CHECKING:
    from remuda.operations.world import World


@click.group()
def session() -> None:
    """Start, watch and talk to agents that stay.

    A session outlives the command that started it. It is held over the agent's own protocol (a *connection*),
    or as its terminal interface in a pane of Remuda's own tmux server.

    \b
    Examples:
      remuda session start fix --agent claude --prompt "look at the failing test"
      remuda session send fix "now mend it" --follow
      remuda session list
      remuda session attach fix
      remuda session stop fix
    """


@session.command("list")
@click.option("--all", "all_", is_flag=True, help="Those that have ended, too, and single runs.")
@as_json
def list_(all_: bool, as_json: bool) -> None:
    """List the sessions with their true state, where that is known from, and since when."""
    from remuda.operations.session.looking import Sessions, listed, seen

    sessions = [seen(each) for each in listed(world_of(), all_=all_)]
    if as_json:
        write_json(Sessions(sessions))
        return
    if not sessions:
        click.echo("No session runs. Start one with 'remuda session start'.", err=True)
        return
    drawn = table("name", "agent", "mode", "state", "known from", "age", "folder")
    for each in sessions:
        state = f"{each.state} ({each.failure.partition(':')[0]})" if each.failure else each.state
        drawn.add_row(
            each.name or each.id, each.agent, each.mode, state, each.source, _age(each.age), each.cwd
        )
    draw(drawn)


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


@session.command()
@named()
@as_json
def show(name: str, as_json: bool) -> None:
    """Show one session: its state, the tool calls that wait for your word, its usage and cost."""
    do(show_session(world_of(), name, as_json))


@session.command()
@named()
@as_json
def interrupt(name: str, as_json: bool) -> int:
    """End the turn under way; the session goes on."""
    from remuda.operations.session.looking import seen
    from remuda.operations.session.speaking import interrupt as operation

    after = do(operation(world_of(), name))
    if as_json:
        write_json(seen(after))
    else:
        click.echo(f"{after.name} is {after.state}")
    return EXIT_OK if after.state in ("ready", "exited") else 1


@session.command()
@named()
@click.argument("question", required=False)
def approve(name: str, question: str | None) -> None:
    """Let a tool call run that waits for your word; the only one, unless QUESTION names it."""
    _decide(name, question, True, "")


@session.command()
@named()
@click.argument("question", required=False)
@click.option("--reason", default="", metavar="TEXT", help="Told to the agent.")
def reject(name: str, question: str | None, reason: str) -> None:
    """Refuse a tool call that waits for your word; the only one, unless QUESTION names it."""
    _decide(name, question, False, reason)


def _decide(name: str, question: str | None, allowed: bool, reason: str) -> None:
    from remuda.operations.session.speaking import decide

    what = do(decide(world_of(), name, question, allowed=allowed, reason=reason))
    click.echo(f"{'approved' if allowed else 'rejected'}: {what}")


@session.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=RUNNING)
def stop(names: tuple[str, ...]) -> None:
    """End sessions with everything that belongs to them; they can be resumed."""
    from remuda.operations.session.speaking import stop as operation

    for name in names:
        ended = do(operation(world_of(), name))
        click.echo(f"{ended.name or ended.id} is {ended.state}")


@session.command()
@named()
@click.option("--read-only", is_flag=True, help="Only watch (a pane).")
@click.option("--since", type=SEQ, default=0, help="Begin behind this event.")
@as_json
def attach(name: str, read_only: bool, since: int, as_json: bool) -> int:
    """Be there: in the agent's terminal interface (leave with Ctrl-B D), or as its events come (Ctrl-C)."""
    from remuda.operations.peer.presence import adopt
    from remuda.operations.session.panes import attachment
    from remuda.operations.session.speaking import running

    world = world_of()
    found = running(world, name)
    if found.mode == "tmux":
        adopt(world, found)
        argv, env = attachment(world, found, read_only=read_only)
        os.execvpe(argv[0], argv, env)  # noqa: S606 - the terminal is handed over for good
    return do(_watch(world, found.id, since, as_json))


async def _watch(world: World, name: str, since: int, as_json: bool) -> int:
    from contextlib import aclosing

    from remuda.operations.session.speaking import events
    from remuda.surfaces.cli.progress import JsonLines, Progress

    show = JsonLines() if as_json else Progress(sys.stderr)
    async with aclosing(events(world, name, since=since, follow=True)) as said:
        async for event in said:
            show.event(event)
    return EXIT_OK


@session.command()
@click.option(
    "--older-than",
    type=AMOUNT,
    default=30.0,
    show_default=True,
    metavar="DAYS",
    help="Forget sessions that ended before that.",
)
@as_json
def gc(older_than: float, as_json: bool) -> None:
    """Put in order what crashes left behind: states, processes, panes, and old records."""
    from remuda.operations.session.looking import gc as operation

    cleared = operation(world_of(), older_than)
    if as_json:
        write_json(cleared)
        return
    click.echo(
        f"{len(cleared.ended)} had ended unnoticed, {cleared.processes} processes and "
        f"{len(cleared.panes)} panes were left, {len(cleared.forgotten)} old sessions were forgotten."
    )


for command in (start, send, resume, screen):
    session.add_command(command)
