"""Remembers peers: one row for each, found again by exactly what is known of it."""

from __future__ import annotations

import msgspec

from remuda.core.errors import NotFoundError, UsageError
from remuda.core.identity import lives
from remuda.core.ids import ulid
from remuda.core.sql import Database, Row, Transaction, Value
from remuda.peers.model import PERSON, Peer, Sighting, State, completed, same, this_host, truly

_FIELDS = tuple(field.name for field in msgspec.structs.fields(Peer))
_COLUMNS = ", ".join(_FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM peers"  # noqa: S608 - our own names
_INSERT = f"INSERT INTO peers ({_COLUMNS}) VALUES ({', '.join('?' for _ in _FIELDS)})"  # noqa: S608
_UPDATE = f"UPDATE peers SET ({_COLUMNS}) = ({', '.join('?' for _ in _FIELDS)}) WHERE id = ?"  # noqa: S608


def _peer(row: Row) -> Peer:
    return msgspec.convert(dict(zip(_FIELDS, row, strict=True)), Peer, strict=False)


def _row(peer: Peer) -> tuple[Value, ...]:
    return tuple(int(value) if isinstance(value, bool) else value for value in msgspec.structs.astuple(peer))


def _one_at_a_time(t: Transaction) -> None:
    """Hold back whoever else registers until this transaction has ended."""
    t.run(
        "INSERT INTO cursors (name, position) VALUES ('peers', 0) "
        "ON CONFLICT (name) DO UPDATE SET position = cursors.position + 1"
    )


def register(database: Database, sight: Sighting, *, anew: bool = False) -> Peer:
    """Put a peer on record, or complete the row that it has already; ``anew``: its life begins now."""
    with database.transaction() as t:
        _one_at_a_time(t)
        now = t.now()
        rows = [
            _peer(row)
            for row in t.rows(f"{_SELECT} WHERE runtime = ? AND host = ?", sight.runtime, sight.host)
        ]
        known = next((row for row in _likely(rows) if same(row, sight)), None)
        if known is not None:
            peer = completed(known, sight, now, anew=anew)
            t.run(_UPDATE, *_row(peer), peer.id)
            return peer
        peer = _new(
            sight, {str(name) for (name,) in t.rows("SELECT name FROM peers WHERE state <> 'offline'")}, now
        )
        t.run(_INSERT, *_row(peer))
    return peer


def _likely(rows: list[Peer]) -> list[Peer]:
    """Those that are there before those that are gone, newer before older ones."""
    return sorted(rows, key=lambda row: (row.state != "offline", row.registered_at), reverse=True)


def _new(sight: Sighting, taken: set[str], now: float) -> Peer:
    wanted = sight.name or (PERSON if sight.runtime == PERSON else f"{sight.agent}-{ulid()[-4:].lower()}")
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    given = {field: getattr(sight, field) for field in msgspec.structs.asdict(sight) if field != "name"}
    return Peer(id=ulid(), name=name, registered_at=now, seen_at=now, **given)


def note(database: Database, peer_id: str, state: State) -> bool:
    """A sign of life, or of its end; whether there is such a peer."""
    with database.transaction() as t:
        return bool(t.run("UPDATE peers SET state = ?, seen_at = ? WHERE id = ?", state, t.now(), peer_id))


def adopt(database: Database, peer_id: str) -> None:
    """A person has taken a pane over: it never closes by itself."""
    with database.transaction() as t:
        t.run("UPDATE peers SET auto_spawned = 0, close_at = NULL WHERE id = ?", peer_id)


def keep_open(database: Database, peer_id: str) -> None:
    """It is at work again: not to be closed now."""
    with database.transaction() as t:
        t.run("UPDATE peers SET close_at = NULL WHERE id = ?", peer_id)


def close_later(database: Database, peer_id: str, seconds: float) -> float | None:
    """Its work is done: have it close in so many seconds, unless something new comes. When that is; None
    where something has come already."""
    with database.transaction() as t:
        now = t.now()
        done = t.run(
            "UPDATE peers SET close_at = ? WHERE id = ? AND auto_spawned = 1 AND close_at IS NULL "
            "AND NOT EXISTS (SELECT 1 FROM inbox WHERE peer = peers.id AND state IN ('queued', 'leased'))",
            now + seconds,
            peer_id,
        )
        return now + seconds if done else None


def close_now(database: Database, peer_id: str) -> bool:
    """Whether its time has come, and nothing new with it. From then on it takes no message."""
    with database.transaction() as t:
        return bool(
            t.run(
                "UPDATE peers SET state = 'offline', seen_at = ? WHERE id = ? AND auto_spawned = 1 "
                "AND close_at <= ? AND NOT EXISTS "
                "(SELECT 1 FROM inbox WHERE peer = peers.id AND state IN ('queued', 'leased'))",
                t.now(),
                peer_id,
                t.now(),
            )
        )


def listed(database: Database, *, all_: bool = False) -> list[Peer]:
    """The peers as they are now, by name; those that are gone only with ``all_``."""
    with database.transaction() as t:
        now, host = t.now(), this_host()
        rows = [_peer(row) for row in t.rows(f"{_SELECT} ORDER BY name, registered_at DESC")]
    peers = [truly(row, host=host, now=now, alive=_alive(row, host)) for row in rows]
    return [peer for peer in peers if all_ or peer.state != "offline"]


def _alive(peer: Peer, host: str) -> bool | None:
    return lives(peer.process) if peer.process and peer.host == host else None


def get(database: Database, peer_id: str) -> Peer | None:
    """The peer of this id, as it is now."""
    with database.transaction() as t:
        now, host = t.now(), this_host()
        rows = t.rows(f"{_SELECT} WHERE id = ?", peer_id)
    if not rows:
        return None
    peer = _peer(rows[0])
    return truly(peer, host=host, now=now, alive=_alive(peer, host))


def by_session(database: Database, session: str) -> Peer | None:
    """The peer that is a session of ours."""
    with database.transaction() as t:
        rows = t.rows(f"{_SELECT} WHERE session = ?", session)
    return _peer(rows[0]) if rows else None


def find(database: Database, word: str) -> Peer:
    """The peer of this name, id, beginning of an id, or session; those that are there come first."""
    peers = listed(database, all_=True)
    exact = [peer for peer in peers if word in (peer.id, peer.name, peer.session, peer.runtime_session)]
    found = exact or [peer for peer in peers if len(word) >= 6 and peer.id.startswith(word.upper())]
    alive = [peer for peer in found if peer.state != "offline"]
    if len(alive) > 1 or (not alive and len({peer.id for peer in found}) > 1 and not exact):
        raise UsageError(
            f"{word!r} could be {len(alive or found)} peers", "Name it by its id: 'remuda peer list'."
        )
    if not found:
        raise NotFoundError(f"there is no peer {word!r}", "See them with 'remuda peer list --all'.")
    return alive[0] if alive else max(found, key=lambda peer: peer.seen_at)


def forget(database: Database, older_than: float) -> int:
    """Remove the peers that have been gone for so many seconds, with their inboxes; how many."""
    gone = [peer.id for peer in listed(database, all_=True) if peer.state == "offline"]
    with database.transaction() as t:
        old = t.now() - older_than
        return sum(t.run("DELETE FROM peers WHERE id = ? AND seen_at < ?", each, old) for each in gone)
