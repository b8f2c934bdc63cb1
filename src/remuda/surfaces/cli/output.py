"""What the verbs share in writing their answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from rich.table import Table

_UNFOLDED = 4096
"""Wide enough that nothing is broken over lines when a program reads along."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def write_json(document: msgspec.Struct) -> None:
    """One JSON document, readable on a terminal."""
    data = msgspec.json.encode(document)
    if sys.stdout.isatty():
        data = msgspec.json.format(data, indent=2)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def table(*columns: str) -> Table:
    """A plain table with a header."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn


def draw(what: object) -> None:
    """Draw on standard output; plain text where it is not a terminal, or where NO_COLOR asks for that."""
    import os

    from rich.console import Console

    terminal = sys.stdout.isatty()
    Console(
        width=None if terminal else _UNFOLDED,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        soft_wrap=not terminal,
    ).print(what)
