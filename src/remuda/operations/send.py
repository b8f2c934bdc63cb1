"""Send a prompt to an agent wherever it is: to a session of it that is there, into a pane that is opened for
it, or to a fresh run. Policy comes first, and is never routed around."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncGenerator, Callable

import msgspec

from remuda.core import log
from remuda.core.errors import RefusedError, RemudaError
from remuda.core.events import Event
from remuda.core.ids import ulid
from remuda.core.sql import Database
from remuda.dispatch import sending
from remuda.dispatch.sending import Facts, Mode, TmuxUnavailableError, Wanted, Way
from remuda.operations import routing
from remuda.operations.gating import pass_gate
from remuda.operations.peer import attending, delivery, presence
from remuda.operations.peer.delivery import Outcome
from remuda.operations.peer.hearing import Deadline, heard
from remuda.operations.peer.hearing import Heard as Heard
from remuda.operations.peer.presence import SPAWN
from remuda.operations.requests import RunRequest, Span
from remuda.operations.run import run
from remuda.operations.session import panes, speaking, starting
from remuda.operations.session.requests import StartRequest
from remuda.operations.world import World
from remuda.peers import inbox, registry
from remuda.peers.inbox import Draft, InboxFullError, PeerGoneError
from remuda.peers.model import Message, Peer, closing, this_host
from remuda.prompts.delivery import check_prompt

Say = Callable[[str], None]

_COOLDOWN = 10.0
"""Seconds after the opening of a pane in which another message for its agent opens no second one."""

_BOUNDS = {
    "sandbox": "--sandbox",
    "isolated": "--isolated",
    "capability": "--capability",
    "session": "--session",
}
_CHOICES = {
    "model": "--model",
    "system_prompt": "--system-prompt",
    "append_system_prompt": "--append-system-prompt",
    "env": "--env",
    "extra": "arguments of its own",
}


class SendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for an agent. ``mode`` says where it may go; ``wait``: until it is answered, at most for
    ``timeout`` seconds (0: without end); ``ready_within`` is how long a pane may take to be ready for it. A
    pane that is opened for it closes after it, unless ``auto_close`` is off. ``task`` is what it belongs to,
    and a ``key`` makes sure that sending it again does not make it two."""

    run: RunRequest
    mode: Mode = "peer-prefer"
    wait: bool = False
    timeout: Span = 0
    ready_within: Span = 120.0
    auto_close: bool = True
    task: str | None = None
    key: str | None = None


class Addressee(msgspec.Struct, frozen=True):
    """Who got a message."""

    id: str
    name: str
    agent: str
    session: str | None


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a prompt went, and the receipt. It tells that it arrived, not what came of it."""

    mode: Mode
    way: Way
    peer: Addressee
    message: str
    receipt: Outcome
    spawned: bool = False


async def send(
    world: World, request: SendRequest, stop: asyncio.Event, say: Say = log.info
) -> AsyncGenerator[Sent | Event | Heard]:
    """Send a prompt. To a peer: where it went, with the receipt, and what came of it where that is waited
    for. To a fresh run: its events up to the result."""
    check_prompt(request.run.prompt)
    mode = sending.mode_of(request.mode, world.environ)
    for agent in routing.possible(world, request.run):
        pass_gate(world, request.run, agent)
    if mode != "spawn-only":
        with presence.shared(world) as database:
            async with contextlib.aclosing(_routed(world, database, request, mode, say)) as said:
                async for each in said:
                    if each is None:
                        break
                    yield each
                else:
                    return
    async with contextlib.aclosing(run(world, request.run, stop, say=say)) as events:
        async for event in events:
            yield event


async def _routed(
    world: World, database: Database, request: SendRequest, mode: Mode, say: Say
) -> AsyncGenerator[Sent | Event | Heard | None]:
    """The way to a peer; None says that there is none, and that a fresh run is to be made."""
    peers = presence.look(world, database)
    attending.ensure(world, database, peers)
    wanted = _wanted(world, request.run, presence.callers(world, peers))
    me = presence.myself(world, database, peers).id
    found = _sent_before(database, request, wanted, me)
    if found is None:
        facts = _facts(world, request.run, peers, wanted)
        peer = await _addressee(world, database, request, mode, wanted, facts, say)
        found = None if peer is None else _enqueued(database, request, mode, peer, me, say)
    if found is None:
        yield None
        return
    async with contextlib.aclosing(_handed(world, database, request, mode, *found)) as said:
        async for each in said:
            yield each


def _sent_before(
    database: Database, request: SendRequest, wanted: Wanted, sender: str
) -> tuple[Peer, Message] | None:
    """What was sent under the same key already, to whichever of those whom it is for."""
    for message in inbox.keyed(database, sender, request.key) if request.key else ():
        peer = registry.get(database, message.peer)
        if peer is not None and sending.meant(peer, wanted):
            return peer, message
    return None


async def _addressee(
    world: World, database: Database, request: SendRequest, mode: Mode, wanted: Wanted, facts: Facts, say: Say
) -> Peer | None:
    """Who gets a prompt: a peer that is there, or one in a new pane; None: a fresh run."""
    chosen = sending.way(mode, facts, wanted)
    if chosen != "pane":
        return facts.peer if chosen == "peer" else None
    try:
        return await _opened(world, database, request, wanted, facts, say)
    except RefusedError:
        raise
    except RemudaError as error:
        if mode == "auto-tmux":
            raise TmuxUnavailableError(f"auto-tmux mode: {error.message}", error.hint) from None
        say(f"no pane could be opened ({error.message}): going on with a fresh run")
        return None


def _enqueued(
    database: Database, request: SendRequest, mode: Mode, peer: Peer, sender: str, say: Say
) -> tuple[Peer, Message] | None:
    """Put a prompt on record for a peer; None where it takes none, and a fresh run will do."""
    draft = Draft(peer=peer.id, sender=sender, text=request.run.prompt, task=request.task, key=request.key)
    try:
        return peer, inbox.enqueue(database, draft)
    except (InboxFullError, PeerGoneError) as error:
        if mode != "peer-prefer":
            raise
        say(f"{peer.name} takes no message ({error.message}): going on with a fresh run")
        return None


def _wanted(world: World, asked: RunRequest, callers: list[Peer]) -> Wanted:
    """Whom a request is for. A runtime's name means all its sessions, whosever they are."""
    bare = asked.agent is not None and asked.agent in world.herd and asked.agent not in world.config.agents
    return Wanted(
        agents=frozenset(agent.name for agent in routing.pool(world, asked).agents),
        runtime=asked.agent if bare else None,
        cwd=os.path.normpath(asked.cwd.absolute()) if asked.cwd else None,
        callers=frozenset(peer.id for peer in callers),
    )


