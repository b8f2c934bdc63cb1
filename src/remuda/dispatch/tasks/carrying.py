"""Tasks on record, as workers see them: claim, tell how far it has come, settle, hand back, take over.

Whoever holds a task shows what it holds (:class:`Held`) with every change. Once somebody else holds it,
nothing that the earlier holder says counts any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remuda.core.events import Event
from remuda.core.sql import Database, Transaction, Value
from remuda.dispatch.tasks import rows
from remuda.dispatch.tasks.events import HELD, record
from remuda.dispatch.tasks.model import Calling, Claimed, Ending, Held, Phase, Served, Task, begun, may_become
from remuda.dispatch.tasks.rows import marks

LONGEST_DELAY = 60.0
"""Seconds that a task is told to wait, at most: one that has to wait for longer was told so by a clock that
was set back since."""

LOST = "lost"
"""The outcome of an attempt whose worker died."""


def claim(db: Database, worker: str, served: Served, limit: int) -> list[Claimed]:
    """Take up to so many tasks out of the queue: the highest priority first, then the oldest."""
    with db.transaction() as t:
        sql, values = next_in_line(t, served, limit)
        now = t.now()
        return [_claimed(t, rows.struct(Task, row), worker, now) for row in t.rows(sql, *values)]


def next_in_line(t: Transaction, served: Served, limit: int) -> tuple[str, list[Value]]:
    """The statement that finds what is claimed next, and its values."""
    where, values = _served(served)
    now = t.now()
    sql = (
        f"{rows.TASK} WHERE state = 'queued' AND (expires_at IS NULL OR expires_at > ?)"
        f" AND (not_before IS NULL OR not_before <= ? OR not_before > ?) AND {where}"
        f" ORDER BY priority DESC, created_at, id LIMIT ?{t.skip_locked}"
    )
    return sql, [now, now, now + LONGEST_DELAY, *values, limit]


def waits(db: Database, served: Served) -> bool:
    """Whether anything is in the queue, to be claimed now or later."""
    if not db.exists():
        return False
    where, values = _served(served)
    with db.reading() as t:
        found = t.rows(
            "SELECT 1 FROM tasks WHERE state = 'queued'"  # noqa: S608
            f" AND (expires_at IS NULL OR expires_at > ?) AND {where} LIMIT 1",
            *(t.now(), *values),
        )
    return bool(found)


def _served(served: Served) -> tuple[str, list[Value]]:
    """The condition that a worker serves a task."""
    where, values = ["1 = 1"], list[Value]()
    if served.agents or served.tags:
        agents, tags = marks(served.agents), marks(served.tags)
        where.append(f"(agent IN ({agents}) OR agent IS NULL AND (tag IS NULL OR tag IN ({tags})))")
        values += [*served.agents, *served.tags]
    if served.without:
        where.append(f"(agent IS NULL OR agent NOT IN ({marks(served.without)}))")
        values += served.without
    if served.untagged:
        where.append(f"(agent IS NOT NULL OR tag IS NULL OR tag NOT IN ({marks(served.untagged)}))")
        values += served.untagged
    return " AND ".join(where), values


def _claimed(t: Transaction, task: Task, worker: str, now: float) -> Claimed:
    """Make a locked task ours, with a new attempt."""
    taken_over = task.state == "running"
    earlier = rows.attempts(t, task.id) if task.attempts else ()
    t.run(
        "UPDATE tasks SET state = 'running', worker = ?, started_at = coalesce(started_at, ?),"
        " not_before = NULL, attempts = attempts + 1, takeovers = takeovers + ?,"
        " revision = revision + 1 WHERE id = ?",
        *(worker, now, int(taken_over), task.id),
    )
    held = Held(task.id, worker, task.attempts + 1)
    _begin(t, held, Calling(task.agent or ""), "claimed", now)
    ours = rows.task(t, task.id)
    assert ours is not None
    return Claimed(ours, held, earlier)


def _begin(t: Transaction, held: Held, calling: Calling, phase: Phase, now: float) -> None:
    t.run(
        "INSERT INTO attempts (task, number, worker, agent, session, runtime_session, phase, began_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(held.task, held.attempt, held.worker, *msgspec.structs.astuple(calling), phase, now),
    )


def _is_held(t: Transaction, held: Held) -> bool:
    """Whether a task is still ours; if so, it stays locked until the transaction ends."""
    touched = t.run(
        f"UPDATE tasks SET revision = revision + 1 WHERE {HELD}",  # noqa: S608
        *msgspec.structs.astuple(held),
    )
    return bool(touched)


def holds(db: Database, held: Held) -> bool:
    """Whether a task is still ours."""
    with db.reading() as t:
        found = t.rows(f"SELECT 1 FROM tasks WHERE {HELD}", *msgspec.structs.astuple(held))  # noqa: S608
    return bool(found)


def move(db: Database, held: Held, phase: Phase, calling: Calling | None = None) -> bool:
    """Put on record how far the attempt comes next, before it does; False if the task is no longer ours."""
    with db.lasting() as t:
        if not _is_held(t, held):
            return False
        t.run("UPDATE attempts SET phase = ? WHERE task = ? AND number = ?", phase, held.task, held.attempt)
        if calling is not None:
            _call(t, held, calling)
    return True


def _call(t: Transaction, held: Held, calling: Calling) -> None:
    t.run(
        "UPDATE attempts SET agent = ?, session = coalesce(?, session),"
        " runtime_session = coalesce(?, runtime_session) WHERE task = ? AND number = ?",
        *(*msgspec.structs.astuple(calling), held.task, held.attempt),
    )
    t.run("UPDATE tasks SET session = coalesce(?, session) WHERE id = ?", calling.session, held.task)


def another(db: Database, held: Held, outcome: str, calling: Calling) -> Held | None:
    """End the attempt and begin the next one with another agent; what we hold then, None if it is no longer
    ours."""
    then = Held(held.task, held.worker, held.attempt + 1)
    with db.lasting() as t:
        if not _is_held(t, held):
            return None
        now = t.now()
        _over(t, held, outcome, "ended", now)
        t.run("UPDATE tasks SET attempts = attempts + 1 WHERE id = ?", held.task)
        _begin(t, then, calling, "starting", now)
        _call(t, then, calling)
    return then


def _over(t: Transaction, held: Held, outcome: str, phase: Phase | None, now: float) -> None:
    t.run(
        "UPDATE attempts SET ended_at = ?, outcome = ?, phase = coalesce(?, phase)"
        " WHERE task = ? AND number = ? AND ended_at IS NULL",
        *(now, outcome, phase, held.task, held.attempt),
    )


def settle(db: Database, held: Held, ending: Ending, events: Sequence[Event] = ()) -> bool:
    """End a task for good, with its last events; False if it is no longer ours."""
    if not may_become("running", ending.state) or ending.state == "queued":
        raise ValueError(f"{ending.state} does not end a task")
    with db.lasting() as t:
        if not _is_held(t, held):
            return False
        if events:
            record(t, held, events)
        now = t.now()
        _over(t, held, ending.error_kind or ending.state, "ended", now)
        t.run(
            "UPDATE tasks SET state = ?, result = ?, error_kind = ?, error = ?,"
            " session = coalesce(?, session), ended_at = ? WHERE id = ?",
            *(*msgspec.structs.astuple(ending), now, held.task),
        )
    return True


def hand_back(db: Database, held: Held, delay: float = 0.0) -> bool:
    """Put a task back into the queue, to be claimed again after so many seconds; only one whose agent was
    never started, in this attempt or an earlier one. One that is to be cancelled is cancelled instead."""
    with db.transaction() as t:
        if not _is_held(t, held) or begun(rows.attempts(t, held.task)):
            return False
        now = t.now()
        t.run("DELETE FROM attempts WHERE task = ? AND number = ?", held.task, held.attempt)
        t.run(
            "UPDATE tasks SET worker = NULL, started_at = NULL, not_before = ?,"
            " state = CASE WHEN cancel IS NULL THEN 'queued'"
            " ELSE 'cancelled' END, ended_at = CASE WHEN cancel IS NULL THEN NULL ELSE ? END,"
            " error_kind = CASE WHEN cancel IS NULL THEN NULL ELSE 'cancelled' END,"
            " error = cancel WHERE id = ?",
            *(now + min(delay, LONGEST_DELAY) if delay else None, now, held.task),
        )
    return True


def takeover(db: Database, worker: str, dead: str, served: Served, limit: int) -> list[Claimed]:
    """Make tasks of a worker that died ours, those that we serve, at most so many. Their attempts stay where
    they had come to: that tells whether an agent may have been started."""
    where, values = _served(served)
    with db.transaction() as t:
        now = t.now()
        found = t.rows(
            f"{rows.TASK} WHERE state = 'running' AND worker = ? AND {where}"
            f" ORDER BY created_at, id LIMIT ?{t.skip_locked}",
            *(dead, *values, limit),
        )
        tasks = [rows.struct(Task, row) for row in found]
        for task in tasks:
            _over(t, Held(task.id, dead, task.attempts), LOST, None, now)
        return [_claimed(t, task, worker, now) for task in tasks]
