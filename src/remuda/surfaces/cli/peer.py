"""``remuda peer``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_FAILED, EXIT_OK
from remuda.surfaces.cli.output import as_json, draw, table, write_json, write_text
from remuda.surfaces.cli.runoptions import read_prompt
from remuda.surfaces.cli.sessionsend import do, world_of
from remuda.surfaces.cli.values import AGENTS, AMOUNT, PEERS, TAGS

if TYPE_CHECKING:
    from remuda.operations.peer.messaging import Inbox, Posted
    from remuda.operations.peer.presence import Shown

KINDS = ("query", "notification")
STATES = ("online", "busy", "waiting", "offline")


@click.group()
def peer() -> None:
    """See which sessions are there, and exchange messages with them.

    Sessions that Remuda started are peers, and so is every agent whose hooks are installed ('remuda guard
    install'). A message waits in the inbox of a peer until it has arrived: over its connection, in its pane,
    or through its hooks, before its next turn.

    \b
    Examples:
      remuda peer list
      remuda peer send fix "the tests are green now"
      remuda peer inbox
      remuda peer reply 01J9Z… "done"
      remuda peer broadcast "main is frozen" --runtime claude
    """


@peer.command("list")
@click.option("--all", "all_", is_flag=True, help="Those that are gone, too.")
@as_json
def list_(all_: bool, as_json: bool) -> None:
    """List the peers with their true state."""
    from remuda.operations.peer.messaging import listed

    found = listed(world_of(), all_=all_)
    if as_json:
        write_json(found)
        return
    if not found.peers:
        click.echo("Nobody is there. Start somebody with 'remuda session start'.", err=True)
        return
    drawn = table("name", "agent", "state", "unread", "known from", "host", "folder")
    for each in found.peers:
        drawn.add_row(each.name, each.agent, each.state, str(each.unread), each.source, each.host, each.cwd)
    draw(drawn)


@peer.command()
@click.argument("name", shell_complete=PEERS)
@as_json
def show(name: str, as_json: bool) -> None:
    """Show one peer: its name, id, or session."""
    from remuda.operations.peer.messaging import show as operation

    _shown(operation(world_of(), name), as_json)


def _shown(what: Shown, as_json: bool) -> None:
    import msgspec

    if as_json:
        write_json(what)
        return
    for field in msgspec.structs.fields(what):
        value = getattr(what, field.name)
        if value not in (None, ""):
            click.echo(f"{field.name:<16}{value}")


@peer.command()
@click.argument("name", required=False, shell_complete=PEERS)
@click.option("--all", "all_", is_flag=True, help="What has arrived already, too.")
@click.option("--take", is_flag=True, help="They count as read from now on; to look takes nothing.")
@as_json
def inbox(name: str | None, all_: bool, take: bool, as_json: bool) -> None:
    """Show the messages that wait for a peer; without NAME for you, or the session that you are in."""
    from remuda.operations.peer.messaging import Received, acknowledge, read

    world = world_of()
    found = read(world, name, all_=all_, take=take)
    if as_json:
        write_json(found)
    else:
        _letters(found)
    if take:
        acknowledge(world, Received(messages=[each.id for each in found.messages]))


def _letters(found: Inbox) -> None:
    if not found.messages:
        click.echo(f"Nothing waits for {found.peer}.", err=True)
    for each in found.messages:
        about = f" to {each.reply_to}" if each.reply_to else ""
        click.echo(f"{each.id}  {each.created_at}  {each.kind}{about} from {each.sender} ({each.state})")
        write_text("\n".join(f"  {line}" for line in each.text.splitlines()))


_READY = click.option(
    "--ready-within",
    type=AMOUNT,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a pane may take to be ready for it; it waits in the inbox otherwise.",
)


@peer.command()
@click.argument("name", shell_complete=PEERS)
@click.argument("text")
@click.option("--kind", type=click.Choice(KINDS), default="query", show_default=True)
@click.option("--task", metavar="ID", help="What it belongs to; replies belong to the same.")
@click.option("--key", metavar="TEXT", help="Sent again under the same key, it does not become two.")
@_READY
@as_json
def send(as_json: bool, name: str, **options: object) -> int:
    """Send TEXT to a peer: the text itself, - for standard input, or @file."""
    import msgspec

    from remuda.operations.peer.messaging import PostRequest, post

    text = read_prompt(str(options["text"]))
    request = msgspec.convert({**options, "to": name, "text": text}, PostRequest)
    return _posted(do(post(world_of(), request)), as_json)


@peer.command()
@click.argument("message")
@click.argument("text")
@_READY
@as_json
def reply(message: str, text: str, ready_within: float, as_json: bool) -> int:
    """Answer MESSAGE, by its id: whoever sent it gets TEXT."""
    from remuda.operations.peer.messaging import ReplyRequest
    from remuda.operations.peer.messaging import reply as operation

    answer = ReplyRequest(message=message, text=read_prompt(text), ready_within=ready_within)
    return _posted(do(operation(world_of(), answer)), as_json)


def _posted(posted: Posted, as_json: bool) -> int:
    if as_json:
        write_json(posted)
    else:
        _tell(posted)
    return EXIT_FAILED if _has_failed(posted) else EXIT_OK


def _has_failed(posted: Posted) -> bool:
    return posted.receipt is None or posted.receipt.state == "failed"


def _tell(posted: Posted) -> None:
    if posted.receipt is None:
        click.echo(f"{posted.peer}: {posted.error}", err=True)
        return
    by = f" by {posted.receipt.channel}" if posted.receipt.channel else ""
    proof = f"; {posted.receipt.proof}" if posted.receipt.proof else ""
    click.echo(f"{posted.message} to {posted.peer}: {posted.receipt.state}{by}{proof}")


@peer.command()
@click.argument("text")
@click.option("--runtime", metavar="NAME", help="Only to those of this runtime.")
@click.option("--tag", metavar="TAG", shell_complete=TAGS, help="Only to those whose agent carries this tag.")
@_READY
@as_json
def broadcast(text: str, runtime: str | None, tag: str | None, ready_within: float, as_json: bool) -> int:
    """Send TEXT to everybody who is there, and tell of each what became of it."""
    from remuda.operations.peer.messaging import ToAll
    from remuda.operations.peer.messaging import broadcast as operation

    request = ToAll(text=read_prompt(text), runtime=runtime, tag=tag, ready_within=ready_within)
    sent = do(operation(world_of(), request))
    if as_json:
        write_json(sent)
    else:
        for each in sent.sent:
            _tell(each)
        if not sent.sent:
            click.echo("Nobody is there.", err=True)
    return EXIT_FAILED if any(map(_has_failed, sent.sent)) else EXIT_OK


@peer.command()
@click.option("--runtime", required=True, metavar="NAME", help="Which agent CLI it is.")
@click.option("--agent", metavar="NAME", shell_complete=AGENTS, help="Which agent of it.")
@click.option("--name", default="", metavar="NAME", help="What to call it.")
@click.option("--cwd", type=Path, metavar="DIR", help="Where it works; default: here.")
@click.option("--session", "runtime_session", metavar="ID", help="The CLI's own id of its session.")
@click.option("--pane", metavar="ID", help="The pane that it is in.")
@click.option("--pid", type=click.IntRange(min=1), help="The process that it depends on.")
@click.option("--role", default="", metavar="ROLE", help="orchestrator: never gets prompts by 'send'.")
@as_json
def register(as_json: bool, cwd: Path | None, **options: object) -> None:
    """Make a session known that nobody else tells of."""
    import msgspec

    from remuda.operations.peer.messaging import RegisterRequest
    from remuda.operations.peer.messaging import register as operation

    folder = str(cwd.absolute()) if cwd else None
    _shown(operation(world_of(), msgspec.convert({**options, "cwd": folder}, RegisterRequest)), as_json)


@peer.command()
@click.argument("name", shell_complete=PEERS)
@click.option("--state", type=click.Choice(STATES), default="online", show_default=True)
@as_json
def heartbeat(name: str, state: str, as_json: bool) -> None:
    """Give a sign of life of a peer."""
    _note(name, state, as_json)


@peer.command()
@click.argument("name", shell_complete=PEERS)
@as_json
def deregister(name: str, as_json: bool) -> None:
    """Say that a peer is gone."""
    _note(name, "offline", as_json)


def _note(name: str, state: str, as_json: bool) -> None:
    import msgspec

    from remuda.operations.peer.messaging import Heartbeat
    from remuda.operations.peer.messaging import heartbeat as operation

    _shown(operation(world_of(), msgspec.convert({"name": name, "state": state}, Heartbeat)), as_json)
