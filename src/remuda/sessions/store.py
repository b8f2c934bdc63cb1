"""Remembers sessions: one row each, changed by compare-and-set, so that no writer undoes another's word."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.database import opened
from remuda.core.errors import UsageError
from remuda.core.events import Failure
from remuda.core.identity import lives
from remuda.sessions.lifecycle import State, may_become

Mode = Literal["headless", "connection", "tmux"]
"""How a session is held: one turn of ``remuda run``, a conversation that a keeper has, or a pane."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session, field by field as the table has them.

    ``source`` tells where the state is known from, and ``seen_at`` since when. ``holder`` is the process
    whose life it depends on: the run, the keeper, or the program in the pane. Every process of the session
    carries the ``mark``. ``failure`` says why it ended, if it did not end well; ``options`` is what a
    resumption needs.
    """

    id: str
    name: str | None = None
    agent: str
    runtime: str
    runtime_session: str | None
    cwd: str
    mode: Mode = "headless"
    state: State
    source: str = "record"
    seen_at: str
    started_at: str
    ended_at: str | None = None
    failure: str | None = None
    holder: str | None = None
    mark: str | None = None
    pane: str | None = None
    options: str = "{}"
    revision: int = 0


_FIELDS = tuple(field.name for field in msgspec.structs.fields(Session))
_COLUMNS = ", ".join(_FIELDS)
_PLACES = ", ".join("?" for _ in _FIELDS)
_INSERT = f"INSERT OR REPLACE INTO sessions ({_COLUMNS}) VALUES ({_PLACES})"  # noqa: S608 - our own names
_SELECT = f"SELECT {_COLUMNS} FROM sessions"  # noqa: S608
_UPDATE = f"UPDATE sessions SET ({_COLUMNS}) = ({_PLACES}) WHERE id = ? AND revision = ?"  # noqa: S608


def _session(row: tuple[object, ...]) -> Session:
    return msgspec.convert(dict(zip(_FIELDS, row, strict=True)), Session)


def _row(session: Session) -> tuple[object, ...]:
    return msgspec.structs.astuple(session)


def begin(database: Path, session: Session) -> Session:
    """Record a session that is about to run, for the first time or again. Among those that run, a name is
    given only once."""
    with opened(database) as connection:
        _check_name(connection, session)
        before = connection.execute(f"{_SELECT} WHERE id = ?", (session.id,)).fetchone()
        if before is not None:
            earlier = _session(before)
            ensure_over(earlier)
            session = _continued(earlier, session)
        connection.execute(_INSERT, _row(session))
    return session


def ensure_over(session: Session) -> None:
    """Refuse to take up a session that somebody holds."""
    if session.state != "exited" and session.holder and lives(session.holder):
        raise UsageError(f"session {session.id} runs already", "Send to it, or stop it first.")


def _continued(earlier: Session, session: Session) -> Session:
    """A session that is taken up again, by a run too, stays what it was: its name, its beginning, and what it
    takes to resume it."""
    named = session.name is not None
    return msgspec.structs.replace(
        session,
        name=session.name if named else earlier.name,
        options=session.options if named else earlier.options,
        started_at=earlier.started_at,
        revision=earlier.revision + 1,
    )


def _check_name(connection: sqlite3.Connection, session: Session) -> None:
    if session.name is None:
        return
    taken = connection.execute(
        "SELECT 1 FROM sessions WHERE name = ? AND state <> 'exited' AND id <> ?", (session.name, session.id)
    ).fetchone()
    if taken:
        raise UsageError(
            f"a session called {session.name} runs already",
            f"Choose another name, or 'remuda session stop {session.name}' first.",
        )


def change(database: Path, session_id: str, how: Callable[[Session], Session]) -> Session | None:
    """Change a session as ``how`` has it, as it is now; a step that cannot be taken leaves it as it is. None
    when there is no such session."""
    with opened(database) as connection:
        row = connection.execute(f"{_SELECT} WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            return None
        now = _session(row)
        then = how(now)
        if then == now or not may_become(now.state, then.state):
            return now
        then = msgspec.structs.replace(then, revision=now.revision + 1)
        done = connection.execute(_UPDATE, (*_row(then), session_id, now.revision)).rowcount
        return then if done else now


def swap(database: Path, seen: Session, then: Session) -> Session | None:
    """Change a session that is still as it was ``seen``; None when somebody else was first, or the step is
    none."""
    if not may_become(seen.state, then.state):
        return None
    then = msgspec.structs.replace(then, revision=seen.revision + 1)
    with opened(database) as connection:
        done = connection.execute(_UPDATE, (*_row(then), seen.id, seen.revision)).rowcount
    return then if done else None


def name(database: Path, session_id: str, runtime_session: str) -> None:
    """Record the agent's own id of a session as soon as it is known: whoever goes on after a crash needs
    it."""
    change(database, session_id, lambda row: msgspec.structs.replace(row, runtime_session=runtime_session))


def end(
    database: Path,
    session_id: str,
    now: str,
    failure: Failure | None,
    source: str,
    runtime_session: str | None = None,
) -> Session | None:
    """Record that a session has ended; what was on its way to it will not arrive."""

    def ended(row: Session) -> Session:
        if row.state == "exited":
            return row
        return msgspec.structs.replace(
            row,
            state="exited",
            source=source,
            seen_at=now,
            ended_at=now,
            failure=f"{failure.kind}: {failure.message}" if failure else None,
            runtime_session=runtime_session or row.runtime_session,
            holder=None,
        )

    session = change(database, session_id, ended)
    for message in messages(database, session_id, ("sent",)):
        move(database, message.id, "lost", now)
    return session


def find(database: Path, word: str) -> Session | None:
    """The session of this id, name, or id of its runtime's; one that runs before one that is over, and a
    newer before an older one."""
    if not database.exists():
        return None
    with opened(database) as connection:
        row = connection.execute(
            f"{_SELECT} WHERE id = ?1 OR name = ?1 OR runtime_session = ?1 "
            "ORDER BY state = 'exited', started_at DESC, id DESC LIMIT 1",
            (word,),
        ).fetchone()
    return _session(row) if row else None


def listed(database: Path, *, all_: bool = False, limit: int = 1000) -> list[Session]:
    """The sessions that run, or all, the newest first."""
    if not database.exists():
        return []
    which = "" if all_ else "WHERE state <> 'exited'"
    with opened(database) as connection:
        rows = connection.execute(
            f"{_SELECT} {which} ORDER BY started_at DESC, id DESC LIMIT ?", (limit,)
        ).fetchall()
    return [_session(row) for row in rows]


def forget(database: Path, before: str) -> list[Session]:
    """Remove the sessions that ended before a time; which they were."""
    if not database.exists():
        return []
    old = "state = 'exited' AND coalesce(ended_at, seen_at) < ?"
    with opened(database) as connection:
        rows = connection.execute(f"{_SELECT} WHERE {old}", (before,)).fetchall()
        connection.execute(
            f"DELETE FROM messages WHERE session IN (SELECT id FROM sessions WHERE {old})",  # noqa: S608
            (before,),
        )
        connection.execute(f"DELETE FROM sessions WHERE {old}", (before,))  # noqa: S608
    return [_session(row) for row in rows]


MessageState = Literal["queued", "sent", "arrived", "lost"]
"""Accepted; handed to the agent; confirmed by it; never to arrive."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for a session that runs. Its text is kept only as long as it may still have to be sent."""

    id: str
    session: str
    state: MessageState
    text: str | None
    bytes: int
    created_at: str
    moved_at: str
    proof: str = ""