def _facts(world: World, asked: RunRequest, peers: list[Peer], wanted: Wanted) -> Facts:
    walled = any(agent.sandbox for agent in routing.pool(world, asked).agents)
    bounds = [word for field, word in _BOUNDS.items() if getattr(asked, field)]
    return Facts(
        peer=sending.eligible(peers, wanted),
        callers=any(peer.id in wanted.callers and sending.meant(peer, wanted) for peer in peers),
        tmux=tmux_there(world),
        bounds=tuple(bounds or (["the sandbox of its agent"] if walled else [])),
        choices=(
            *(word for field, word in _CHOICES.items() if getattr(asked, field)),
            *(["--permission"] if asked.permission != "ask" else []),
        ),
    )


def tmux_there(world: World) -> bool:
    """Whether a pane can be opened: tmux is installed, and whoever asks is in it, or wants panes anyway."""
    wanted = bool(world.environ.get("TMUX")) or world.config.peer.panes
    return wanted and shutil.which("tmux", path=world.environ.get("PATH", "")) is not None


async def _opened(
    world: World, database: Database, request: SendRequest, wanted: Wanted, facts: Facts, say: Say
) -> Peer:
    """A pane for a message: one that was opened a moment ago for another, or a new one."""
    name = min(wanted.agents)
    async with delivery.locked(delivery.place(world, name, "opens"), request.ready_within) as ours:
        if not ours:
            raise RemudaError("somebody else opens a pane, and takes too long", "Try again in a moment.")
        if not facts.choices and (recent := _recent(world, database, wanted)) is not None:
            return recent
        asked = msgspec.structs.replace(request.run, prompt="")
        begun = await starting.start(
            world,
            StartRequest(
                name=f"{name}-{ulid()[-6:].lower()}",
                mode="tmux",
                wait=request.ready_within,
                opened=True,
                closes=request.auto_close and world.config.peer.auto_close_panes,
                run=asked,
            ),
            say,
        )
        if begun.state not in ("ready", "working"):
            shown = panes.capture(world, begun).strip().splitlines()
            await speaking.stop(world, begun.id)
            raise RemudaError(
                f"the pane is not ready: {shown[-1].strip() if shown else begun.state}",
                f"Look for yourself: 'remuda session start NAME --agent {name} --mode tmux'.",
            )
        peer = registry.register(database, presence.sighting(begun))
        attending.ensure(world, database, [peer])
        return peer


def _recent(world: World, database: Database, wanted: Wanted) -> Peer | None:
    """A peer that is there by now, or a pane that was opened just now, busy as it may be."""
    peers = presence.look(world, database)
    with database.transaction() as t:
        now = t.now()
    young = [
        peer
        for peer in peers
        if peer.source == SPAWN
        and sending.meant(peer, wanted)
        and peer.host == this_host()
        and now - peer.registered_at < _COOLDOWN
        and not closing(peer, now)
        and peer.id not in wanted.callers
    ]
    return sending.eligible(peers, wanted) or next(iter(young), None)


async def _handed(
    world: World, database: Database, request: SendRequest, mode: Mode, peer: Peer, message: Message
) -> AsyncGenerator[Sent | Event | Heard | None]:
    """Deliver a message that is on record, and wait for what comes of it where that is wanted."""
    told, answered = False, False
    delivered = delivery.deliver(
        world, database, peer, message.id, follow=request.wait, wait=request.ready_within
    )
    end = Deadline(request.timeout if request.wait else 0)
    async with contextlib.aclosing(delivered) as said:
        while (each := await end.within(anext(said, None))) is not None:
            if isinstance(each, Event):
                answered = answered or each.result is not None
                yield each
                continue
            if each.state == "queued" and _gone(world, database, peer, message):
                if mode != "peer-prefer":
                    raise PeerGoneError(f"{peer.name} went away: {each.proof}", "Send it again.")
                yield None
                return
            if not told:
                yield _sent(mode, peer, message, each)
                told = True
    attending.ensure(world, database, [peer])
    if request.wait and not answered:
        yield await end.within(heard(world, database, peer, message))


def _gone(world: World, database: Database, peer: Peer, message: Message) -> bool:
    """Whether the peer went away before its message was begun, which is then taken back."""
    presence.look(world, database)
    now = registry.get(database, peer.id)
    return (now is None or now.state == "offline") and inbox.withdraw(database, message.id)


def _sent(mode: Mode, peer: Peer, message: Message, receipt: Outcome) -> Sent:
    spawned = peer.source == SPAWN
    return Sent(
        mode=mode,
        way="pane" if spawned else "peer",
        peer=Addressee(peer.id, peer.name, peer.agent, peer.session),
        message=message.id,
        receipt=receipt,
        spawned=spawned,
    )
