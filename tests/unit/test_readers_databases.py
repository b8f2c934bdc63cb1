"""Databases of other programs are read while these write, after they were killed, and never leave a trace."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remuda.runtimes.databases import read_rows

QUERY = "SELECT n FROM t ORDER BY n"

WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute("CREATE TABLE t (n)")
connection.execute("INSERT INTO t VALUES (1)")
connection.commit()
connection.execute("INSERT INTO t VALUES (2)")
print("written", flush=True)
sys.stdin.readline()
connection.commit()
print("committed", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


class Writer:
    """A program at work on a database, in a process of its own."""

    def __init__(self, database: Path, journal: str = "wal") -> None:
        command = [sys.executable, "-c", WRITER, str(database), journal]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hear("written")

    def hear(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == word

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def writer(database: Path) -> Iterator[Writer]:
    writer = Writer(database)
    yield writer
    writer.end(signal.SIGKILL)


def traces(folder: Path) -> dict[str, tuple[str, int]]:
    """Everything that lies in a folder, by content and time of change."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.iterdir())
    }


def test_what_is_committed_is_seen_while_the_program_writes(database: Path, writer: Writer) -> None:
    before = traces(database.parent)
    assert read_rows(database, QUERY).items == [(1,)]
    assert traces(database.parent) == before
    writer.go_on()
    writer.hear("committed")
    before = traces(database.parent)
    assert read_rows(database, QUERY).items == [(1,), (2,)]
    assert traces(database.parent) == before


def test_a_program_that_was_killed_left_what_it_committed(database: Path, writer: Writer) -> None:
    writer.end(signal.SIGKILL)
    before = traces(database.parent)
    assert {f"{database.name}-wal", f"{database.name}-shm"} <= before.keys()
    assert read_rows(database, QUERY).items == [(1,)]
    assert traces(database.parent) == before


def test_a_log_without_its_index_is_reported(database: Path, writer: Writer) -> None:
    """To read it, SQLite would make the index anew, beside the database."""
    writer.end(signal.SIGKILL)
    Path(f"{database}-shm").unlink()
    before = traces(database.parent)
    rows = read_rows(database, QUERY)
    assert rows.items == []
    assert "index" in rows.trouble
    assert traces(database.parent) == before


def test_a_database_that_nobody_has_open_gets_no_side_files(database: Path) -> None:
    writer = Writer(database)
    writer.go_on()
    writer.go_on()
    writer.process.communicate()
    before = traces(database.parent)
    assert list(before) == [database.name]
    assert read_rows(database, QUERY).items == [(1,), (2,)]
    assert traces(database.parent) == before


def test_a_folder_that_cannot_be_written_is_no_obstacle(database: Path, writer: Writer) -> None:
    writer.end(signal.SIGKILL)
    database.parent.chmod(0o500)
    try:
        assert read_rows(database, QUERY).items == [(1,)]
    finally:
        database.parent.chmod(0o700)


def test_a_reader_does_not_hold_up_the_writer(database: Path, writer: Writer) -> None:
    assert read_rows(database, QUERY).items == [(1,)]
    writer.go_on()
    writer.hear("committed")


def test_an_unfinished_rollback_is_left_to_its_program(database: Path) -> None:
    writer = Writer(database, "delete")
    writer.end(signal.SIGKILL)
    before = traces(database.parent)
    rows = read_rows(database, QUERY)
    assert rows.items in ([], [(1,)])
    assert traces(database.parent) == before


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + bytes(range(256)) * 16])
def test_damaged_databases_are_reported(database: Path, content: bytes) -> None:
    database.write_bytes(content)
    rows = read_rows(database, QUERY)
    assert rows.items == []
    assert rows.trouble
    assert list(traces(database.parent)) == [database.name]


def test_another_make_is_reported(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE other (n)")
    connection.close()
    assert "no such table" in read_rows(database, QUERY).trouble


def test_a_name_with_marks_of_an_address_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=rwc#%41.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (n)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    connection.close()
    assert read_rows(path, QUERY).items == [(1,)]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_damaged_text_does_not_hide_the_rest(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE t (n)")
    connection.execute("INSERT INTO t VALUES (CAST(X'ff41' AS TEXT)), ('b')")
    connection.commit()
    connection.close()
    assert read_rows(database, QUERY).items == [("b",), ("\ufffdA",)]
