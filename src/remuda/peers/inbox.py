"""Messages for peers: accepted once, handed out for a time, settled when somebody says that they arrived.

Looking is not taking. What is taken and never acknowledged comes back, so that a message may be handed out
twice, and never not at all; its id tells whoever gets it again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remuda.core.errors import NotFoundError, RemudaError
from remuda.core.ids import ulid
from remuda.core.sql import Database, Row, Transaction
from remuda.peers.model import LARGEST, Kind, Message

_FIELDS = tuple(field.name for field in msgspec.structs.fields(Message))
_COLUMNS = ", ".join(_FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM inbox"  # noqa: S608 - our own names
_INSERT = f"INSERT INTO inbox ({_COLUMNS}) VALUES ({', '.join('?' for _ in _FIELDS)})"  # noqa: S608
_VISIBLE = "peer = ? AND (state = 'queued' OR (state = 'leased' AND leased_until <= ?))"
_OPEN = "state IN ('queued', 'leased')"
_OURS = "id = ? AND state = 'leased' AND deliveries = ?"
_SETTLE = "UPDATE inbox SET state = ?, channel = ?, proof = ?, leased_until = NULL, moved_at = ?"


class InboxFullError(RemudaError):
    """So many messages wait already that no further one is accepted."""


class PeerGoneError(RemudaError):
    """The peer went away before the message was accepted."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent. A ``key`` makes sure that sending it again does not make it two."""

    peer: str
    sender: str
    text: str
    kind: Kind = "query"
    task: str | None = None
    reply_to: str | None = None
    key: str | None = None
    live: bool = True
    """Whether the peer has to be there. A reply waits for whoever asked."""


def _message(row: Row) -> Message:
    return msgspec.convert(dict(zip(_FIELDS, row, strict=True)), Message)


def enqueue(database: Database, draft: Draft) -> Message:
    """Accept a message, or find the one that was accepted under the same key and has not failed. A pane that
    was about to close stays open."""
    with database.transaction() as t:
        now = t.now()
        _hold(t, draft)
        if draft.key is not None:
            known = t.rows(f"{_SELECT} WHERE peer = ? AND key = ?", draft.peer, draft.key)
            if known and (before := _message(known[0])).state != "failed":
                return before
            t.run("DELETE FROM inbox WHERE peer = ? AND key = ?", draft.peer, draft.key)
        waiting = t.rows(f"SELECT count(*) FROM inbox WHERE peer = ? AND {_OPEN}", draft.peer)[0][0]  # noqa: S608
        assert isinstance(waiting, int)
        if waiting >= LARGEST:
            raise InboxFullError(
                f"{LARGEST} messages wait for this peer already",
                "Wait until it has read some: 'remuda peer inbox'.",
            )
        message = Message(
            id=ulid(),
            peer=draft.peer,
            sender=draft.sender,
            kind=draft.kind,
            text=draft.text,
            task=draft.task,
            reply_to=draft.reply_to,
            key=draft.key,
            created_at=now,
            moved_at=now,
        )
        t.run(_INSERT, *msgspec.structs.astuple(message))
    return message


def _hold(t: Transaction, draft: Draft) -> None:
    """Have the peer to ourselves until the message is accepted."""
    gone = " AND state <> 'offline'" if draft.live else ""
    if t.run(f"UPDATE peers SET close_at = NULL WHERE id = ?{gone}", draft.peer):  # noqa: S608
        return
    if t.rows("SELECT 1 FROM peers WHERE id = ?", draft.peer):
        raise PeerGoneError("the peer is not there any more", "See who is: 'remuda peer list'.")
    raise NotFoundError("there is no such peer", "See them with 'remuda peer list'.")


def peek(database: Database, peer_id: str, *, all_: bool = False, limit: int = LARGEST) -> list[Message]:
    """The messages that wait, or all that are on record, the oldest first. Nothing is taken."""
    which = "" if all_ else f" AND {_OPEN}"
    with database.transaction() as t:
        rows = t.rows(
            f"{_SELECT} WHERE peer = ?{which} ORDER BY created_at DESC, id DESC LIMIT ?", peer_id, limit
        )
    return [_message(row) for row in reversed(rows)]


