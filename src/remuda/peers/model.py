"""What a peer is and what it is sent, and the pure decisions about both."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

State = Literal["online", "busy", "waiting", "offline"]
"""Takes a message now; in a turn; something asks for a person's word; gone."""

Kind = Literal["query", "reply", "broadcast", "notification"]

Passage = Literal["queued", "leased", "delivered", "failed"]
"""On record; handed to somebody who delivers it, for a time; arrived, with a proof; never to arrive."""

ORCHESTRATOR = "orchestrator"
"""The role of whoever only gives work to others: prompts are never routed there."""

PERSON = "person"
"""What stands for a runtime where the peer is a person at a shell."""

STALE = 60.0
"""Seconds without a sign of life after which a peer whose process nobody can see counts as gone."""

LARGEST = 256
"""How many messages may wait in one inbox."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A live session that can be messaged, field by field as the table has it.

    ``session`` is Remuda's own id of it, ``runtime_session`` the agent CLI's. ``process`` is the process
    whose life it depends on. ``source`` tells who made it known: a session of ours, a hook, a person, or the
    message that a pane was opened for (``spawn``). One that is ``auto_spawned`` closes when its work is done,
    at ``close_at``.
    """

    id: str
    name: str
    agent: str
    runtime: str
    host: str
    cwd: str
    session: str | None = None
    runtime_session: str | None = None
    pane: str | None = None
    process: str | None = None
    role: str = ""
    state: State = "online"
    source: str = "session"
    auto_spawned: bool = False
    close_at: float | None = None
    registered_at: float = 0.0
    seen_at: float = 0.0


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who says that a peer is there, with all that they know of it."""

    agent: str
    runtime: str
    host: str
    cwd: str
    name: str = ""
    session: str | None = None
    runtime_session: str | None = None
    pane: str | None = None
    process: str | None = None
    role: str = ""
    state: State = "online"
    source: str = "session"
    auto_spawned: bool = False


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message in an inbox, and what has become of it."""

    id: str
    peer: str
    sender: str
    kind: Kind
    text: str
    task: str | None = None
    reply_to: str | None = None
    key: str | None = None
    state: Passage = "queued"
    leased_until: float | None = None
    deliveries: int = 0
    channel: str = ""
    proof: str = ""
    created_at: float = 0.0
    moved_at: float = 0.0


def this_host() -> str:
    """The name that this machine goes by."""
    return os.uname().nodename


def same(row: Peer, sight: Sighting) -> bool:
    """Whether a sighting is of a peer that is known already. What is known of both decides: a session of
    ours, the process, the runtime's session. Where nothing of that is known of both, everything has to be the
    same, and what is missing only matches what is missing."""
    if (row.runtime, row.host) != (sight.runtime, sight.host):
        return False
    if row.session and sight.session:
        return row.session == sight.session
    if row.process and row.process == sight.process:
        return True
    if row.runtime_session and sight.runtime_session:
        return row.runtime_session == sight.runtime_session
    return _identity(row) == _identity(sight)


def _identity(of: Peer | Sighting) -> tuple[str | None, ...]:
    return (of.cwd, of.session, of.runtime_session, of.pane, of.process)


def closing(peer: Peer, now: float) -> bool:
    """Whether the time of a pane that closes by itself has come."""
    return peer.close_at is not None and peer.close_at <= now


def completed(row: Peer, sight: Sighting, now: float, *, anew: bool = False) -> Peer:
    """A known peer with what a sighting adds. What was known stays, but for what changes in a life: the
    state, the folder, and the runtime's session, which a person may begin anew. Of one whose life begins
    ``anew`` the sighting tells whether it closes by itself; one that is closing takes no prompt."""
    ends = not anew and closing(row, now)
    return msgspec.structs.replace(
        row,
        cwd=sight.cwd if sight.source == row.source else row.cwd,
        session=row.session or sight.session,
        runtime_session=sight.runtime_session or row.runtime_session,
        pane=row.pane or sight.pane,
        process=_process(row, sight),
        role=sight.role or row.role,
        state="busy" if ends and sight.state == "online" else sight.state,
        auto_spawned=sight.auto_spawned if anew else row.auto_spawned,
        close_at=None if anew else row.close_at,
        seen_at=now,
    )


def _process(row: Peer, sight: Sighting) -> str | None:
    """The process that a peer depends on: of a session of ours, the one that we know it by."""
    own = row.session is not None and sight.session is None
    return row.process or sight.process if own else sight.process or row.process


def truly(peer: Peer, *, host: str, now: float, alive: bool | None) -> Peer:
    """A peer as it is now; ``alive`` is what is known of its process, from the machine it is on."""
    if peer.state == "offline" or peer.runtime == PERSON:
        return peer
    seen = peer.host == host and alive is not None
    gone = not alive if seen else now - peer.seen_at > STALE
    return msgspec.structs.replace(peer, state="offline") if gone else peer