_MESSAGE = tuple(field.name for field in msgspec.structs.fields(Message))
_OPEN: tuple[MessageState, ...] = ("queued", "sent")


def accept(database: Path, message: Message) -> None:
    """Record a message before anything is done with it."""
    with opened(database) as connection:
        connection.execute(
            f"INSERT INTO messages ({', '.join(_MESSAGE)}) VALUES ({', '.join('?' for _ in _MESSAGE)})",  # noqa: S608
            msgspec.structs.astuple(message),
        )


def move(database: Path, message_id: str, state: MessageState, at: str, proof: str = "") -> None:
    """Record what became of a message; once it is on its way its text is not kept any longer."""
    kept = "text" if state == "queued" else "NULL"
    with opened(database) as connection:
        connection.execute(
            f"UPDATE messages SET state = ?, moved_at = ?, proof = ?, text = {kept} "  # noqa: S608
            "WHERE id = ? AND state IN ('queued', 'sent')",
            (state, at, proof, message_id),
        )


def message(database: Path, message_id: str) -> Message | None:
    """The message of this id."""
    if not database.exists():
        return None
    with opened(database) as connection:
        row = connection.execute(
            f"SELECT {', '.join(_MESSAGE)} FROM messages WHERE id = ?",  # noqa: S608
            (message_id,),
        ).fetchone()
    return msgspec.convert(dict(zip(_MESSAGE, row, strict=True)), Message) if row else None


def messages(database: Path, session_id: str, states: Iterable[MessageState] = _OPEN) -> list[Message]:
    """The messages of a session in these states, in the order in which they were accepted."""
    if not database.exists():
        return []
    wanted = tuple(states)
    with opened(database) as connection:
        rows = connection.execute(
            f"SELECT {', '.join(_MESSAGE)} FROM messages "  # noqa: S608
            f"WHERE session = ? AND state IN ({', '.join('?' for _ in wanted)}) ORDER BY id",
            (session_id, *wanted),
        ).fetchall()
    return [msgspec.convert(dict(zip(_MESSAGE, row, strict=True)), Message) for row in rows]
