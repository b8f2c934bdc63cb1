"""SQLite databases of other programs, which may be at work on them: they are read, and nothing is changed,
locked or made beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import sqlite3

Value = int | float | str | bytes | None

_MESSAGES = 200


def _mode(path: Path) -> str:
    """How to open a database so that no file beside it is made or changed: with the log of the program that
    has it open, or had when it was killed; or else without any, and without locks. A log whose index is gone
    could only be read by making one. Raises what SQLite raises."""
    import sqlite3

    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if log.exists() and index.exists():
        return "mode=ro&readonly_shm=1"
    if Path(f"{path}-journal").exists():
        return "mode=ro"
    if log.exists() and log.stat().st_size:
        raise sqlite3.OperationalError("the index of its log is missing")
    return "mode=ro&immutable=1"


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A database that is open for reading only. One that nobody had open, but that was written meanwhile, is
    not to be trusted. Raises what SQLite raises."""
    import sqlite3
    from urllib.parse import quote

    mode, before = _mode(path), path.stat()
    connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=5)
    connection.text_factory = _lenient
    try:
        yield connection
    finally:
        connection.close()
    after = path.stat()
    if "immutable" in mode and (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise sqlite3.OperationalError("it was changed while it was read")


def _lenient(text: bytes) -> str:
    """Text of a database, where damaged bytes must not hide all other rows."""
    return text.decode(errors="replace")


class Rows(msgspec.Struct):
    """Rows of a database, or why there are none."""

    items: list[tuple[Value, ...]]
    trouble: str = ""


def read_rows(path: Path, query: str, parameters: tuple[Value, ...] = ()) -> Rows:
    """The rows of a query; a database that is gone, locked, damaged or of another make gives none."""
    import sqlite3

    if not path.is_file():
        return Rows([], "no such file")
    try:
        with reading(path) as connection:
            return Rows(connection.execute(query, parameters).fetchall())
    except (sqlite3.Error, OSError, ValueError, MemoryError) as error:
        return Rows([], str(error)[:_MESSAGES])


def number(value: Value) -> int:
    """A whole number, 0 if the value is none."""
    return value if isinstance(value, int) else 0
