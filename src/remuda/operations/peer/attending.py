"""The program that looks after one peer: brings it what waits, closes the pane that was opened for a message
once its work has ended, and, where machines share a database, tells the others that the peer is there.

It is started detached, holds a lock as long as it lives, and knows nothing that is not on record: where it is
killed, the next verb that looks at peers starts another.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from remuda.core.environment import ORIGIN
from remuda.core.errors import RemudaError
from remuda.core.reaper import MARK
from remuda.core.sql import URL, Database, StoreGoneError
from remuda.operations.peer import delivery
from remuda.operations.peer.presence import shared, sighting
from remuda.operations.session import panes, showing, speaking
from remuda.operations.world import World, open_world
from remuda.peers import inbox, registry
from remuda.peers.model import Peer, this_host
from remuda.runtimes.screens import Screen
from remuda.sessions.store import Session

PROGRAM = "from remuda.operations.peer.attending import main; main()"
_ATTENDS = "attends"
_LOOK = 2.0
_SETTLED = 2.0
"""Seconds that a pane has to be ready after an answer, until its turn counts as over …"""

_SILENT = 30.0
"""… and after no answer at all."""


class Charge(msgspec.Struct, frozen=True):
    """Whom to look after."""

    peer: str
    cwd: str


def needed(world: World, peer: Peer, waiting: set[str]) -> bool:
    """Whether there is something to do for a peer of this machine that nobody does."""
    if peer.state == "offline" or peer.host != this_host() or peer.session is None:
        return False
    if not (peer.auto_spawned or peer.id in waiting or _far_and_wide(world)):
        return False
    reached = delivery.channel_of(world, peer) in ("connection", "tmux")
    return reached and not delivery.held(delivery.place(world, peer.id, _ATTENDS))


def _far_and_wide(world: World) -> bool:
    """Whether other machines look into the same database, who cannot see for themselves who is here."""
    return bool(world.environ.get(URL) or world.config.database_url)


def announced(world: World, session: Session) -> Session:
    """A session that has begun, looked after from then on where other machines may send to it."""
    if _far_and_wide(world) and session.state != "exited":
        with contextlib.suppress(StoreGoneError), shared(world) as database:
            ensure(world, database, [registry.register(database, sighting(session))])
    return session


def ensure(world: World, database: Database, peers: list[Peer]) -> None:
    """Have all peers of this machine looked after who need it."""
    waiting = inbox.waiting(database)
    for peer in peers:
        if needed(world, peer, waiting):
            _spawn(world, peer)


def _spawn(world: World, peer: Peer) -> None:
    """Start the program, detached from us, with none of our marks and nothing of the chain that we are in."""
    environ = {name: value for name, value in world.environ.items() if name not in (MARK, ORIGIN)}
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        cwd=Path("/"),
        start_new_session=True,
    )
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(msgspec.json.encode(Charge(peer.id, str(world.cwd))))
        child.stdin.close()
    threading.Thread(target=child.wait, daemon=True).start()  # where we outlive it, no zombie stays


def main() -> None:
    """Look after the peer that is named on standard input, unless somebody does already."""
    told = sys.stdin.buffer.read()
    if not told:
        return
    charge = msgspec.json.decode(told, type=Charge)
    world = open_world(cwd=Path(charge.cwd))
    if delivery.taken(delivery.place(world, charge.peer, _ATTENDS)) is None:
        return
    with shared(world) as database:
        asyncio.run(attend(world, database, charge.peer))


async def attend(world: World, database: Database, peer_id: str) -> None:
    """Look after a peer until nothing is left to do, or nobody is there any more. A database that does not
    answer is waited for."""
    peer: Peer | None = None
    while True:
        try:
            peer = registry.get(database, peer_id)
            if peer is None or peer.state == "offline" or not await _attended(world, database, peer):
                return
        except StoreGoneError:
            await asyncio.sleep(_LOOK)
            if peer is None or _session(world, peer) is None:
                return


def _session(world: World, peer: Peer) -> Session | None:
    session = delivery.known(world, peer.session or "")
    return None if session is None or session.state == "exited" else session


async def _attended(world: World, database: Database, peer: Peer) -> bool:
    """Deliver what waits; else, for a pane that closes by itself, wait for the end of its work and close it;
    whether something is left to do."""
    session = _session(world, peer)
    if session is None:
        registry.note(database, peer.id, "offline")
        return False
    registry.register(database, sighting(session))
    if inbox.peek(database, peer.id):
        async with contextlib.aclosing(delivery.deliver(world, database, peer, None, wait=_LOOK)) as said:
            async for _ in said:
                pass
        await asyncio.sleep(0.1)
    elif not peer.auto_spawned or session.mode != "tmux":
        await asyncio.sleep(_LOOK if _far_and_wide(world) else 0)
        return _far_and_wide(world)
    elif peer.close_at is None:
        await _until_done(world, database, peer, session)
    else:
        await _close(world, database, peer, session)
    return True


async def _until_done(world: World, database: Database, peer: Peer, session: Session) -> None:
    """Wait a while for the end of the work, and have the pane close some time after it."""
    ready = 0.0
    loop = asyncio.get_running_loop()
    while not (inbox.peek(database, peer.id) or _adopted(world, database, peer, session)):
        began = loop.time()
        session, waited = await panes.wait_for(world, session, _ready, _LOOK)
        if session.state == "exited":
            return
        if waited.screen.state != "ready":
            ready = 0.0
            continue
        await asyncio.sleep(max(0.0, 0.5 - (loop.time() - began)))
        ready += loop.time() - began
        if await _over(world, database, peer, session, ready):
            grace = world.config.peer.auto_close_grace_seconds
            registry.close_later(database, peer.id, grace)
            return


def _ready(screen: Screen) -> bool:
    return screen.state == "ready"


async def _over(world: World, database: Database, peer: Peer, session: Session, ready: float) -> bool:
    """Whether the work of a pane has ended: it is ready, has been for a while, and has answered whatever it
    was told; one that never answers has failed at it."""
    if ready < _SETTLED:
        return False
    usage = (await showing.show(world, session.id)).usage
    told = sum(each.state == "delivered" for each in inbox.peek(database, peer.id, all_=True))
    return ready >= _SILENT or (usage is not None and usage.answers >= max(told, 1))


def _adopted(world: World, database: Database, peer: Peer, session: Session) -> bool:
    """Whether somebody looks at the pane: from then on it is theirs."""
    with contextlib.suppress(RemudaError):
        if panes.server(world).watched(session.id):
            registry.adopt(database, peer.id)
            return True
    return False


async def _close(world: World, database: Database, peer: Peer, session: Session) -> None:
    """Close the pane when its time has come; never one that somebody looks at."""
    assert peer.close_at is not None
    if _adopted(world, database, peer, session):
        return
    if session.state != "ready":
        registry.keep_open(database, peer.id)
        return
    with database.transaction() as t:
        left = peer.close_at - t.now()
    if left > 0:
        await asyncio.sleep(min(left, 0.5))
    elif registry.close_now(database, peer.id):
        await speaking.stop(world, session.id)
