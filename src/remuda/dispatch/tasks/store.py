"""Tasks on record, as those see them who hand them in: submit, look, cancel, and let go of what is old.

Every change is one short transaction with a guard on the state, so that of several at once only one has its
way.
"""

from __future__ import annotations

import msgspec

from remuda.core.errors import NotFoundError, UsageError
from remuda.core.ids import ULID, is_ulid_part, ulid
from remuda.core.sql import Database, Reading, Row, Value
from remuda.dispatch.tasks import rows
from remuda.dispatch.tasks.model import Attempt, Submission, Summary, Task, TaskState
from remuda.dispatch.tasks.rows import marks

_DAY = 86_400.0
_ASKER = "origin"


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks to list: of these states and this agent (any where none is named), at most so many, and
    those that were submitted before the one with the id ``before``."""

    states: tuple[TaskState, ...] = ()
    agent: str | None = None
    limit: int = 50
    before: str | None = None


def submit(db: Database, asked: Submission) -> tuple[Task, bool]:
    """Put a task into the queue; the task, and whether it is new. The same key again gives the same task."""
    ident = ulid()
    with db.lasting() as t:
        now = t.now()
        expires = None if asked.expires_in is None else now + asked.expires_in
        new = t.run(
            "INSERT INTO tasks"
            " (id, state, key, prompt, request, agent, tag, priority, created_at, expires_at)"
            " VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
            *(ident, asked.key, asked.prompt, asked.request, asked.agent, asked.tag, asked.priority),
            *(now, expires),
        )
        if new:
            return _known(t, ident), True
        found = t.rows(f"{rows.TASK} WHERE key = ?", asked.key)
    if not found:
        return submit(db, asked)
    task = rows.struct(Task, found[0])
    if task.prompt != asked.prompt or not _alike(task.request, asked.request):
        raise UsageError(
            f"the key belongs to another request already, task {task.id}",
            "Give every request a key of its own; the same key again is for the same request.",
        )
    return task, False


def _alike(one: str, other: str) -> bool:
    """Whether two requests ask for the same; who asks does not matter."""
    kept, new = (msgspec.json.decode(text, type=dict[str, object]) for text in (one, other))
    return {**kept, _ASKER: None} == {**new, _ASKER: None}


def _known(t: Reading, ident: str) -> Task:
    task = rows.task(t, ident)
    if task is None:
        raise NotFoundError(f"there is no task {ident}", "'remuda task list' shows what there is.")
    return task


def get(db: Database, ident: str) -> tuple[Task, tuple[Attempt, ...]]:
    """A task and its attempts."""
    with db.reading() as t:
        return _known(t, ident), rows.attempts(t, ident)


def look(db: Database, ident: str) -> Task:
    """A task alone."""
    with db.reading() as t:
        return _known(t, ident)


def revisions(db: Database, idents: tuple[str, ...]) -> dict[str, tuple[int, TaskState]]:
    """How often each task has changed, and its state: what somebody who waits looks at again and again."""
    with db.reading() as t:
        found = t.rows(
            f"SELECT id, revision, state FROM tasks WHERE id IN ({marks(idents)})",  # noqa: S608
            *idents,
        )
    return msgspec.convert({row[0]: row[1:] for row in found}, dict[str, tuple[int, TaskState]])


def wanted(db: Database, idents: tuple[str, ...]) -> list[tuple[str | None, str | None]]:
    """The agents and tags that those of these tasks are for which have not ended."""
    with db.reading() as t:
        found = t.rows(
            "SELECT DISTINCT agent, tag FROM tasks"  # noqa: S608
            f" WHERE id IN ({marks(idents)}) AND state IN ('queued', 'running')",
            *idents,
        )
    return msgspec.convert(found, list[tuple[str | None, str | None]])


def find(db: Database, name: str) -> str:
    """The id that a whole id or the beginning of one stands for."""
    wanted, found = name.upper(), list[Row]()
    if is_ulid_part(wanted) and db.exists():
        with db.reading() as t:
            found = t.rows(
                "SELECT id FROM tasks WHERE id >= ? AND id <= ? ORDER BY id LIMIT 2",
                *(wanted.ljust(ULID, "0"), wanted.ljust(ULID, "Z")),
            )
    if not found:
        raise NotFoundError("there is no such task", "'remuda task list' shows what there is.")
    if len(found) > 1:
        raise UsageError("several tasks have ids that begin like this", "Give more of the id.")
    return str(found[0][0])


def listed(db: Database, which: Listing) -> list[Summary]:
    """Tasks, the newest first."""
    if not db.exists():
        return []
    where, values = ["1 = 1"], list[Value]()
    if which.states:
        where.append(f"state IN ({marks(which.states)})")
        values += which.states
    if which.agent is not None:
        where.append("agent = ?")
        values.append(which.agent)
    if which.before is not None:
        where.append("id < ?")
        values.append(which.before)
    sql = f"{rows.SUMMARY} WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
    with db.reading() as t:
        return [rows.struct(Summary, row) for row in t.rows(sql, *values, which.limit)]


def request_cancel(db: Database, ident: str, why: str) -> Task:
    """Cancel a task: at once if it waits; one that runs is marked, for its worker to end it. One that has
    ended stays as it is."""
    with db.transaction() as t:
        t.run(
            "UPDATE tasks SET cancel = coalesce(cancel, ?), revision = revision + 1,"
            " state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END,"
            " ended_at = CASE state WHEN 'queued' THEN ? END,"
            " error_kind = CASE state WHEN 'queued' THEN 'cancelled' END,"
            " error = CASE state WHEN 'queued' THEN ? END WHERE id = ? AND state IN ('queued', 'running')",
            *(why, t.now(), why, ident),
        )
        return _known(t, ident)


def expire_due(db: Database, limit: int = 500) -> list[str]:
    """End the tasks that waited longer than they were meant to; which ones. As long as there is none, nobody
    is held up."""
    if not db.exists():
        return []
    due_by = "SELECT id FROM tasks WHERE state = 'queued' AND expires_at IS NOT NULL AND expires_at <= ?"
    with db.reading() as look:
        if not look.rows(f"{due_by} LIMIT 1", look.now()):
            return []
    with db.transaction() as t:
        now = t.now()
        due = t.rows(f"{due_by} ORDER BY expires_at LIMIT ?{t.skip_locked}", now, limit)
        for (ident,) in due:
            t.run(
                "UPDATE tasks SET state = 'expired', ended_at = ?, error_kind = 'timeout', error = ?,"
                " revision = revision + 1 WHERE id = ?",
                *(now, "it was not started in the time that it was given", ident),
            )
    return [str(row[0]) for row in due]


def sweep(db: Database, days: float, limit: int = 500) -> list[str]:
    """Delete tasks that ended so many days ago, with their events, at most so many at a time; which ones."""
    if not db.exists():
        return []
    with db.transaction() as t:
        old = t.rows(
            "SELECT id FROM tasks"  # noqa: S608
            " WHERE ended_at IS NOT NULL AND ended_at < ?"
            f" ORDER BY ended_at LIMIT ?{t.skip_locked}",
            *(t.now() - days * _DAY, limit),
        )
        for (ident,) in old:
            t.run("DELETE FROM tasks WHERE id = ?", ident)
    return [str(row[0]) for row in old]
