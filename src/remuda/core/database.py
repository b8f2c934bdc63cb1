"""The embedded state database: one SQLite file, versioned by a list of migrations."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from remuda.core.errors import ConfigError
from remuda.core.files import PRIVATE, private_folder

MIGRATIONS = (
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        runtime TEXT NOT NULL,
        runtime_session TEXT,
        cwd TEXT NOT NULL,
        state TEXT NOT NULL,
        started_at TEXT NOT NULL,
        ended_at TEXT
    ) STRICT;
    CREATE INDEX sessions_by_runtime_session ON sessions (runtime_session);
    """,
)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database, migrated to the newest schema; committed when the block ends well."""
    private_folder(path.parent)
    path.touch(mode=PRIVATE)
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ConfigError(
            f"cannot use {path}: {error}", "Move the file away, or set REMUDA_HOME elsewhere."
        ) from None
    finally:
        connection.close()


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an older schema up to date, each step whole or not at all."""
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise ConfigError(
            f"{path} was written by a newer Remuda", "Update Remuda, or set REMUDA_HOME elsewhere."
        )
    for statement in (part for script in MIGRATIONS[version:] for part in script.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")
