"""Remembers sessions, so that one can be resumed by its own id whatever its runtime calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.database import opened

State = Literal["running", "ended", "failed"]

_INSERT = """
    INSERT INTO sessions (id, agent, runtime, runtime_session, cwd, state, started_at, ended_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, ended_at = NULL
"""
_END = """
    UPDATE sessions SET state = ?, runtime_session = coalesce(?, runtime_session), ended_at = ? WHERE id = ?
"""
_FIND = """
    SELECT id, agent, runtime, runtime_session, cwd, state, started_at, ended_at FROM sessions
    WHERE id = ?1 OR runtime_session = ?1 ORDER BY started_at DESC LIMIT 1
"""


class Session(msgspec.Struct, frozen=True):
    """One run of an agent, field by field as the table has them."""

    id: str
    agent: str
    runtime: str
    runtime_session: str | None
    cwd: str
    state: State
    started_at: str
    ended_at: str | None = None


def begin(database: Path, session: Session) -> None:
    """Record a session that is about to run, for the first time or again."""
    with opened(database) as connection:
        connection.execute(_INSERT, msgspec.structs.astuple(session))


def end(database: Path, session_id: str, state: State, runtime_session: str | None, ended_at: str) -> None:
    """Record how a session ended."""
    with opened(database) as connection:
        connection.execute(_END, (state, runtime_session, ended_at, session_id))


def find(database: Path, session_id: str) -> Session | None:
    """The newest session with this id, ours or its runtime's."""
    if not database.exists():
        return None
    with opened(database) as connection:
        row = connection.execute(_FIND, (session_id,)).fetchone()
    return Session(*row) if row else None
