"""Limits and cooldowns that processes share, on both kinds of database."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.postgres import Server, SharedStore
from tests.support import eventually

from remuda.core.dispatchconfig import LimitsConfig
from remuda.core.postgres import PostgresDatabase
from remuda.core.sql import Database
from remuda.core.sqlite import SqliteDatabase
from remuda.dispatch import cooldown, limits
from remuda.dispatch.limits import LimitedError, Limits, acquire, acquire_async, limits_of

HOLD = """
import os, sys, time
from pathlib import Path
from remuda.core.sql import open_database
from remuda.dispatch.limits import Limits, acquire
db = open_database(Path(sys.argv[1]), os.environ, None)
with acquire(db, "claude", Limits(0, 0, int(sys.argv[2])), holder=sys.argv[3], within=60):
    print("in", flush=True)
    time.sleep(float(sys.argv[4]))
"""
TAKE = """
import os, sys, time
from pathlib import Path
from remuda.core.sql import open_database
from remuda.dispatch.limits import LimitedError, Limits, acquire
db = open_database(Path(sys.argv[1]), os.environ, None)
taken = 0
for number in range(1000):
    try:
        with acquire(db, "claude", Limits(0.001, 7, 0), holder=f"{sys.argv[2]}/{number}", within=0):
            taken += 1
    except LimitedError:
        break
