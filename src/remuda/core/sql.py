"""The database that processes and machines share: the same SQL on SQLite and on PostgreSQL.

Statements are written for both, with ``?`` for values. A transaction is short, and whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Generic, Protocol, TypeVar

from remuda.core.errors import ConfigError, RemudaError
from remuda.core.schema import MIGRATIONS

URL = "REMUDA_DATABASE_URL"
Value = str | int | float | bytes | None
Row = tuple[Value, ...]

_MOST_IDLE = 4


class StoreGoneError(RemudaError):
    """The database does not answer, or its connection broke: what was under way did not happen, or nobody
    knows whether it did. Whoever can try again does."""


class Reading(Protocol):
    """What can be seen in one transaction."""

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """What a statement gives."""

    def now(self) -> float:
        """Seconds since the epoch, by the database's own clock: the same for all machines."""


class Transaction(Reading, Protocol):
    """What can be done in one transaction."""

    skip_locked: str
    """What follows a SELECT whose rows are about to be changed, so that others pass over them."""

    def run(self, sql: str, *values: Value) -> int:
        """Carry a statement out; how many rows it touched."""

    def alone(self, name: str) -> None:
        """Wait until nobody else is in a transaction that asked for this name; holds to its end."""


class Database(Protocol):
    """A shared database, migrated to the newest schema when it is first used. It may be used by several
    threads, and after a fork."""

    url: str
    """Names it for the engine that keeps its own tables beside ours; may hold a password."""

    def exists(self) -> bool:
        """Whether anything can be in it; asking creates nothing and connects to nobody."""

    def transaction(self) -> contextlib.AbstractContextManager[Transaction]:
        """A transaction that is committed when the block ends well, and undone otherwise."""

    def lasting(self) -> contextlib.AbstractContextManager[Transaction]:
        """The same, on the disk once it is committed: what it changes outlives a loss of power, too."""

    def reading(self) -> contextlib.AbstractContextManager[Reading]:
        """A transaction that changes nothing: it waits for nobody, and nobody waits for it."""

    def close(self) -> None:
        """Let go of its connections."""


def open_database(path: Path, environ: Mapping[str, str], configured: str | None) -> Database:
    """The database that the environment or the configuration names, or else the file at ``path``."""
    url = environ.get(URL) or configured
    if not url:
        from remuda.core.sqlite import SqliteDatabase

        return SqliteDatabase(path)
    if url.startswith(("postgresql://", "postgres://")):
        from remuda.core.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise ConfigError(
        f"{URL} names no database that Remuda knows", "It begins with postgresql://, or is left out."
    )


class _Closable(Protocol):
    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closable)


class Pool(Generic[_C]):
    """Connections that wait for the next transaction. Those of a parent process are neither used nor closed
    after a fork, for they are its own."""

    def __init__(self) -> None:
        self._idle: list[_C] = []
        self._inherited: list[_C] = []
        self._lock = Lock()
        self._pid = os.getpid()

    def take(self) -> _C | None:
        """One that is idle."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), Lock()
            self._inherited, self._idle = self._inherited + self._idle, []
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give(self, connection: _C) -> None:
        """Have it wait, if not too many do."""
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all that are idle."""
        while (connection := self.take()) is not None:
            connection.close()


def not_ours(what: str) -> ConfigError:
    return ConfigError(
        f"{what} holds tables of the same names that are not Remuda's",
        f"Nothing was changed in it. Name another database in {URL}, or move the file away.",
    )


def migrate(transaction: Transaction) -> None:
    """Bring an older schema up to date; the caller's transaction makes it whole or undone."""
    transaction.run("CREATE TABLE IF NOT EXISTS remuda_schema (version BIGINT NOT NULL)")
    found = transaction.rows("SELECT version FROM remuda_schema")
    version = found[0][0] if found else 0
    assert isinstance(version, int)
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        raise ConfigError(
            "the database was written by a newer Remuda", "Update Remuda, or use another database."
        )
    for script in MIGRATIONS[version:]:
        for statement in script.split(";"):
            if statement.strip():
                transaction.run(statement)
    transaction.run("DELETE FROM remuda_schema")
    transaction.run("INSERT INTO remuda_schema (version) VALUES (?)", len(MIGRATIONS))
