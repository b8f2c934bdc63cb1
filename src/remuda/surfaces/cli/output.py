"""What the verbs share in writing their answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from rich.table import Table

    from remuda.core.events import Result

_UNFOLDED = 4096
"""Wide enough that nothing is broken over lines when a program reads along."""

_NARROW = 60
"""Columns of a terminal that are too few for a table."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def write_json(document: msgspec.Struct) -> None:
    """One JSON document, readable on a terminal."""
    data = msgspec.json.encode(document)
    if sys.stdout.isatty():
        data = msgspec.json.format(data, indent=2)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def write_text(text: str) -> None:
    """What an agent or a person has said, as it is; on a terminal, so that it cannot steer that."""
    from remuda.surfaces.cli.progress import printable

    shown = printable(text, keep="\n\t") if sys.stdout.isatty() else text
    click.echo(shown.rstrip("\n"))


def exit_code(result: Result) -> int:
    """The exit code that stands for how a turn ended."""
    from remuda.core.errors import EXIT_OK, exit_code_for
    from remuda.core.processes import killed_by

    if result.error is None:
        return EXIT_OK
    if result.error.kind == "crashed" and result.exit_code is not None and killed_by(result.exit_code):
        return result.exit_code
    return exit_code_for(result.error.kind)


def table(*columns: str) -> Table:
    """A plain table with a header. What its rows are called by, in the first column that has a name, is never
    broken. No cell can steer a terminal."""
    from rich.console import RenderableType
    from rich.table import Table

    from remuda.surfaces.cli.progress import printable

    class Harmless(Table):
        def add_row(self, *cells: RenderableType | None, **style: Any) -> None:
            plain = (printable(cell, keep="\n") if isinstance(cell, str) else cell for cell in cells)
            super().add_row(*plain, **style)

    drawn = Harmless(box=None, pad_edge=False, header_style="bold")
    first = next(filter(None, columns), None)
    for column in columns:
        drawn.add_column(column, overflow="fold", no_wrap=column == first)
    return drawn


def _upright(drawn: Table) -> str:
    """A table as a paragraph for each row, for terminals in which its columns have no room."""
    names = [str(column.header) for column in drawn.columns]
    rows = zip(*(column.cells for column in drawn.columns), strict=True)
    shown = [
        [f"{name}: {cell}".removeprefix(": ") for name, cell in zip(names, row, strict=True) if cell]
        for row in rows
    ]
    return "\n\n".join("\n".join(lines) for lines in shown)


def draw(drawn: Table) -> None:
    """Draw on standard output; plain text where it is not a terminal, or where NO_COLOR asks for that."""
    import os

    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(
        width=None if terminal else _UNFOLDED,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        soft_wrap=not terminal,
    )
    console.print(_upright(drawn) if terminal and console.width < _NARROW else drawn)
