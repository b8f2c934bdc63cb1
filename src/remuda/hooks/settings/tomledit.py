"""Values put into tables of a TOML document and taken out again; the rest of it stays as it is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping

from remuda.hooks.settings.edits import TableValue, Trouble


def read(text: str) -> dict[str, object]:
    """A document, or the trouble with it."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Trouble(str(error)) from None


def holds(text: str, edit: TableValue) -> bool:
    """Whether the value is there."""
    return _found(read(text), edit.keys) == edit.value


def put(text: str, edit: TableValue) -> str:
    """The text with the value in a table at its end, or where there is another value now."""
    if _found(read(text), edit.keys) is not None:
        return _replaced(text, edit)
    break_ = "" if not text or text.endswith("\n") else "\n"
    added = f"{text}{break_}{_block(edit, first=not text)}"
    try:
        after = read(added)
    except Trouble as trouble:
        raise Trouble(f"{'.'.join(edit.keys[:-1])} has no room in it: {trouble.why}") from None
    if _found(after, edit.keys) != edit.value:
        raise Trouble(f"{'.'.join(edit.keys[:-1])} has no room in it")
    return added


def _block(edit: TableValue, *, first: bool) -> str:
    import tomlkit
    from tomlkit.items import SingleKey

    *tables, name = (SingleKey(key).as_string() for key in edit.keys)
    value = tomlkit.item(edit.value).as_string()
    return f"{'' if first else chr(10)}[{'.'.join(tables)}]\n{name} = {value}\n"


def _replaced(text: str, edit: TableValue) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    place: MutableMapping[str, object] = document
    for key in edit.keys[:-1]:
        inner = place[key]
        if not isinstance(inner, MutableMapping):
            raise Trouble(f"{key} is not a table")
        place = inner
    place[edit.keys[-1]] = edit.value
    return tomlkit.dumps(document)


def take(text: str, edit: TableValue) -> str:
    """The text without the value, and without its table if nothing else is in it. A value that somebody else
    has put there meanwhile stays."""
    if not holds(text, edit):
        return text
    for block in (_block(edit, first=False), _block(edit, first=True)):
        if text.count(block) == 1 and _without(text, edit) == read(text.replace(block, "")):
            return text.replace(block, "")
    import tomlkit

    document = tomlkit.parse(text)
    _remove(document, edit.keys)
    return tomlkit.dumps(document)


def _without(text: str, edit: TableValue) -> dict[str, object]:
    document = read(text)
    _remove(document, edit.keys)
    return document


def _remove(document: MutableMapping[str, object], keys: tuple[str, ...]) -> None:
    """Remove a value, and every table on the way to it that is empty then."""
    inner = document.get(keys[0])
    if len(keys) > 1 and isinstance(inner, MutableMapping):
        _remove(inner, keys[1:])
    if len(keys) == 1 or inner == {}:
        del document[keys[0]]


def _found(document: Mapping[str, object], keys: tuple[str, ...]) -> object:
    value: object = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
