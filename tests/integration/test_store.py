"""The state database: made when it is missing, never downgraded, shared by processes."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support import Site

from remuda.core import database
from remuda.core.errors import ConfigError, UsageError
from remuda.core.events import Failure
from remuda.core.identity import identity
from remuda.sessions import store
from remuda.sessions.lifecycle import STATES, STEPS, may_become
from remuda.sessions.store import Session, begin, end, find

START, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:09.000Z"
CROWD = """
import sys
from pathlib import Path
from remuda.sessions.store import Session, begin, end, find
for number in range(15):
    name, now = f"{sys.argv[2]}-{number}", "2026-01-01T00:00:00Z"
    begin(
        Path(sys.argv[1]),
        Session(
            id=name, agent="a", runtime="r", runtime_session=name + "-native", cwd="/", state="working",
            seen_at=now, started_at=now,
        ),
    )
    end(Path(sys.argv[1]), name, now, None, "process")
    assert find(Path(sys.argv[1]), name).state == "exited"
"""


def session(ident: str = "one", native: str | None = "native", started: str = START, **more: Any) -> Session:
    return Session(
        **{
            "id": ident,
            "agent": "claude",
            "runtime": "claude",
            "runtime_session": native,
            "cwd": "/work",
            "state": "working",
            "seen_at": started,
            "started_at": started,
            **more,
        }
    )


def test_it_is_made_private_on_first_use(tmp_path: Path) -> None:
    path = tmp_path / "state" / "remuda.db"
    assert find(path, "one") is None
    assert not path.exists()
    begin(path, session())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(database.MIGRATIONS),)
    connection.close()


def test_a_session_is_found_by_any_of_its_names_with_its_end(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session(name="fix"))
    assert find(path, "one") == find(path, "native") == find(path, "fix") == session(name="fix")
    end(path, "one", LATER, Failure("model", "it failed"), "process", "renamed")
    found = find(path, "renamed")
    assert found is not None
    assert (found.id, found.state, found.ended_at) == ("one", "exited", LATER)
    assert found.failure == "model: it failed"
    assert find(path, "native") is None


def test_a_session_that_is_taken_up_again_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session(name="fix", options='{"a":1}'))
    end(path, "one", LATER, Failure("model", "it failed"), "process")
    again = begin(path, session(started=LATER))
    assert (again.name, again.options, again.started_at) == ("fix", '{"a":1}', START)
    assert (again.state, again.ended_at, again.failure) == ("working", None, None)


def test_a_session_that_runs_is_not_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session(holder=identity(os.getpid())))
    with pytest.raises(UsageError, match="runs already"):
        begin(path, session())
    begin(path, session("two", holder="gone/1/1"))
    begin(path, session("two"))


def test_a_name_is_given_once_among_those_that_run(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session(name="fix"))
    with pytest.raises(UsageError, match="fix runs already"):
        begin(path, session("two", name="fix"))
    end(path, "one", LATER, None, "process")
    begin(path, session("two", name="fix"))
    found = find(path, "fix")
    assert found is not None
    assert found.id == "two"


def test_who_comes_second_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    seen = begin(path, session())
    first = store.swap(path, seen, msgspec.structs.replace(seen, state="ready"))
    assert first is not None
    assert store.swap(path, seen, msgspec.structs.replace(seen, state="dialog")) is None
    found = find(path, "one")
    assert found is not None
    assert (found.state, found.revision) == ("ready", 1)


def test_an_end_is_final(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())
    end(path, "one", LATER, None, "process")
    end(path, "one", "2027-01-01T00:00:00Z", Failure("crashed", "late"), "process")
    store.change(path, "one", lambda row: msgspec.structs.replace(row, state="working"))
    found = find(path, "one")
    assert found is not None
    assert (found.state, found.ended_at, found.failure) == ("exited", LATER, None)


def test_the_table_of_steps_knows_every_state() -> None:
    assert set(STEPS) == set(STATES)
    assert all(may_become(state, "exited") for state in STATES)
    assert not any(may_become("exited", state) for state in STATES if state != "exited")


def test_a_message_keeps_its_text_only_as_long_as_it_waits(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())
    waiting = store.Message(
        id="m1", session="one", state="queued", text="secret", bytes=6, created_at=START, moved_at=START
    )
    store.accept(path, waiting)
    assert store.messages(path, "one") == [waiting]
    store.move(path, "m1", "sent", LATER)
    (sent,) = store.messages(path, "one")
    assert (sent.state, sent.text) == ("sent", None)
    end(path, "one", LATER, None, "process")
    (lost,) = store.messages(path, "one", ("lost",))
    store.move(path, "m1", "arrived", LATER)
    assert store.messages(path, "one", ("lost",)) == [lost]


def test_sessions_of_the_first_schema_are_over(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    with sqlite3.connect(path) as connection:
        for statement in database.MIGRATIONS[0].split(";"):
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        for ident, state in (("good", "ended"), ("bad", "failed"), ("lost", "running")):
            row = (ident, "a", "r", None, "/", state, START, None)
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    known = {row.id: row for row in store.listed(path, all_=True)}
    assert {row.state for row in known.values()} == {"exited"}
    assert known["good"].failure is None
    assert known["bad"].failure is not None
    assert known["lost"].failure is not None


def test_of_several_sessions_the_newest_is_found(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session("old", started="2026-01-01T00:00:00Z"))
    begin(path, session("new", started="2026-01-02T00:00:00Z"))
    found = find(path, "native")
    assert found is not None
    assert found.id == "new"


def test_an_end_without_a_native_id_keeps_the_one_known(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())
    end(path, "one", LATER, None, "process")
    assert find(path, "native") is not None


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(database.MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(ConfigError, match="newer Remuda"):
        begin(path, session("two"))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT id FROM sessions").fetchall() == [("one",)]
    connection.close()


def test_a_block_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())

    def broken() -> None:
        with database.opened(path) as connection:
            connection.execute("DELETE FROM sessions")
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert find(path, "one") is not None


def test_processes_share_it_from_its_first_moment(tmp_path: Path) -> None:
    path = tmp_path / "state" / "remuda.db"
    crowd = [
        subprocess.Popen([sys.executable, "-c", CROWD, str(path), name], stderr=subprocess.PIPE)
        for name in "abcdef"
    ]
    for process in crowd:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr.decode()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (90,)
    connection.close()


def test_a_newer_or_damaged_database_is_told_in_words(site: Site) -> None:
    path = site.home / "state" / "remuda.db"
    begin(path, session())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    newer = site.remuda("run", "--agent", "rehearsal", "hi")
    assert newer.code == 2
    assert "newer Remuda" in newer.stderr
    path.write_bytes(b"this is no database" * 100)
    for side in ("-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)
    damaged = site.remuda("run", "--agent", "rehearsal", "hi")
    assert damaged.code == 2
    assert f"cannot use {path}" in damaged.stderr
    assert site.processes() == []


def test_a_run_is_remembered_with_its_end(site: Site) -> None:
    good = site.remuda("run", "--agent", "rehearsal", "--json", "hi")
    bad = site.remuda("run", "--agent", "rehearsal", "--json", "rehearse-401", REHEARSAL_SCENARIO="errors")
    path = site.home / "state" / "remuda.db"
    for ended, failed in ((good, False), (bad, True)):
        found = find(path, str(ended.events[-1]["session"]))
        assert found is not None
        assert (found.agent, found.runtime, found.cwd) == ("rehearsal", "rehearsal", str(site.cwd))
        assert (found.state, found.ended_at is not None) == ("exited", True)
        assert (found.failure is not None) == failed
