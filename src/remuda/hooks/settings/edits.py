"""What is to stand in a settings file, as data."""

from __future__ import annotations

from pathlib import Path

import msgspec


class OwnFile(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A file that is Remuda's alone."""

    path: Path
    content: str


class ListEntry(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An entry of a list in a JSON or YAML document, the file's name tells which; what is missing on the way
    there is made. ``mark`` is a text that an entry of ours has in it and no other, by which it is found again
    in a file that others have changed. ``comments``: the CLI takes comments in its JSON."""

    path: Path
    keys: tuple[str, ...]
    value: object
    mark: str
    comments: bool = False


class TableValue(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A value in a TOML document; tables on the way there are made where they are missing."""

    path: Path
    keys: tuple[str, ...]
    value: object


Edit = OwnFile | ListEntry | TableValue


class Trouble(Exception):  # noqa: N818 - always turned into an error that names the file
    """Why a document cannot be edited: what is wrong with it, and where (line and column, from 1)."""

    def __init__(self, why: str, line: int = 0, column: int = 0) -> None:
        super().__init__(why)
        self.why, self.line, self.column = why, line, column


def at(text: str, place: int, why: str) -> Trouble:
    """Trouble at a place of a text."""
    line = text.count("\n", 0, place) + 1
    return Trouble(why, line, place - (text.rfind("\n", 0, place) + 1) + 1)
