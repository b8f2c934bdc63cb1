"""Tasks on record, one by one, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from tests.integration.taskbooks import ANY, asked, claim_one, register, told
from tests.postgres import SharedStore

from remuda.core.errors import NotFoundError, UsageError
from remuda.core.events import message
from remuda.core.identity import identity
from remuda.core.sql import Database
from remuda.core.sqlite import SqliteDatabase
from remuda.dispatch.tasks import carrying, events, store, workers
from remuda.dispatch.tasks.model import Calling, Ending, Served, begun


@pytest.fixture
def db(shared_database: Database) -> Database:
    return shared_database


def test_the_same_key_is_the_same_task(db: Database) -> None:
    first, new = store.submit(db, asked(key="once"))
    again, new_again = store.submit(db, asked(key="once"))
    assert (new, new_again) == (True, False)
    assert again.id == first.id
    other = asked(key="once", request='{"origin": "claude:1"}')
    assert store.submit(db, other)[0].id == first.id
    with pytest.raises(UsageError, match=first.id) as raised:
        store.submit(db, asked(key="once", prompt="something else"))
    assert "something else" not in str(raised.value)


def test_what_was_accepted_outlives_a_loss_of_power(tmp_path: Path) -> None:
    with closing(SqliteDatabase(tmp_path / "dispatch.db")) as db:
        for begun, synchronous in ((db.lasting, 2), (db.transaction, 1), (db.reading, 1), (db.lasting, 2)):
            with begun() as t:
                assert t.rows("PRAGMA synchronous") == [(synchronous,)]


def test_priority_first_then_age(db: Database) -> None:
    names = [store.submit(db, asked(priority=n))[0].id for n in (0, 5, 0, 5, -1)]
    claimed = [one.task.id for one in carrying.claim(db, "one", ANY, 10)]
    assert claimed == [names[n] for n in (1, 3, 0, 2, 4)]


@pytest.mark.parametrize(
    ("served", "taken"),
    [
        (Served(), {"a", "b", "x", "none"}),
        (Served(agents=("a",)), {"a", "none"}),
        (Served(tags=("x",)), {"x", "none"}),
        (Served(agents=("b",), tags=("x",)), {"b", "x", "none"}),
        (Served(without=("a",)), {"b", "x", "none"}),
        (Served(agents=("a", "b"), without=("a",)), {"b", "none"}),
    ],
)
def test_a_worker_takes_what_it_serves(db: Database, served: Served, taken: set[str]) -> None:
    store.submit(db, asked(agent="a", prompt="a"))
    store.submit(db, asked(agent="b", prompt="b"))
    store.submit(db, asked(tag="x", prompt="x"))
    store.submit(db, asked(prompt="none"))
    all_ = [store.look(db, task.id) for task in store.listed(db, store.Listing())]
    assert {one.task.prompt for one in carrying.claim(db, "one", served, 10)} == taken
    register(db, "one", served=served)
    (worker,) = workers.known(db)
    if not served.without:
        assert {task.prompt for task in all_ if workers.serves(worker, task.agent, task.tag)} == taken


def test_what_was_handed_back_waits_as_long_as_it_was_told(db: Database) -> None:
    store.submit(db, asked())
    first = claim_one(db)
    assert carrying.hand_back(db, first.held, delay=30)
    assert carrying.claim(db, "one", ANY, 1) == []
    assert not carrying.settle(db, first.held, Ending(state="succeeded"))
    task, attempts = store.get(db, first.task.id)
    assert (task.state, task.started_at, task.worker, attempts) == ("queued", None, None, ())


def test_a_cancelled_task_is_not_handed_back(db: Database) -> None:
    store.submit(db, asked())
    one = claim_one(db)
    assert store.request_cancel(db, one.task.id, "enough").state == "running"
    register(db, "one")
    assert [duty.cancel for duty in workers.heartbeat(db, "one") or []] == ["enough"]
    assert carrying.hand_back(db, one.held)
    task = store.look(db, one.task.id)
    assert (task.state, task.error_kind, task.error) == ("cancelled", "cancelled", "enough")
    assert task.ended_at is not None


def test_one_that_waits_is_cancelled_at_once(db: Database) -> None:
    task, _ = store.submit(db, asked())
    ended = store.request_cancel(db, task.id, "enough")
    assert (ended.state, ended.error) == ("cancelled", "enough")
    assert store.request_cancel(db, task.id, "again") == ended
    assert carrying.claim(db, "one", ANY, 1) == []


def test_what_waits_too_long_expires_and_is_never_started(db: Database) -> None:
    due, _ = store.submit(db, asked(expires_in=0.0))
    later, _ = store.submit(db, asked(expires_in=1000.0))
    assert [one.task.id for one in carrying.claim(db, "one", ANY, 5)] == [later.id]
    assert store.expire_due(db) == [due.id]
    assert store.look(db, due.id).state == "expired"


def test_events_go_on_over_attempts_and_only_their_holder_tells_them(db: Database) -> None:
    store.submit(db, asked())
    first = claim_one(db)
    assert carrying.move(db, first.held, "starting", Calling("a", "s1"))
    assert events.append(db, first.held, [told("1"), told("2")]) == 2
    (second,) = carrying.takeover(db, "two", "one", ANY, 5)
    assert events.append(db, first.held, [told("lost")]) is None
    assert events.append(db, second.held, [told("3")]) == 3
    assert carrying.settle(db, second.held, Ending(state="succeeded"), [told("4")])
    assert [event.seq for event in events.after(db, first.task.id, 1)] == [2, 3, 4]
    assert events.after(db, first.task.id, 2, limit=1)[0].update == message("3")
    assert events.append(db, second.held, [told("late")]) is None


def test_takeover_tells_what_was_begun(db: Database) -> None:
    started, _ = store.submit(db, asked())
    waiting, _ = store.submit(db, asked())
    one, other = carrying.claim(db, "one", ANY, 2)
    assert carrying.move(db, one.held, "answering", Calling("a", "s1", "native"))
    took = {claimed.task.id: claimed for claimed in carrying.takeover(db, "two", "one", ANY, 5)}
    last = begun(took[started.id].earlier)
    assert last is not None
    assert (last.session, last.runtime_session, last.outcome) == ("s1", "native", carrying.LOST)
    assert begun(took[waiting.id].earlier) is None
    assert took[started.id].task.takeovers == 1
    (again,) = carrying.takeover(db, "three", "two", ANY, 1)
    assert again.task.takeovers == 2
    assert begun(again.earlier) is not None or again.task.id == waiting.id
    assert not carrying.holds(db, other.held)


def test_a_worker_that_died_is_seen(db: Database) -> None:
    here = identity(os.getpid())
    register(db, "alive")
    register(db, "ended", process=f"{here.partition('/')[0]}/{os.getpid()}/1")
    register(db, "silent", host="elsewhere")
    store.submit(db, asked())
    claim_one(db, "forgotten")
    assert workers.dead(db, 60, workers.Observed()) == ["ended", "forgotten"]
    assert [worker.id for worker in workers.living(db, 60)] == ["alive", "silent"]
    observed = workers.Observed()
    time.sleep(0.05)
    assert set(workers.dead(db, 0.02, observed)) == {"ended", "forgotten"}
    time.sleep(0.05)
    assert set(workers.dead(db, 0.02, observed)) == {"ended", "silent", "forgotten"}


@pytest.mark.parametrize("moved", [-3600, 3600])
def test_a_clock_that_is_set_neither_kills_a_worker_nor_keeps_one_alive(db: Database, moved: float) -> None:
    for name in ("lives", "died"):
        register(db, name, host="elsewhere")
    with db.transaction() as t:
        t.run("UPDATE workers SET seen_at = seen_at - ?", moved)
    observed = workers.Observed()
    assert workers.dead(db, 0.5, observed) == []
    workers.heartbeat(db, "lives")
    time.sleep(0.3)
    assert workers.dead(db, 0.5, observed) == ["died"]


def test_a_worker_with_tasks_stays_on_record(db: Database) -> None:
    register(db, "one")
    store.submit(db, asked())
    one = claim_one(db)
    assert not workers.deregister(db, "one")
    carrying.settle(db, one.held, Ending(state="failed", error_kind="crashed", error="it fell"))
    assert workers.deregister(db, "one")
    assert workers.heartbeat(db, "one") is None


def test_what_ended_long_ago_is_let_go_in_batches(db: Database) -> None:
    ids = [store.submit(db, asked())[0].id for _ in range(5)]
    one = claim_one(db)
    assert carrying.settle(db, one.held, Ending(state="succeeded"), [told()])
    for ident in ids[1:4]:
        store.request_cancel(db, ident, "enough")
    assert store.sweep(db, days=1) == []
    assert len(store.sweep(db, days=-1, limit=3)) == 3
    assert len(store.sweep(db, days=-1, limit=3)) == 1
    assert [task.id for task in store.listed(db, store.Listing())] == [ids[4]]
    with db.transaction() as t:
        assert t.rows("SELECT count(*) FROM task_events") == [(0,)]


def test_the_beginning_of_an_id_is_enough_if_it_is_one_s(db: Database) -> None:
    task, _ = store.submit(db, asked())
    assert store.find(db, task.id.lower()) == task.id
    assert store.find(db, task.id[:-3]) == task.id
    store.submit(db, asked())
    with pytest.raises(UsageError):
        store.find(db, task.id[:2])
    for wrong in ("", "Z", "%", "_" * 26, "~", "\u00e9", "\0", task.id + "0"):
        with pytest.raises(NotFoundError):
            store.find(db, wrong)


def test_lists_by_state_agent_and_page(db: Database) -> None:
    ids = [store.submit(db, asked(agent=agent))[0].id for agent in ("a", "b", "a")]
    store.request_cancel(db, ids[0], "enough")

    def listed(**more: object) -> set[str]:
        return {task.id for task in store.listed(db, msgspec.convert(more, store.Listing))}

    assert listed(agent="a") == {ids[0], ids[2]}
    assert listed(states=["cancelled"]) == {ids[0]}
    (newest,) = store.listed(db, store.Listing(limit=1))
    assert listed(before=newest.id) == set(ids) - {newest.id}
    assert store.revisions(db, (ids[0], "nobody")) == {ids[0]: (1, "cancelled")}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_prompts_come_back_as_they_were(shared_store: SharedStore, text: str) -> None:
    db = shared_store.open()
    task, _ = store.submit(db, asked(prompt=text))
    assert store.look(db, task.id).prompt == text
    with suppress(NotFoundError):
        store.find(db, text)
    db.close()


def test_ten_thousand_that_wait_are_no_burden(db: Database) -> None:
    with db.transaction() as t:
        for number in range(10_000):
            t.run(
                "INSERT INTO tasks (id, state, prompt, request, priority, created_at)"
                " VALUES (?, 'queued', 'p', '{}', ?, ?)",
                *(f"{number:026}", number % 7, float(number)),
            )
    for _ in range(50):
        claim_one(db)
    plan = explained(db)
    assert "tasks_waiting" in plan
    assert "SORT" not in plan.upper()
    assert "B-TREE" not in plan.upper()


def explained(db: Database) -> str:
    """How the database finds what is claimed next, before it has counted anything."""
    with db.transaction() as t:
        sql, values = carrying.next_in_line(t, ANY, 4)
        found = t.rows(f"EXPLAIN {'' if t.skip_locked else 'QUERY PLAN'} {sql}", *values)
    return "\n".join(str(row[-1]) for row in found)


def test_whatever_an_agent_says_ends_its_task(db: Database) -> None:
    store.submit(db, asked())
    held = claim_one(db).held
    assert carrying.settle(db, held, Ending(state="failed", error_kind="crashed", error="core dumped: \0"))
    error = store.look(db, held.task).error
    assert error is not None
    assert error.startswith("core dumped: ")


def test_a_clock_that_is_set_back_holds_nothing_up(db: Database) -> None:
    store.submit(db, asked())
    assert carrying.hand_back(db, claim_one(db).held, 1.0)
    assert carrying.claim(db, "one", ANY, 1) == []
    with db.transaction() as t:
        t.run("UPDATE tasks SET not_before = not_before + 3600")
    assert len(carrying.claim(db, "one", ANY, 1)) == 1


def test_a_task_has_all_of_its_columns(db: Database) -> None:
    task, _ = store.submit(db, asked(agent="a", tag="x", key="k", priority=3, expires_in=10.0))
    assert task == msgspec.structs.replace(task, agent="a", tag="x", key="k", priority=3, state="queued")
    assert task.expires_at == pytest.approx(task.created_at + 10)
