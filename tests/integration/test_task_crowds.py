"""Tasks on record, on SQLite and on PostgreSQL: whatever happens in whatever order, a task ends once."""

from __future__ import annotations

import threading
from collections import Counter

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.integration.taskbooks import ANY, ENDINGS, asked, claim_one, told
from tests.postgres import SharedStore

from remuda.core.sql import Database
from remuda.dispatch.tasks import carrying, events, store
from remuda.dispatch.tasks.model import FINAL, STEPS, Calling, Ending, Held, TaskState, begun

WORKERS = ("one", "two")


class Crowd(RuleBasedStateMachine):
    """Two workers, people who submit and cancel, crashes and takeovers, in any order."""

    db: Database

    def __init__(self) -> None:
        super().__init__()
        with self.db.transaction() as t:
            t.run("DELETE FROM tasks")
            t.run("DELETE FROM workers")
        self.known: list[str] = []
        self.held: list[Held] = []
        self.ended: dict[str, tuple[TaskState, str | None]] = {}
        self.seen: dict[str, TaskState] = {}
        self.wins: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.begun: set[str] = set()

    @rule(priority=st.integers(-2, 2), expires=st.sampled_from([None, 0.0, 1000.0]))
    def submit(self, priority: int, expires: float | None) -> None:
        task, new = store.submit(self.db, asked(priority=priority, expires_in=expires))
        assert new
        self.known.append(task.id)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 3))
    def claim(self, worker: str, limit: int) -> None:
        found = carrying.claim(self.db, worker, ANY, limit)
        order = [(-one.task.priority, one.task.created_at) for one in found]
        assert order == sorted(order)
        self.held += [one.held for one in found]

    def _any(self, data: st.DataObject) -> Held | None:
        return data.draw(st.sampled_from(self.held)) if self.held else None

    def _current(self, held: Held) -> bool:
        return held == next(h for h in reversed(self.held) if h.task == held.task)

    @rule(data=st.data(), phase=st.sampled_from(["starting", "answering"]))
    def move(self, data: st.DataObject, phase: str) -> None:
        if (held := self._any(data)) and carrying.move(self.db, held, phase, Calling("a", "s")):  # type: ignore[arg-type]
            assert self._current(held)
            self.begun.add(held.task)

    @rule(data=st.data())
    def fail_over(self, data: st.DataObject) -> None:
        if (held := self._any(data)) and (
            then := carrying.another(self.db, held, "quota", Calling("b", "t"))
        ):
            assert self._current(held)
            self.begun.add(held.task)
            self.held.append(then)

    @rule(data=st.data(), number=st.integers(1, 3))
    def tell(self, data: st.DataObject, number: int) -> None:
        if (held := self._any(data)) is None:
            return
        last = events.append(self.db, held, [told()] * number)
        if last is not None:
            assert self._current(held)
            self.events[held.task] += number
            assert last == self.events[held.task]

    @rule(data=st.data(), state=st.sampled_from(ENDINGS))
    def settle(self, data: st.DataObject, state: TaskState) -> None:
        held = self._any(data)
        if held and carrying.settle(self.db, held, Ending(state=state, result='"r"'), [told()]):
            assert self._current(held)
            self.wins[held.task] += 1
            self.events[held.task] += 1

    @rule(data=st.data())
    def hand_back(self, data: st.DataObject) -> None:
        if (held := self._any(data)) and carrying.hand_back(self.db, held):
            assert self._current(held)
            assert held.task not in self.begun

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if self.known:
            store.request_cancel(self.db, data.draw(st.sampled_from(self.known)), "enough")

    @rule()
    def expire(self) -> None:
        store.expire_due(self.db)

    @rule(heir=st.sampled_from(WORKERS), limit=st.integers(1, 3))
    def crash(self, heir: str, limit: int) -> None:
        dead = WORKERS[heir == WORKERS[0]]
        for one in carrying.takeover(self.db, heir, dead, ANY, limit):
            assert bool(begun(one.earlier)) == (one.task.id in self.begun)
            self.held.append(one.held)

    @invariant()
    def steps_are_taken_and_ends_are_final(self) -> None:
        for task in store.listed(self.db, store.Listing(limit=1000)):
            before = self.seen.get(task.id, "queued")
            assert task.state == before or _leads(before, task.state)
            self.seen[task.id] = task.state
            if task.state in FINAL:
                end = (task.state, store.look(self.db, task.id).result)
                assert self.ended.setdefault(task.id, end) == end
                assert task.ended_at is not None
            else:
                assert task.ended_at is None
            assert self.wins[task.id] <= 1
            assert [event.seq for event in events.after(self.db, task.id, 0)] == [
                *range(1, self.events[task.id] + 1)
            ]
            assert task.last_seq == self.events[task.id]

    @invariant()
    def running_is_held_by_the_last_holder(self) -> None:
        for task in store.listed(self.db, store.Listing(states=("running",), limit=1000)):
            last = next(h for h in reversed(self.held) if h.task == task.id)
            assert (task.worker, task.attempts) == (last.worker, last.attempt)


def _leads(before: TaskState, after: TaskState) -> bool:
    """One step of ours can be two of the table: back into the queue and then cancelled."""
    return after in STEPS[before] or any(after in STEPS[between] for between in STEPS[before])


def test_any_order_of_things_ends_a_task_once(shared_store: SharedStore) -> None:
    db = shared_store.open()
    machine = type("Here", (Crowd,), {"db": db})
    runs = 12 if shared_store.url else 60
    try:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            machine, settings=settings(max_examples=runs, stateful_step_count=40, deadline=None)
        )
    finally:
        db.close()


def test_many_claim_at_once_and_none_gets_what_another_has(shared_store: SharedStore) -> None:
    db, took = shared_store.open(), list[Held]()
    for _ in range(60):
        store.submit(db, asked())

    def work(name: str) -> None:
        own = shared_store.open()
        while found := carrying.claim(own, name, ANY, 2):
            for one in found:
                took.append(one.held)
                assert carrying.move(own, one.held, "starting", Calling("a", one.task.id))
                assert carrying.settle(own, one.held, Ending(state="succeeded"))
        own.close()

    crowd = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert len(took) == len({held.task for held in took}) == 60
    assert len(store.listed(db, store.Listing(states=("succeeded",), limit=100))) == 60
    db.close()


def test_of_those_who_settle_at_once_one_does(shared_store: SharedStore) -> None:
    db = shared_store.open()
    store.submit(db, asked())
    held, won = claim_one(db).held, list[TaskState]()

    def end(state: TaskState) -> None:
        own = shared_store.open()
        if carrying.settle(own, held, Ending(state=state)):
            won.append(state)
        own.close()

    crowd = [threading.Thread(target=end, args=(state,)) for state in ENDINGS]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert won == [store.look(db, held.task).state]
    db.close()


def test_a_key_that_many_give_at_once_makes_one_task(shared_store: SharedStore) -> None:
    ids = list[str]()

    def hand_in() -> None:
        own = shared_store.open()
        ids.append(store.submit(own, asked(key="once"))[0].id)
        own.close()

    crowd = [threading.Thread(target=hand_in) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
