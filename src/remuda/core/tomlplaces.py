"""Where something stands in a TOML file: the line of a key, for messages that say what to correct."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

Path = tuple[str | int, ...]
"""A way into a document: keys, and places in lists."""

_MOST_LINES = 200
"""So many lines of one value are read to find its end."""
_STEP = re.compile(r"\.?([A-Za-z0-9_-]+)|\[(\d+)\]")
_NAMED = re.compile(r"^([a-z_]+(?:\[\d+\])?): ")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_WHERE = re.compile(r" - at `\$([^`]*)`$")
_LEFT_OUT = "[...]"
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_SYNTAX = re.compile(r"\(at line (\d+), column \d+\)$")


def line_of_syntax(message: str, text: str) -> int:
    """The line that the reader of TOML complained about; the last one when it wants more."""
    found = _SYNTAX.search(message)
    return int(found[1]) if found else max(text.count("\n", 0, len(text.rstrip())) + 1, 1)


def line_of_error(message: str, text: str) -> int:
    """The line of the key that a validation's message is about."""
    where = _WHERE.search(message)
    path = _steps(where[1] if where else "")
    if unknown := _UNKNOWN.search(message):
        return line_of(text, (*path, unknown[1]))
    named = _NAMED.match(message)
    return line_of(text, (*path, *_steps(named[1])) if named else path)


def spelled_out(message: str, document: object, shape: type) -> str:
    """A validation's message with the keys that it leaves out: each is the one that fails alone, too."""
    told = message
    while (where := _WHERE.search(told)) and _LEFT_OUT in where[1]:
        before = where[1].partition(_LEFT_OUT)[0]
        found = _culprit(message, document, _steps(before), shape)
        if found is None:
            return told
        key, document = found
        told = told.replace(f"${before}{_LEFT_OUT}", f"${before}.{key}", 1)
    return told


def _culprit(message: str, document: object, path: Path, shape: type) -> tuple[str, object] | None:
    """The key of a table that a message is about, and the document with that one alone."""
    table = document
    for step in path:
        table = table[step]  # type: ignore[index]
    for key in table if isinstance(table, Mapping) else ():
        alone = _with_one(document, path, key)
        try:
            msgspec.convert(alone, shape)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return (key, alone) if _PLAIN.fullmatch(key) else None
    return None


def _with_one(document: object, path: Path, key: str) -> object:
    """A document whose table at the end of a path has only one key."""
    if not path:
        return {key: document[key]}  # type: ignore[index]
    copy = document.copy()  # type: ignore[attr-defined]
    copy[path[0]] = _with_one(copy[path[0]], path[1:], key)
    return copy


def line_of(text: str, path: Path) -> int:
    """The line of a value, or that of the nearest thing around it that is there."""
    best, depth = 1, 0
    for line, found, lines in _statements(text):
        shared = _shared(found, path)
        if shared > depth and shared == min(len(found), len(path)):
            best, depth = line, shared
            if shared == len(found) < len(path):
                best = line + _inside(lines, path[len(found) :])
    return best


def _steps(text: str) -> Path:
    return tuple(int(found[2]) if found[2] else found[1] for found in _STEP.finditer(text))


def _shared(found: Path, path: Path) -> int:
    count = 0
    for left, right in zip(found, path, strict=False):
        if left != right:
            break
        count += 1
    return count


def _statements(text: str) -> Iterator[tuple[int, Path, list[str]]]:
    """Headers and keys with their first line, their full path and their lines; up to the first that does not
    end."""
    table: Path = ()
    counts: dict[Path, int] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        taken = _taken(lines, at)
        if taken is None:
            return
        count, path, header = taken
        if path and header:
            table = _table(path, counts)
            yield at + 1, table, lines[at : at + count]
        elif path:
            yield at + 1, (*table, *path), lines[at : at + count]
        at += count


def _table(path: Path, counts: dict[Path, int]) -> Path:
    """The full path of a header. One in double brackets begins another item of its list; the others mean the
    last item of every list on their way."""
    full: Path = ()
    for place, part in enumerate(path):
        if isinstance(part, int):
            counts[full] = counts.get(full, -1) + 1
            full = (*full, counts[full])
            continue
        full = (*full, part)
        last = place == len(path) - 1
        if full in counts and not last and not isinstance(path[place + 1], int):
            full = (*full, counts[full])
    return full


def _taken(lines: list[str], at: int) -> tuple[int, Path, bool] | None:
    """How many lines a statement has, its own path, and whether it is a header. A list in double brackets has
    a number at the end of its path."""
    import tomllib

    for count in range(1, min(_MOST_LINES, len(lines) - at) + 1):
        try:
            found: object = tomllib.loads("\n".join(lines[at : at + count]))
        except tomllib.TOMLDecodeError:
            continue
        header = lines[at].lstrip().startswith("[")
        return count, _path(found, header), header
    return None


def _path(found: object, header: bool) -> Path:
    path: Path = ()
    while isinstance(found, dict) and len(found) == 1:
        ((key, found),) = found.items()
        path = (*path, key)
    return (*path, 0) if header and isinstance(found, list) else path


def _inside(lines: list[str], rest: Path) -> int:
    """How many lines below its key an item of a list stands, if the list goes over several lines."""
    import tomllib

    wanted = rest[0]
    if not isinstance(wanted, int):
        return 0
    for count in range(1, len(lines)):
        try:
            found: object = tomllib.loads("\n".join(lines[:count]) + "\n]")
        except tomllib.TOMLDecodeError:
            continue
        while isinstance(found, dict) and len(found) == 1:
            (found,) = found.values()
        if isinstance(found, list) and len(found) > wanted:
            return count - 1
    return len(lines) - 1
