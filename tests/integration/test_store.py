"""The state database: made when it is missing, never downgraded, shared by processes."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import Site

from remuda.core import database
from remuda.core.errors import ConfigError
from remuda.sessions.store import Session, begin, end, find

CROWD = """
import sys
from pathlib import Path
from remuda.sessions.store import Session, begin, end, find
for number in range(15):
    name = f"{sys.argv[2]}-{number}"
    record = Session(name, "a", "r", name + "-native", "/", "running", "2026-01-01T00:00:00Z")
    begin(Path(sys.argv[1]), record)
    end(Path(sys.argv[1]), name, "ended", None, "2026-01-01T00:00:01Z")
    assert find(Path(sys.argv[1]), name).state == "ended"
"""


def session(
    name: str = "one", native: str | None = "native", started: str = "2026-01-01T00:00:00Z"
) -> Session:
    return Session(name, "claude", "claude", native, "/work", "running", started)


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


def test_a_session_is_found_by_either_id_with_its_end(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"
    begin(path, session())
    assert find(path, "one") == find(path, "native") == session()
    end(path, "one", "failed", "renamed", "2026-01-01T00:00:09Z")
    found = find(path, "renamed")
    assert found is not None
    assert (found.id, found.state, found.ended_at) == ("one", "failed", "2026-01-01T00:00:09Z")
    assert find(path, "native") is None
    begin(path, session())
    again = find(path, "one")
    assert again is not None
    assert (again.state, again.ended_at, again.runtime_session) == ("running", None, "renamed")


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
    end(path, "one", "ended", None, "2026-01-01T00:00:09Z")
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
    for ended, state in ((good, "ended"), (bad, "failed")):
        found = find(path, str(ended.events[-1]["session"]))
        assert found is not None
        assert (found.agent, found.runtime, found.cwd) == ("rehearsal", "rehearsal", str(site.cwd))
        assert (found.state, found.ended_at is not None) == (state, True)
