"""Brings messages to peers: over a connection or into a pane, each one with a receipt. What reaches a peer by
its hooks is fetched by those themselves.

Whoever delivers has taken the message for a time. Where they die, it comes back, and whoever is next goes on
under the same id: a keeper does not send it twice, and in a pane it is looked for before it is typed again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.errors import RemudaError
from remuda.core.events import Event
from remuda.core.files import private_folder
from remuda.core.sql import Database
from remuda.operations.session import looking, speaking
from remuda.operations.session.keyboard import UndeliveredError, UntypableError
from remuda.operations.session.speaking import Accepted, Receipt
from remuda.operations.world import World
from remuda.peers import framing, inbox, registry
from remuda.peers.model import PERSON, Message, Passage, Peer, this_host
from remuda.sessions import store
from remuda.sessions.orders import KeeperError

Channel = Literal["connection", "tmux", "hook", "inbox"]
"""How a peer is reached: by its keeper, in its pane, by its own hooks, or when it looks by itself."""

_LEASE = 10.0
_HEARTBEAT = 3.0
_PAUSE = 0.05
_BRIEF = 1.0
_TRIES = 4


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a message: queued for later, delivered by a channel with a proof, or failed."""

    state: Passage
    channel: str
    proof: str


def channel_of(world: World, peer: Peer) -> Channel:
    """How a peer can be reached from here."""
    if peer.session and peer.host == this_host():
        session = store.find(world.folders.database, peer.session)
        if session is not None and session.state != "exited" and session.mode != "headless":
            return "connection" if session.mode == "connection" else "tmux"
    return "hook" if peer.runtime_session and peer.runtime != PERSON else "inbox"


def outcome(database: Database, message_id: str, channel: str = "") -> Outcome:
    """What is on record about a message."""
    message = inbox.get(database, message_id)
    if message is None:
        return Outcome(state="failed", channel=channel, proof="it was forgotten with its peer")
    return Outcome(state=message.state, channel=message.channel or channel, proof=message.proof)


async def deliver(
    world: World, database: Database, peer: Peer, own: str | None, *, follow: bool = False, wait: float = 60.0
) -> AsyncGenerator[Outcome | Event]:
    """Bring a peer what waits for it, the oldest first, up to the ``own`` message: what became of that, and
    with ``follow`` what happens in its turn. A peer that we cannot reach fetches it by itself."""
    channel, told = channel_of(world, peer), False
    async with contextlib.AsyncExitStack() as held:
        ours = channel == "connection"
        if channel == "tmux":
            alone = locked(place(world, peer.id, "speaks"), max(wait, _BRIEF))
            ours = await held.enter_async_context(alone)
        while ours and (taken := inbox.lease(database, peer.id, count=1, seconds=_LEASE)):
            (message,) = taken
            mine = message.id == own
            carried = _carried(world, database, peer, message, follow=follow and mine, wait=wait)
            async with contextlib.aclosing(carried) as said:
                async for each in said:
                    if mine:
                        told = True
                        yield each
            after = inbox.get(database, message.id)
            if mine or after is None or after.state == "queued":
                break
    if own is not None and not told:
        yield outcome(database, own, channel)


async def _carried(
    world: World, database: Database, peer: Peer, message: Message, *, follow: bool, wait: float
) -> AsyncGenerator[Outcome | Event]:
    """Deliver one message that is ours for a time. What was not begun is given back; what was, and of which
    nothing tells that it arrived, has failed, for nobody may type it again. A keeper that has it and waits
    for the end of a turn is not waited for any longer: it knows the message when it comes again."""
    assert peer.session is not None
    begun, patience = False, None if follow or peer.pane else max(wait, _BRIEF)
    text = _text(database, message)
    ticking = asyncio.ensure_future(_hold(database, message))
    said = speaking.send(world, peer.session, text, follow=follow, wait=wait, ident=message.id)
    try:
        async with contextlib.aclosing(said) as replies:
            while (each := await _next(replies, patience if begun else None)) is not None:
                begun = begun or isinstance(each, Accepted)
                if isinstance(each, Receipt):
                    inbox.ack(database, [message.id], each.channel, each.proof)
                    yield outcome(database, message.id)
                elif isinstance(each, Event):
                    yield each
    except TimeoutError:
        inbox.release(database, [message])
        yield Outcome(state="queued", channel="connection", proof="it waits for the end of the turn")
    except (UndeliveredError, UntypableError, KeeperError) as error:
        inbox.fail(database, message, (peer.pane and "tmux") or "connection", error.message)
        yield outcome(database, message.id)
    except RemudaError as error:
        if not begun:
            inbox.release(database, [message])
        yield Outcome(state="queued" if not begun else "leased", channel="", proof=error.message)
    finally:
        ticking.cancel()


async def _next(
    replies: AsyncGenerator[Accepted | Receipt | Event], seconds: float | None
) -> Accepted | Receipt | Event | None:
    """What is said next, if that is within so many seconds; None at the end."""
    async with asyncio.timeout(seconds):
        return await anext(replies, None)


def _text(database: Database, message: Message) -> str:
    """What is said to the peer: a person's prompt as it is, anybody else's in a frame."""
    sender = registry.get(database, message.sender)
    if message.kind == "query" and sender is not None and sender.runtime == PERSON:
        return message.text
    return framing.context([(message, sender.name if sender else "somebody")])


async def _hold(database: Database, message: Message) -> None:
    """Keep a message ours for as long as it takes."""
    while True:
        await asyncio.sleep(_HEARTBEAT)
        with contextlib.suppress(RemudaError):
            inbox.extend(database, message, _LEASE)


def place(world: World, name: str, what: str) -> Path:
    """The file that stands for something that only one process does at a time."""
    return world.folders.runtime / "peers" / f"{name}.{what}"


@contextlib.asynccontextmanager
async def locked(path: Path, seconds: float) -> AsyncIterator[bool]:
    """Be the only one, after whoever is before us, if that is not too long; whether we are. Whoever dies lets
    go."""
    handle, end = _opened(path), asyncio.get_running_loop().time() + seconds
    try:
        while not (ours := _taken(handle)) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_PAUSE)
        yield ours
    finally:
        os.close(handle)


def held(path: Path) -> bool:
    """Whether somebody has it."""
    if not path.exists():
        return False
    handle = _opened(path)
    try:
        return not _taken(handle)
    finally:
        os.close(handle)


def taken(path: Path) -> int | None:
    """Take it for as long as this process lives; None where somebody has it. Who only looks whether it is
    held takes it for a moment."""
    handle = _opened(path)
    for _ in range(_TRIES):
        if _taken(handle):
            return handle
        time.sleep(_PAUSE)
    os.close(handle)
    return None


def _opened(path: Path) -> int:
    private_folder(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def known(world: World, session: str) -> store.Session | None:
    """A session of this machine, as it truly is."""
    row = store.find(world.folders.database, session)
    return looking.look(world, row) if row else None
