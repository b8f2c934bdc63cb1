"""Tasks while the database breaks off at the worst moment: after it has done what it was asked, unheard."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterator

import pytest
from tests.integration.taskbooks import asked, claim_one, told
from tests.support import Site

from remuda.core.events import Event
from remuda.core.reaper import MARK
from remuda.core.sql import Database, Reading, StoreGoneError, Transaction
from remuda.dispatch.tasks import events, store, workers
from remuda.dispatch.tasks.engine import Steps
from remuda.operations.requests import RunRequest
from remuda.operations.task.requests import SubmitRequest, packed
from remuda.operations.task.submitting import submit
from remuda.operations.worker import execution, recording, working
from remuda.operations.worker.execution import Execution, Job
from remuda.operations.worker.recording import Record
from remuda.operations.world import open_world

FOR_REHEARSAL = asked(agent="rehearsal", request=packed(RunRequest(prompt="", agent="rehearsal")))


class Faltering:
    """A database that breaks off: the next change is done and nobody hears of it, and those who come then
    find it away, as often as ``away`` says."""

    def __init__(self, behind: Database) -> None:
        self.url, self._behind = behind.url, behind
        self.breaks, self.away = False, 0

    def exists(self) -> bool:
        return True

    def _look(self) -> None:
        if not self.breaks and self.away:
            self.away -= 1
            raise StoreGoneError("away")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self._look()
        with self._behind.transaction() as t:
            yield t
        if self.breaks:
            self.breaks = False
            raise StoreGoneError("broke off")

    def lasting(self) -> contextlib.AbstractContextManager[Transaction]:
        return self.transaction()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reading]:
        self._look()
        with self._behind.reading() as t:
            yield t

    def close(self) -> None:
        self._behind.close()


@pytest.mark.parametrize("away", [0, 1, 3])
def test_what_an_agent_said_is_on_record_once(
    shared_database: Database, away: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_PAUSE", 0.01)
    store.submit(shared_database, asked())
    database = Faltering(shared_database)
    record = Record(database, claim_one(shared_database))

    async def speak() -> None:
        await record.add(told("one"))
        await record.flush()
        database.breaks, database.away = True, away
        for word in ("two", "three"):
            await record.add(told(word))
        flushing = asyncio.create_task(record.flush())
        await asyncio.sleep(0.2 if away else 0)
        await record.add(told("four"))
        await flushing
        await record.flush()

    asyncio.run(speak())
    found = events.after(shared_database, record.held.task, 0)
    assert [event.seq for event in found] == [1, 2, 3, 4]
    assert [event.update for event in found] == [
        told(word).update for word in ("one", "two", "three", "four")
    ]


@pytest.mark.parametrize(
    ("what", "trouble"),
    [
        ("remuda.dispatch.tasks.workers.living", StoreGoneError("away")),
        ("remuda.operations.worker.starting.start", OSError("no more processes")),
    ],
)
def test_what_is_on_record_is_told_so_though_nobody_could_be_woken(
    site: Site, what: str, trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise trouble

    monkeypatch.setattr(what, fail)
    world = open_world(site.env, site.cwd)
    told = submit(world, SubmitRequest(run=RunRequest(prompt="hello", agent="rehearsal")))
    assert "remuda task wait" in told.advice
    assert site.remuda("task", "wait", told.id).code == 0
    assert site.remuda("worker", "--stop").code == 0


async def test_an_agent_that_cannot_be_announced_is_tried_again_and_not_without_a_pause(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[float]()

    async def run(*_: object) -> AsyncGenerator[Event]:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise StoreGoneError("the disk is full")
        yield told()

    monkeypatch.setattr(execution, "run", run)
    world = open_world(site.env, site.cwd)
    database = world.shared()
    store.submit(database, FOR_REHEARSAL)
    job = Job(claim_one(database), database)
    steps = Execution(world, database, lambda: None, lambda _agent, _tag: None)
    steps.jobs[job.claimed.task.id] = job
    assert "without a result" in await steps.carry_out(job.claimed.task.id)
    assert len(tries) == 3
    assert tries[2] - tries[0] > 1
    database.close()


class Balky:
    """An engine that fails at first, and then does what it is asked."""

    def __init__(self, _url: str, _worker: str, steps: Steps) -> None:
        self._steps, self._balks, self._under_way = steps, True, set[asyncio.Task[None]]()

    async def launch(self) -> None: ...

    async def older(self, _days: float) -> list[str]:
        return []

    async def begin(self, task: str, *, again: bool) -> None:
        if self._balks:
            self._balks = False
            raise StoreGoneError("broke off")
        assert again
        self._under_way.add(asyncio.create_task(self._both(task)))

    async def _both(self, task: str) -> None:
        await self._steps.settle(task, await self._steps.carry_out(task))
        self._steps.leave(task)


async def test_one_that_ends_when_nothing_is_left_leaves_nothing_that_it_has_claimed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "Engine", Balky)
    monkeypatch.setenv(MARK, "")
    world = open_world(site.env, site.cwd)
    database = world.shared()
    task, _ = store.submit(database, FOR_REHEARSAL)
    worker = working.Worker(world, database, working.Orders(slots=1, once=True), lambda: None)
    assert await worker.work(lambda _: None)
    assert store.look(database, task.id).state == "succeeded"
    assert workers.known(database) == []
    database.close()
