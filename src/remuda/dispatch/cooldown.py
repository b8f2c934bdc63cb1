"""Agents that are left alone for a while, because they said that they are at their own limit."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.sql import Database

_REASON = 500


class Cooldown(msgspec.Struct, frozen=True):
    """Until when an agent is left alone (seconds since the epoch), and what it said."""

    agent: str
    kind: ErrorKind
    reason: str
    until: float


def note(db: Database, agent: str, kind: ErrorKind, reason: str, until: float) -> None:
    """Leave an agent alone until then; of two words about it the later end counts."""
    with db.transaction() as t:
        t.run(
            "INSERT INTO cooldowns (agent, until, kind, reason) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (agent) DO UPDATE SET until = excluded.until, kind = excluded.kind,"
            " reason = excluded.reason WHERE cooldowns.until < excluded.until",
            *(agent, until, kind, reason[:_REASON]),
        )


def current(db: Database, agents: Collection[str] | None = None) -> dict[str, Cooldown]:
    """Those of these agents, or of all, that are to be left alone now. Nothing is created for asking."""
    if not db.exists():
        return {}
    with db.reading() as t:
        rows = t.rows("SELECT agent, kind, reason, until FROM cooldowns WHERE until > ?", t.now())
    found = (Cooldown(*msgspec.convert(row, tuple[str, ErrorKind, str, float])) for row in rows)
    return {each.agent: each for each in found if agents is None or each.agent in agents}


def clear(db: Database, agent: str) -> None:
    """An agent answered: it is no longer left alone."""
    if not db.exists():
        return
    with db.transaction() as t:
        t.run("DELETE FROM cooldowns WHERE agent = ?", agent)