print(taken)
"""


def program(store: SharedStore, code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(store.path), *arguments],
        env={**os.environ, **store.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def held(db: Database) -> int:
    with db.transaction() as t:
        return len(t.rows("SELECT holder FROM slots"))


def seen(db: Database) -> float:
    """When the only one who holds or waits gave its last sign of life."""
    with db.transaction() as t:
        ((at,),) = t.rows("SELECT seen_at FROM slots")
    assert isinstance(at, float)
    return at


def test_places_are_given_back(shared_database: Database) -> None:
    limits = Limits(side_by_side=1)
    with acquire(shared_database, "claude", limits, holder="a", within=1):
        second = acquire(shared_database, "claude", limits, holder="b", within=0.2)
        with pytest.raises(LimitedError, match="all of its 1 places"), second:
            raise AssertionError("nobody else may be in here")
        with acquire(shared_database, "codex", limits, holder="b", within=1):
            assert held(shared_database) == 2
    assert held(shared_database) == 0


def test_a_clock_that_was_set_back_holds_nobody_up(shared_database: Database) -> None:
    limits = Limits(per_second=5.0, burst=1)
    with shared_database.transaction() as t:
        t.run(
            "INSERT INTO buckets (agent, tokens, filled_at) VALUES (?, ?, ?)", "claude", 0.0, t.now() + 3600
        )
    with acquire(shared_database, "claude", limits, holder="a", within=5):
        pass


def test_a_rate_that_comes_too_late_is_said_at_once(shared_database: Database) -> None:
    limits = limits_of(LimitsConfig(rate="1/h"), LimitsConfig())
    with acquire(shared_database, "claude", limits, holder="a", within=1):
        pass
    before = time.time()
    with (
        pytest.raises(LimitedError) as caught,
        acquire(shared_database, "claude", limits, holder="b", within=60),
    ):
        pass
    assert caught.value.until is not None
    assert before + 3000 < caught.value.until < before + 3700
    assert held(shared_database) == 0


async def test_the_loop_does_not_stand_still(shared_database: Database) -> None:
    limits, most, now = Limits(side_by_side=2), 0, 0

    async def one(name: str) -> None:
        nonlocal most, now
        async with acquire_async(shared_database, "claude", limits, holder=name, within=30):
            now += 1
            most = max(most, now)
            while most < 2:  # the first one stays until there is another beside it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            now -= 1

    await asyncio.gather(*(one(str(number)) for number in range(8)))
    assert most == 2
    assert held(shared_database) == 0


def test_cooldowns(shared_database: Database) -> None:
    assert cooldown.current(shared_database) == {}
    later = time.time() + 100
    cooldown.note(shared_database, "claude", "rate_limit", "try again in 100s", later)
    cooldown.note(shared_database, "claude", "rate_limit", "try again in 1s", later - 99)
    cooldown.note(shared_database, "codex", "quota", "past", time.time() - 1)
    assert {name: each.until for name, each in cooldown.current(shared_database).items()} == {"claude": later}
    assert cooldown.current(shared_database, ["codex"]) == {}
    cooldown.clear(shared_database, "claude")
    assert cooldown.current(shared_database) == {}


def test_a_place_of_a_killed_process_is_free(shared_store: SharedStore, shared_database: Database) -> None:
    holder = program(shared_store, HOLD, "1", "a", "300")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    turn = acquire(shared_database, "claude", Limits(side_by_side=1), holder="b", within=0.3)
    with pytest.raises(LimitedError), turn:
        pass
    holder.kill()
    holder.communicate()
    assert held(shared_database) == 1
    with acquire(shared_database, "claude", Limits(side_by_side=1), holder="b", within=10):
        assert held(shared_database) == 1


def test_an_interrupt_while_waiting_leaves_nothing(
    shared_store: SharedStore, shared_database: Database
) -> None:
    with acquire(shared_database, "claude", Limits(side_by_side=1), holder="a", within=1):
        waiting = program(shared_store, HOLD, "1", "b", "0")
        eventually(lambda: held(shared_database) == 2)
        time.sleep(0.3)
        waiting.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in waiting.communicate(timeout=30)[1]
        assert held(shared_database) == 1


def test_processes_share_one_bucket(shared_store: SharedStore) -> None:
    crowd = [program(shared_store, TAKE, str(number)) for number in range(4)]
    said = [each.communicate(timeout=60) for each in crowd]
    assert sum(int(out) for out, _ in said) == 7, said


def test_they_come_in_the_order_in_which_they_asked(shared_database: Database) -> None:
    order: list[int] = []

    def wait(number: int) -> None:
        with acquire(shared_database, "claude", Limits(side_by_side=1), holder=f"w{number}", within=60):
            order.append(number)

    crowd = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    with acquire(shared_database, "claude", Limits(side_by_side=1), holder="first", within=1):
        for number, each in enumerate(crowd):
            each.start()
            eventually(lambda known=number + 2: held(shared_database) == known)  # type: ignore[misc]
    for each in crowd:
        each.join()
    assert order == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("taken", [True, False])
def test_who_is_elsewhere_lives_by_its_signs(shared_database: Database, taken: bool) -> None:
    """A process of another machine cannot be looked at, only its last sign of life."""
    with shared_database.transaction() as t:
        now = t.now()
        t.run(
            "INSERT INTO slots (agent, holder, host, process, asked_at, taken_at, seen_at)"
            " VALUES ('claude', 'x', 'elsewhere', 'boot/1/2', ?, ?, ?)",
            *(now - 100, now - 100 if taken else None, now),
        )
    turn = acquire(shared_database, "claude", Limits(side_by_side=1), holder="b", within=0.3)
    with pytest.raises(LimitedError), turn:
        pass
    old = limits.LEASE if taken else limits.WAITING
    with shared_database.transaction() as t:
        t.run("UPDATE slots SET seen_at = ?", t.now() - old - 1)
    with acquire(shared_database, "claude", Limits(side_by_side=1), holder="b", within=10):
        assert held(shared_database) == 1


def test_signs_of_life_are_given_as_long_as_it_is_held(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEASE", 0.6)
    with acquire(shared_database, "claude", Limits(side_by_side=1), holder="a", within=1):
        begun = seen(shared_database)
        eventually(lambda: seen(shared_database) > begun + limits.LEASE)
        with shared_database.transaction() as t:
            t.run("DELETE FROM slots")
        eventually(lambda: held(shared_database) == 1)
        monkeypatch.undo()
        turn = acquire(shared_database, "claude", Limits(side_by_side=1), holder="b", within=0.3)
        with pytest.raises(LimitedError), turn:
            pass
    assert held(shared_database) == 0


async def test_a_cancelled_wait_leaves_nothing(shared_database: Database) -> None:
    async def wait() -> None:
        async with acquire_async(shared_database, "claude", Limits(side_by_side=1), holder="b", within=60):
            raise AssertionError("nobody else may be in here")

    async with acquire_async(shared_database, "claude", Limits(side_by_side=1), holder="a", within=1):
        for pause in (0, 0.01, 0.05, 0.3):
            task = asyncio.create_task(wait())
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(held, shared_database) == 1


async def test_nobody_else_waits_for_a_database_that_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEASE", 0.3)
    db, other = SqliteDatabase(tmp_path / "dispatch.db"), SqliteDatabase(tmp_path / "dispatch.db")
    late = 0.0

    async def tick() -> None:
        nonlocal late
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            late = max(late, time.monotonic() - before)

    ticking = asyncio.create_task(tick())
    async with acquire_async(db, "claude", Limits(side_by_side=1), holder="a", within=1):
        blocking = other.transaction()
        blocking.__enter__()
        await asyncio.sleep(0.3)
        asyncio.get_running_loop().run_in_executor(None, _after, 2.0, blocking)
    ticking.cancel()
    assert late < 1.0
    assert held(db) == 0


def _after(seconds: float, block: AbstractContextManager[object]) -> None:
    time.sleep(seconds)
    block.__exit__(None, None, None)


def test_where_the_database_is_gone_at_the_end_nothing_is_lost_but_time(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEASE", 1.0)
    with postgres.fresh() as url:
        db = PostgresDatabase(url)
        with acquire(db, "claude", Limits(side_by_side=1), holder="a", within=1):
            postgres.stop()
        postgres.start()
        with acquire(db, "claude", Limits(side_by_side=1), holder="b", within=20):
            assert held(db) == 1
        db.close()


def test_without_limits_nothing_is_touched(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "state" / "dispatch.db")
    with acquire(db, "claude", limits_of(None, LimitsConfig()), holder="a", within=0):
        pass
    assert cooldown.current(db) == {}
    cooldown.clear(db, "claude")
    assert not (tmp_path / "state").exists()
