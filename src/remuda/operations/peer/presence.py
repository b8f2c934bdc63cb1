"""Who is there: the sessions of this machine as they truly are, and whoever else is on record; who asks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.core import clock, log
from remuda.core.errors import RemudaError
from remuda.core.identity import ancestors, identity
from remuda.core.sql import Database
from remuda.dispatch import origin
from remuda.operations.session import looking
from remuda.operations.world import World
from remuda.peers import inbox, registry
from remuda.peers.model import ORCHESTRATOR, PERSON, Peer, Sighting, State, this_host
from remuda.sessions import lifecycle, store
from remuda.sessions.store import Session

_STATES: dict[lifecycle.State, State] = {
    "starting": "busy",
    "dialog": "waiting",
    "ready": "online",
    "working": "busy",
    "waiting": "waiting",
    "exited": "offline",
}
SPAWN = "spawn"
"""The source of a peer in a pane that was opened for a message."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A peer as people and programs see it; ``age`` is how many seconds ago it was last heard of, ``unread``
    how many messages wait for it."""

    id: str
    name: str
    agent: str
    runtime: str
    state: State
    host: str
    cwd: str
    session: str | None
    runtime_session: str | None
    pane: str | None
    role: str
    source: str
    auto_spawned: bool
    close_at: str | None
    registered_at: str
    age: float
    unread: int


class Peers(msgspec.Struct, frozen=True):
    """The peers, by name."""

    peers: list[Shown]


@contextlib.contextmanager
def shared(world: World) -> Iterator[Database]:
    """The shared database, for as long as it is needed."""
    database = world.shared()
    try:
        yield database
    finally:
        database.close()


def sighting(session: Session, *, opened: bool = False, closes: bool = False) -> Sighting:
    """A session of ours as a peer; ``opened`` for a message, and to be closed after it."""
    return Sighting(
        agent=session.agent,
        runtime=session.runtime,
        host=this_host(),
        cwd=session.cwd,
        name=session.name or "",
        session=session.id,
        pane=session.pane,
        process=session.holder,
        state=_STATES[session.state],
        source=SPAWN if opened else "session",
        auto_spawned=closes,
    )


def announce(world: World, session: Session, *, opened: bool = False, closes: bool = False) -> None:
    """Make a session known that is about to start. It starts also where the database does not answer: the
    next look makes up for it."""
    try:
        with shared(world) as database:
            registry.register(database, sighting(session, opened=opened, closes=closes), anew=True)
    except RemudaError as error:
        log.warn("the session is not known to others yet", reason=error.message)


def adopt(world: World, session: Session) -> None:
    """A person looks at a session: from then on it never closes by itself."""
    with contextlib.suppress(RemudaError), shared(world) as database:
        if (peer := registry.by_session(database, session.id)) is not None:
            registry.adopt(database, peer.id)


def look(world: World, database: Database, *, all_: bool = False) -> list[Peer]:
    """The peers as they are: the sessions of this machine by their panes and keepers, others by what was
    heard of them."""
    for session in looking.listed(world):
        if session.mode != "headless":
            registry.register(database, sighting(session))
    peers = registry.listed(database, all_=True)
    for peer in peers:
        if (
            peer.state != "offline"
            and peer.session
            and peer.host == this_host()
            and _over(world, peer.session)
        ):
            registry.note(database, peer.id, "offline")
    return registry.listed(database, all_=all_)


def _over(world: World, session: str) -> bool:
    """Whether a session is known to be over; one that is not known here may be of another home."""
    known = store.find(world.folders.database, session)
    return known is not None and known.state == "exited"


def shown(database: Database, peer: Peer) -> Shown:
    """The public view of a peer."""
    fields = {field.name: getattr(peer, field.name, None) for field in msgspec.structs.fields(Shown)}
    with database.transaction() as t:
        age = max(0.0, t.now() - peer.seen_at)
    return msgspec.convert(
        {
            **fields,
            "close_at": None if peer.close_at is None else clock.rfc3339(peer.close_at),
            "registered_at": clock.rfc3339(peer.registered_at),
            "age": round(age, 3),
            "unread": len(inbox.peek(database, peer.id)),
        },
        Shown,
    )


def callers(world: World, peers: list[Peer]) -> list[Peer]:
    """The peers on whose behalf something is done: the sessions that it was started from, and those among
    whose descendants it is, the nearest first."""
    above = [link.session for link in reversed(origin.here(world.environ))]
    processes = [identity(pid) for pid in ancestors(world.caller or os.getpid())]
    named = [peer for each in above for peer in peers if each == peer.session]
    kin = [peer for each in processes for peer in peers if peer.host == this_host() and peer.process == each]
    return list(dict.fromkeys((*kin, *named)))


def myself(world: World, database: Database, peers: list[Peer]) -> Peer:
    """Who sends: the session that this process runs in, or else the person at this machine."""
    above = callers(world, peers)
    if above:
        return above[0]
    return registry.register(
        database,
        Sighting(
            agent=PERSON,
            runtime=PERSON,
            host=this_host(),
            cwd=str(Path(world.environ.get("HOME", "/"))),
            role=ORCHESTRATOR,
            source=PERSON,
        ),
    )