def lease(
    database: Database, peer_id: str, *, count: int = LARGEST, seconds: float = 30.0, only: str | None = None
) -> list[Message]:
    """Take messages in order to deliver them, the oldest first, or the ``only`` one; what is not acknowledged
    in time comes back."""
    with database.transaction() as t:
        now = t.now()
        one, values = (" AND id = ?", (only,)) if only else ("", ())
        rows = t.rows(
            f"{_SELECT} WHERE {_VISIBLE}{one} ORDER BY created_at, id LIMIT ?{t.skip_locked}",
            peer_id,
            now,
            *values,
            count,
        )
        taken = [
            msgspec.structs.replace(
                message,
                state="leased",
                leased_until=now + seconds,
                deliveries=message.deliveries + 1,
                moved_at=now,
            )
            for message in map(_message, rows)
        ]
        for message in taken:
            t.run(
                "UPDATE inbox SET state = 'leased', leased_until = ?, deliveries = ?, moved_at = ? "
                "WHERE id = ?",
                message.leased_until,
                message.deliveries,
                now,
                message.id,
            )
    return taken


def extend(database: Database, taken: Message, seconds: float) -> bool:
    """Go on holding a message that is being delivered; whether it is still ours."""
    with database.transaction() as t:
        return bool(
            t.run(f"UPDATE inbox SET leased_until = ? WHERE {_OURS}", t.now() + seconds, *_held(taken))  # noqa: S608
        )


def ack(database: Database, ids: Sequence[str], channel: str, proof: str) -> int:
    """They have arrived: by which channel, and what proves it. How many were still open; to say it again
    changes nothing."""
    with database.transaction() as t:
        return sum(
            t.run(f"{_SETTLE} WHERE id = ? AND {_OPEN}", "delivered", channel, proof, t.now(), message_id)
            for message_id in ids
        )


def fail(database: Database, taken: Message, channel: str, why: str) -> bool:
    """It will never arrive, and why; whether it is still ours, so that we can say that."""
    with database.transaction() as t:
        return bool(t.run(f"{_SETTLE} WHERE {_OURS}", "failed", channel, why, t.now(), *_held(taken)))


def withdraw(database: Database, message_id: str) -> bool:
    """Take a message back that nobody delivers at this moment; whether that was so."""
    with database.transaction() as t:
        now = t.now()
        return bool(
            t.run(
                "UPDATE inbox SET state = 'failed', proof = 'withdrawn', moved_at = ? WHERE id = ?"
                " AND (state = 'queued' OR state = 'leased' AND leased_until < ?)",
                *(now, message_id, now),
            )
        )


def release(database: Database, taken: Sequence[Message]) -> int:
    """Give back what was taken and could not be delivered now, as far as nobody else has taken it since."""
    with database.transaction() as t:
        return sum(
            t.run(
                f"UPDATE inbox SET state = 'queued', leased_until = NULL, moved_at = ? WHERE {_OURS}",  # noqa: S608
                t.now(),
                *_held(message),
            )
            for message in taken
        )


def _held(taken: Message) -> tuple[str, int]:
    """By what a message is known as ours: nobody has taken it again."""
    return taken.id, taken.deliveries


def get(database: Database, message_id: str) -> Message | None:
    """The message of this id."""
    with database.transaction() as t:
        rows = t.rows(f"{_SELECT} WHERE id = ?", message_id)
    return _message(rows[0]) if rows else None


def keyed(database: Database, sender: str, key: str) -> list[Message]:
    """What somebody has sent under a key, to whomever, but for what never arrived."""
    with database.transaction() as t:
        rows = t.rows(f"{_SELECT} WHERE key = ? AND sender = ? AND state <> 'failed'", key, sender)
    return [_message(row) for row in rows]


def replies(database: Database, message_id: str) -> list[Message]:
    """What was answered to a message, the oldest first."""
    with database.transaction() as t:
        rows = t.rows(f"{_SELECT} WHERE reply_to = ? AND kind = 'reply' ORDER BY created_at, id", message_id)
    return [_message(row) for row in rows]


def waiting(database: Database) -> set[str]:
    """The peers for whom something waits."""
    with database.transaction() as t:
        return {str(peer) for (peer,) in t.rows(f"SELECT DISTINCT peer FROM inbox WHERE {_OPEN}")}  # noqa: S608
