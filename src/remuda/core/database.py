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
    """
    ALTER TABLE sessions ADD COLUMN name TEXT;
    ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT 'headless';
    ALTER TABLE sessions ADD COLUMN source TEXT NOT NULL DEFAULT 'record';
    ALTER TABLE sessions ADD COLUMN seen_at TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN failure TEXT;
    ALTER TABLE sessions ADD COLUMN holder TEXT;
    ALTER TABLE sessions ADD COLUMN mark TEXT;
    ALTER TABLE sessions ADD COLUMN pane TEXT;
    ALTER TABLE sessions ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE sessions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET
        failure = CASE state WHEN 'ended' THEN NULL ELSE 'crashed: it did not end well' END,
        state = 'exited', seen_at = coalesce(ended_at, started_at);
    CREATE INDEX sessions_by_name ON sessions (name);
    CREATE INDEX sessions_alive ON sessions (state) WHERE state <> 'exited';
    CREATE TABLE messages (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        state TEXT NOT NULL,
        text TEXT,
        bytes INTEGER NOT NULL,
        created_at TEXT NOT NULL,
        moved_at TEXT NOT NULL,
        proof TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX messages_by_session ON messages (session, id);
    """,
    """
    CREATE TABLE usage_sources (
        runtime TEXT NOT NULL,
        path TEXT NOT NULL,
        inode INTEGER NOT NULL,
        size INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        head TEXT NOT NULL,
        position INTEGER NOT NULL,
        state BLOB NOT NULL,
        skipped INTEGER NOT NULL,
        trouble TEXT NOT NULL,
        PRIMARY KEY (runtime, path)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage_groups (
        id INTEGER PRIMARY KEY,
        runtime TEXT NOT NULL,
        session TEXT NOT NULL,
        project TEXT NOT NULL,
        model TEXT NOT NULL,
        UNIQUE (runtime, session, project, model)
    ) STRICT;
    CREATE TABLE usage_answers (
        key INTEGER PRIMARY KEY,
        grouped INTEGER NOT NULL REFERENCES usage_groups (id),
        time INTEGER NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cached_read INTEGER NOT NULL,
        cached_write INTEGER NOT NULL,
        thought INTEGER NOT NULL,
        cost REAL
    ) STRICT;
    CREATE TABLE usage_sums (
        grouped INTEGER NOT NULL REFERENCES usage_groups (id),
        slot INTEGER NOT NULL,
        told INTEGER NOT NULL,
        answers INTEGER NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cached_read INTEGER NOT NULL,
        cached_write INTEGER NOT NULL,
        thought INTEGER NOT NULL,
        cost REAL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        PRIMARY KEY (grouped, slot, told)
    ) STRICT, WITHOUT ROWID;
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
