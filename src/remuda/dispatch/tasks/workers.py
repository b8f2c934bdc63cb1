"""Workers on record: who carries tasks out, who still lives, and what each is on record to be doing."""

from __future__ import annotations

import time

import msgspec

from remuda.core.identity import lives, place
from remuda.core.sql import Database, Reading
from remuda.dispatch.tasks import rows
from remuda.dispatch.tasks.model import Duty, Held, Served, Worker
from remuda.dispatch.tasks.scheduling import beat


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that begins: its process and the place of that, for what, how many tasks at a time, and where
    it is woken."""

    id: str
    host: str
    process: str
    served: Served
    slots: int
    wake: str = ""


def register(db: Database, new: Registration) -> None:
    """Put a worker on record; again, if it was struck off although it lives."""
    with db.transaction() as t:
        now = t.now()
        t.run("DELETE FROM workers WHERE id = ?", new.id)
        t.run(
            "INSERT INTO workers (id, host, process, agents, tags, slots, wake, started_at, seen_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(new.id, new.host, new.process, _list(new.served.agents), _list(new.served.tags)),
            *(new.slots, new.wake, now, now),
        )


def _list(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode()


def heartbeat(db: Database, worker: str) -> list[Duty] | None:
    """A sign of life. What the worker is on record to be doing: what it does beyond that was taken from it.
    None if it was struck off: it has to end what it does, and register anew."""
    with db.transaction() as t:
        if not t.run("UPDATE workers SET seen_at = ? WHERE id = ?", t.now(), worker):
            return None
        found = t.rows(
            "SELECT id, attempts, cancel FROM tasks WHERE state = 'running' AND worker = ?", worker
        )
    told = msgspec.convert(found, list[tuple[str, int, str | None]])
    return [Duty(Held(task, worker, attempt), cancel) for task, attempt, cancel in told]


def retire(db: Database, worker: str) -> None:
    """Put on record that a worker takes nothing new."""
    with db.transaction() as t:
        t.run("UPDATE workers SET slots = 0 WHERE id = ?", worker)


def deregister(db: Database, worker: str) -> bool:
    """Strike a worker off the record, unless tasks are still on record as its own: those have to be taken
    over first."""
    with db.transaction() as t:
        gone = t.run(
            "DELETE FROM workers WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM tasks WHERE state = 'running' AND worker = workers.id)",
            worker,
        )
    return bool(gone)


def known(db: Database) -> list[Worker]:
    """All workers on record, the oldest first."""
    with db.reading() as t:
        return _all(t)


def _all(t: Reading) -> list[Worker]:
    return [rows.struct(Worker, row) for row in t.rows(f"{rows.WORKER} ORDER BY started_at, id")]


def living(db: Database, lease: float) -> list[Worker]:
    """The workers that live, as far as can be told."""
    with db.reading() as t:
        now, all_ = t.now(), _all(t)
    return [worker for worker in all_ if not _ended(worker, now, lease)]


class Observed:
    """How long the workers elsewhere have given no sign of life, by our own clock: that of the database may
    be set."""

    def __init__(self) -> None:
        self._signs: dict[str, tuple[float, float]] = {}

    def note(self, found: list[Worker]) -> None:
        """See what signs there are now."""
        now = time.monotonic()
        new = {each.id: (each.seen_at, now) for each in found}
        before = self._signs
        self._signs = {
            ident: before[ident] if before.get(ident, (None,))[0] == sign[0] else sign
            for ident, sign in new.items()
        }

    def silent(self, worker: Worker) -> float:
        """Seconds since its last sign came to be seen."""
        return time.monotonic() - self._signs[worker.id][1]


def dead(db: Database, lease: float, observed: Observed) -> list[str]:
    """The ids of workers that died, those included that only their tasks still tell of. One that is silent by
    the database's clock also has to miss a beat by ours: a clock that is set forward kills nobody."""
    with db.reading() as t:
        now, all_ = t.now(), _all(t)
        unknown = t.rows(
            "SELECT DISTINCT worker FROM tasks WHERE state = 'running'"
            " AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = tasks.worker)"
        )
    observed.note(all_)
    gone = [worker for worker in all_ if _ended(worker, now, lease)]
    sure = (each.id for each in gone if each.host == place() or observed.silent(each) > beat(lease) * 1.2)
    return [*sure, *(str(row[0]) for row in unknown)]


def _ended(worker: Worker, now: float, lease: float) -> bool:
    """Seen at once where it can be seen, and else believed after a silence that is longer than its lease. A
    sign from the future is as old as any other."""
    if worker.host == place():
        return not lives(worker.process)
    return abs(now - worker.seen_at) > lease


def serves_all(worker: Worker) -> bool:
    """Whether a worker would take any task. One that is about to end takes none."""
    return bool(worker.slots) and worker.agents == worker.tags == _list(())


def serves(worker: Worker, agent: str | None, tag: str | None) -> bool:
    """Whether a worker would take a task for this agent or tag; the same rule as that of
    :func:`carrying.claim`."""
    if not worker.slots:
        return False
    if serves_all(worker):
        return True
    agents: list[str] = msgspec.json.decode(worker.agents, type=list[str])
    tags: list[str] = msgspec.json.decode(worker.tags, type=list[str])
    if agent is not None:
        return agent in agents
    return tag is None or tag in tags


def load(db: Database) -> tuple[int, dict[str, int]]:
    """How many tasks wait, and how many each worker is on record to be doing."""
    with db.reading() as t:
        found = t.rows(
            "SELECT state, coalesce(worker, ''), count(*) FROM tasks"
            " WHERE state IN ('queued', 'running') GROUP BY state, worker"
        )
    told = msgspec.convert(found, list[tuple[str, str, int]])
    running = {worker: count for state, worker, count in told if state == "running"}
    return sum(count for state, _, count in told if state == "queued"), running
