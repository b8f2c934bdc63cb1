"""What comes of a message: the reply to it, or the screen of a pane at the end of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from remuda.core.errors import EXIT_TIMEOUT, RemudaError
from remuda.core.sql import Database
from remuda.operations.peer import delivery
from remuda.operations.session import panes
from remuda.operations.world import World
from remuda.peers import inbox, registry
from remuda.peers.inbox import PeerGoneError
from remuda.peers.model import Message, Peer, this_host

Got = TypeVar("Got")

_PAUSE = 0.2


class WaitedError(RemudaError):
    """What was waited for did not come in time."""

    exit_code = EXIT_TIMEOUT


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a message: the reply to it; of a pane, the screen at the end of its turn."""

    message: str
    reply: str | None = None
    sender: str | None = None
    screen: str | None = None


async def heard(world: World, database: Database, peer: Peer, message: Message) -> Heard:
    """The reply to a message, or, of a session of ours whose turn has ended without one, its screen."""
    while True:
        replies = inbox.replies(database, message.id)
        if replies:
            last = replies[-1]
            inbox.ack(database, [last.id], "wait", "read by whoever waited for it")
            sender = registry.get(database, last.sender) or peer
            return Heard(message=message.id, reply=last.text, sender=sender.name)
        state = delivery.outcome(database, message.id)
        if state.state == "failed":
            raise RemudaError(f"the message did not arrive: {state.proof}", "Send it again.")
        session = delivery.known(world, peer.session) if peer.session else None
        if state.state == "delivered" and session is not None and session.state == "ready":
            shown = panes.capture(world, session) if session.mode == "tmux" and session.pane else None
            return Heard(message=message.id, screen=shown)
        if session.state == "exited" if session else _died(database, peer):
            inbox.withdraw(database, message.id)
            raise PeerGoneError(f"{peer.name} went away before it answered", "Send it again.")
        await asyncio.sleep(_PAUSE)


def _died(database: Database, peer: Peer) -> bool:
    """Whether a peer of this machine is known to be gone, and was not merely silent for a while."""
    now = registry.get(database, peer.id)
    return now is None or (now.state == "offline" and now.process is not None and now.host == this_host())


class Deadline:
    """The moment up to which something is waited for; 0 seconds mean without end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = asyncio.get_running_loop().time() + seconds

    async def within(self, work: Awaitable[Got]) -> Got:
        """What comes of some work, if it comes in time."""
        left = self._end - asyncio.get_running_loop().time() if self._seconds else None
        try:
            async with asyncio.timeout(left):
                return await work
        except TimeoutError:
            raise WaitedError(
                f"nothing was heard within {self._seconds:g} s; the message is on record",
                "Look with 'remuda peer inbox', or wait longer with --timeout.",
            ) from None
