"""The shared database as a file on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.core.errors import ConfigError, RemudaError
from remuda.core.files import PRIVATE, private_folder
from remuda.core.schema import MIGRATIONS
from remuda.core.sql import Pool, Reading, Row, StoreGoneError, Transaction, Value, migrate, not_ours

if TYPE_CHECKING:
    import sqlite3

_BUSY = 20.0
"""Seconds that a writer waits for another one."""

_BRIEF = 0.02


class _SqliteTransaction:
    skip_locked = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        return self._connection.execute(sql, values).rowcount

    def now(self) -> float:
        return time.time()

    def alone(self, name: str) -> None:
        """Every transaction is, from its beginning on."""
        del name


class SqliteDatabase:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool: Pool[_File] = Pool()
        self.url = f"sqlite:///{path}"

    def exists(self) -> bool:
        return self._path.exists()

    def transaction(self) -> contextlib.AbstractContextManager[Transaction]:
        return self._begun("BEGIN IMMEDIATE")

    def lasting(self) -> contextlib.AbstractContextManager[Transaction]:
        return self._begun("BEGIN IMMEDIATE", synchronous="FULL")

    def reading(self) -> contextlib.AbstractContextManager[Reading]:
        return self._begun("BEGIN")

    @contextlib.contextmanager
    def _begun(self, beginning: str, synchronous: str = "NORMAL") -> Iterator[Transaction]:
        import sqlite3

        try:
            file = self._taken()
            file.connection.execute(f"PRAGMA synchronous = {synchronous}")
            file.connection.execute(beginning)
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self._path, error) from None
        try:
            yield _SqliteTransaction(file.connection)
            file.connection.execute("COMMIT")
        except BaseException as error:
            file.undo()
            if isinstance(error, sqlite3.DatabaseError) and not _mistaken(error):
                raise _unusable(self._path, error) from None
            raise
        self._pool.give(file)

    def _taken(self) -> _File:
        """A connection to the file that lies there now, not to one that was taken away."""
        while (file := self._pool.take()) is not None:
            if file.place == _place(self._path):
                return file
            file.close()
        return _File(self._path)

    def close(self) -> None:
        self._pool.close()


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _File:
    """A connection to a file, which is made and migrated where it has to be."""

    def __init__(self, path: Path) -> None:
        import sqlite3

        private_folder(path.parent)
        path.touch(mode=PRIVATE)
        self.connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
        self.place = _place(path)
        try:
            _patiently(self.connection, "PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA foreign_keys = ON")
            self._migrate(path)
        except BaseException:
            self.close()
            raise

    def _migrate(self, path: Path) -> None:
        import sqlite3

        transaction = _SqliteTransaction(self.connection)
        with contextlib.suppress(sqlite3.OperationalError):
            if transaction.rows("SELECT version FROM remuda_schema") == [(len(MIGRATIONS),)]:
                return
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            migrate(transaction)
        except sqlite3.DatabaseError as error:
            if _mistaken(error):
                raise not_ours(str(path)) from None
            raise
        self.connection.execute("COMMIT")

    def undo(self) -> None:
        """Give up what was begun, and the connection."""
        import sqlite3

        with contextlib.suppress(sqlite3.Error):
            self.connection.execute("ROLLBACK")
        self.close()

    def close(self) -> None:
        self.connection.close()


def _patiently(connection: sqlite3.Connection, sql: str) -> None:
    """Carry out what SQLite does not wait for by itself when others are at the same file."""
    import sqlite3

    end = time.monotonic() + _BUSY
    while True:
        try:
            connection.execute(sql)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if time.monotonic() > end:
                raise
            time.sleep(_BRIEF)
        else:
            return


def _mistaken(error: sqlite3.Error) -> bool:
    """Whether the statement is to blame, and not the file or who else is at it."""
    import sqlite3

    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT)


def _unusable(path: Path, error: Exception) -> RemudaError:
    import sqlite3

    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return ConfigError(
            f"{path} is damaged, or no database: {error}", "Nothing was changed in it. Move it away."
        )
    return StoreGoneError(f"cannot use {path}: {error}", "Try again; see 'remuda doctor'.")
