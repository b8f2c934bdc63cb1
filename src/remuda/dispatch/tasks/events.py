"""The events of a task on record, numbered without a gap over all of its attempts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remuda.core.events import Event
from remuda.core.sql import Database, Transaction
from remuda.dispatch.tasks.model import Held

HELD = "id = ? AND state = 'running' AND worker = ? AND attempts = ?"
"""The fence: true for the one who holds a task now, and for nobody else."""

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def append(db: Database, held: Held, events: Sequence[Event]) -> int | None:
    """Put events on record with the next numbers, all or none; the last number, None if the task is no
    longer ours."""
    with db.transaction() as t:
        return record(t, held, events)


def record(t: Transaction, held: Held, events: Sequence[Event]) -> int | None:
    """As :func:`append`, in a transaction that does more."""
    moved = t.run(
        f"UPDATE tasks SET last_seq = last_seq + ?, revision = revision + 1 WHERE {HELD}",  # noqa: S608
        len(events),
        *msgspec.structs.astuple(held),
    )
    if not moved:
        return None
    last = t.rows("SELECT last_seq FROM tasks WHERE id = ?", held.task)[0][0]
    assert isinstance(last, int)
    for seq, event in enumerate(events, last - len(events) + 1):
        text = msgspec.json.encode(msgspec.structs.replace(event, seq=seq)).decode()
        t.run("INSERT INTO task_events (task, seq, event) VALUES (?, ?, ?)", held.task, seq, text)
    return last


def after(db: Database, task: str, seq: int, limit: int = 500) -> list[Event]:
    """The events behind a sequence number, the oldest first."""
    with db.reading() as t:
        found = t.rows(
            "SELECT event FROM task_events WHERE task = ? AND seq > ? ORDER BY seq LIMIT ?", task, seq, limit
        )
    return [_decoder.decode(str(row[0])) for row in found]
