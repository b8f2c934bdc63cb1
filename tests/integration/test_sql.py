"""The shared database: the same on a file and on a server, and what happens when either is not well."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.postgres import Mode, Server, SharedStore

from remuda.core.errors import ConfigError
from remuda.core.postgres import PostgresDatabase
from remuda.core.schema import MIGRATIONS
from remuda.core.sql import Database, StoreGoneError, open_database
from remuda.core.sqlite import SqliteDatabase

SECRET = "s3cr3t/pa@ss:w%rd"
COUNT = """
import os, sys
from pathlib import Path
from remuda.core.sql import open_database
db = open_database(Path(sys.argv[1]), os.environ, None)
for _ in range(int(sys.argv[2])):
    with db.transaction() as t:
        t.alone("count")
        t.run("INSERT INTO cursors (name, position) VALUES (?, 0) ON CONFLICT (name) DO NOTHING", "n")
        found = t.rows("SELECT position FROM cursors WHERE name = ?", "n")[0][0]
        t.run("UPDATE cursors SET position = ? WHERE name = ?", found + 1, "n")
db.close()
"""


def counted(db: Database) -> list[tuple[object, ...]]:
    with db.transaction() as t:
        return [*t.rows("SELECT position FROM cursors WHERE name = ?", "n")]


def put(db: Database, number: int) -> None:
    with db.transaction() as t:
        t.run("INSERT INTO cursors (name, position) VALUES (?, ?)", "n", number)


def interrupted(db: Database, event: Callable[[], object], *statements: str) -> None:
    """A transaction in the middle of which something happens."""
    with db.transaction() as t:
        t.run("UPDATE cursors SET position = 2")
        event()
        for each in statements:
            t.run(each)


def test_a_transaction_is_whole_or_undone(shared_database: Database) -> None:
    put(shared_database, 1)
    with pytest.raises(ZeroDivisionError):
        interrupted(shared_database, lambda: 1 // 0)
    assert counted(shared_database) == [(1,)]
    with shared_database.transaction() as t:
        assert t.run("UPDATE cursors SET position = 3 WHERE name LIKE 'n%'") == 1
    assert counted(shared_database) == [(3,)]


def test_a_mistake_in_a_statement_is_no_outage(shared_database: Database) -> None:
    put(shared_database, 1)
    with pytest.raises((sqlite3.Error, psycopg.Error)):
        put(shared_database, 2)
    with pytest.raises((sqlite3.Error, psycopg.Error)), shared_database.transaction() as t:
        t.run("SELECT nothing FROM nowhere")
    assert counted(shared_database) == [(1,)]


def test_the_clock_goes_on_within_a_transaction(shared_database: Database) -> None:
    with shared_database.transaction() as t:
        first, second = t.now(), t.now()
    assert 0 <= second - first < 60


def test_who_only_looks_waits_for_nobody(shared_store: SharedStore) -> None:
    writer, reader = shared_store.open(), shared_store.open()
    put(writer, 1)
    with writer.transaction() as t, reader.reading() as looking:
        t.run("UPDATE cursors SET position = 2")
        assert looking.rows("SELECT position FROM cursors") == [(1,)]
    with reader.reading() as looking, writer.transaction() as t:
        t.run("UPDATE cursors SET position = 3")
    assert counted(reader) == [(3,)]
    writer.close()
    reader.close()


def test_threads_share_it(shared_database: Database) -> None:
    put(shared_database, 0)

    def add(_: int) -> None:
        with shared_database.transaction() as t:
            t.alone("n")
            found = t.rows("SELECT position FROM cursors")[0][0]
            assert isinstance(found, int)
            t.run("UPDATE cursors SET position = ?", found + 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(80)))
    assert counted(shared_database) == [(80,)]


def test_processes_that_come_at_once_migrate_it_once(shared_store: SharedStore) -> None:
    argv = [sys.executable, "-c", COUNT, str(shared_store.path), "5"]
    env = {**os.environ, **shared_store.environ}
    crowd = [subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    said = [each.communicate(timeout=60)[1] for each in crowd]
    assert [each.returncode for each in crowd] == [0] * 8, said
    db = shared_store.open()
    assert counted(db) == [(40,)]
    db.close()


def test_a_child_process_leaves_its_parents_connections_alone(shared_database: Database) -> None:
    put(shared_database, 1)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with shared_database.transaction() as t:
                t.run("UPDATE cursors SET position = 2")
            shared_database.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert counted(shared_database) == [(2,)]


def test_a_child_process_has_a_connection_of_its_own(postgres: Server) -> None:
    with postgres.fresh() as url:
        db = PostgresDatabase(url)
        with db.transaction() as t:
            (mine,) = t.rows("SELECT pg_backend_pid()")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with db.transaction() as t:
                    code = int(t.rows("SELECT pg_backend_pid()") == [mine])
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with db.transaction() as t:
            assert t.rows("SELECT pg_backend_pid()") == [mine]
        db.close()


def test_what_a_newer_remuda_wrote_is_left_alone(shared_store: SharedStore) -> None:
    db = shared_store.open()
    with db.transaction() as t:
        t.run("UPDATE remuda_schema SET version = ?", len(MIGRATIONS) + 1)
    db.close()
    other = shared_store.open()
    with pytest.raises(ConfigError, match="newer Remuda"), other.transaction():
        pass


def test_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state" / "dispatch.db"
    db = SqliteDatabase(path)
    assert not db.exists()
    before = os.umask(0)
    try:
        put(db, 1)
    finally:
        os.umask(before)
    assert db.exists()
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600, each
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    db.close()


@pytest.mark.parametrize("content", [b"not a database, " * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_named_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "dispatch.db"
    path.write_bytes(content)
    db = SqliteDatabase(path)
    with pytest.raises(ConfigError, match=r"dispatch\.db is damaged") as caught, db.transaction():
        pass
    assert "Move it away" in caught.value.hint
    assert path.read_bytes() == content


def test_a_file_of_another_program_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "dispatch.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE tasks (mine TEXT)")
        other.execute("INSERT INTO tasks VALUES ('precious')")
    with pytest.raises(ConfigError, match="not Remuda's"), SqliteDatabase(path).transaction():
        pass
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("tasks",)]
    assert other.execute("SELECT mine FROM tasks").fetchall() == [("precious",)]
    other.close()


def test_a_file_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "dispatch.db")
    put(db, 1)
    for each in tmp_path.iterdir():
        each.unlink()
    assert counted(db) == []
    assert db.exists()
    db.close()


def test_a_file_that_is_held_for_too_long_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.core.sqlite._BUSY", 0.1)
    db, other = SqliteDatabase(tmp_path / "dispatch.db"), SqliteDatabase(tmp_path / "dispatch.db")
    put(db, 1)
    assert counted(other) == [(1,)]
    with db.transaction(), pytest.raises(StoreGoneError, match="locked"), other.transaction():
        pass
    assert counted(other) == [(1,)]
    db.close()
    other.close()


@pytest.fixture
def served(postgres: Server) -> object:
    with postgres.fresh() as url:
        db = PostgresDatabase(url)
        yield db
        db.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_between_transactions_is_not_noticed(
    postgres: Server, served: PostgresDatabase, mode: Mode
) -> None:
    put(served, 1)
    postgres.restart(mode)
    assert counted(served) == [(1,)]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_within_a_transaction_undoes_it(
    postgres: Server, served: PostgresDatabase, mode: Mode
) -> None:
    put(served, 1)
    with pytest.raises(StoreGoneError) as caught:
        interrupted(served, lambda: postgres.restart(mode), "UPDATE cursors SET position = 3")
    assert "does not answer" in caught.value.message
    assert counted(served) == [(1,)]


def test_a_restart_before_the_commit_undoes_it(postgres: Server, served: PostgresDatabase) -> None:
    put(served, 1)
    with pytest.raises(StoreGoneError):
        interrupted(served, postgres.restart)
    assert counted(served) == [(1,)]


def test_a_server_that_is_down_says_so_until_it_is_back(postgres: Server, served: PostgresDatabase) -> None:
    put(served, 1)
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreGoneError, match="does not answer"), served.transaction():
                pass
    finally:
        postgres.start()
    assert counted(served) == [(1,)]


def test_tables_of_others_in_our_schema_are_kept(postgres: Server) -> None:
    with postgres.fresh() as url:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("CREATE SCHEMA remuda")
            other.execute("CREATE TABLE remuda.tasks (mine TEXT)")
        with pytest.raises(ConfigError, match="not Remuda's"), PostgresDatabase(url).transaction():
            pass
        with psycopg.connect(url) as other:
            assert other.execute("SELECT to_regclass('remuda.remuda_schema')").fetchall() == [(None,)]


def test_a_user_without_rights_is_told_so(postgres: Server) -> None:
    with postgres.fresh() as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("DROP ROLE IF EXISTS guest")
            owner.execute("CREATE ROLE guest LOGIN")
        guest = PostgresDatabase(url.replace("remuda@", "guest@"))
        with pytest.raises(ConfigError, match="permission denied"), guest.transaction():
            pass


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/name",
        f"postgresql://user:{SECRET}@nowhere.invalid/name",
        f"postgresql://user@127.0.0.1:1/name?password={SECRET}",
        f"postgresql://user:{SECRET}@127.0.0.1:1/name?bogus=1",
        f"postgresql://user:{SECRET}@[::1/name",
    ],
)
def test_no_piece_of_a_password_is_ever_said(url: str) -> None:
    with pytest.raises((StoreGoneError, ConfigError)) as caught, PostgresDatabase(url).transaction():
        pass
    for piece in ("s3cr3t", "pa@ss", "w%rd", "ss:w"):
        assert piece not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_unknown_kind_is_refused_without_its_url() -> None:
    with pytest.raises(ConfigError) as caught:
        open_database(Path("/nowhere"), {"REMUDA_DATABASE_URL": f"mysql://u:{SECRET}@h/x"}, None)
    assert "s3cr3t" not in str(caught.value)
