"""Rows of the tables of tasks as structs, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from remuda.core.sql import Reading, Row
from remuda.dispatch.tasks.model import Attempt, Summary, Task, Worker

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def columns(kind: type[msgspec.Struct]) -> str:
    """The columns of a table that has one for every field."""
    return ", ".join(kind.__struct_fields__)


SUMMARY = f"SELECT {columns(Summary)} FROM tasks"  # noqa: S608 - our own names
TASK = f"SELECT {columns(Task)} FROM tasks"  # noqa: S608
ATTEMPT = f"SELECT {columns(Attempt)} FROM attempts"  # noqa: S608
WORKER = f"SELECT {columns(Worker)} FROM workers"  # noqa: S608


def marks(values: Sequence[str]) -> str:
    """What stands for values in a list of them; in an empty one there is nothing that anything equals."""
    return ", ".join("?" for _ in values) or "NULL"


def struct(kind: type[_Struct], row: Row) -> _Struct:
    """A row as the struct whose columns were selected."""
    return msgspec.convert(dict(zip(kind.__struct_fields__, row, strict=True)), kind)


def task(t: Reading, ident: str) -> Task | None:
    """The task with this id."""
    found = t.rows(f"{TASK} WHERE id = ?", ident)
    return struct(Task, found[0]) if found else None


def attempts(t: Reading, ident: str) -> tuple[Attempt, ...]:
    """All attempts of a task, the first one first."""
    found = t.rows(f"{ATTEMPT} WHERE task = ? ORDER BY number", ident)
    return tuple(struct(Attempt, row) for row in found)
