"""The secrets file: keys by scope, private to its owner. A value stands in it, or in the system's keyring."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.errors import ConfigError, RefusedError, UsageError
from remuda.core.files import PRIVATE, locked, write_atomic

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

GLOBAL = "global"
"""The scope that every agent draws from after its own."""

_LARGEST = 1024 * 1024
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST = 64 * 1024


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stands for a value that is in the system's keyring, under this service."""

    keyring: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scopes: dict[str, dict[str, str | Kept]] = {}


class Secrets(msgspec.Struct, frozen=True):
    """What the file holds. Its values are never shown, so it has no text form of its own."""

    scopes: Mapping[str, Mapping[str, str | Kept]] = {}

    def __repr__(self) -> str:
        return "Secrets()"

    def of(self, scope: str) -> Mapping[str, str | Kept]:
        """The keys of a scope."""
        return self.scopes.get(scope, {})

    def value(self, scope: str, key: str) -> str:
        """A value that is there."""
        held = self.scopes[scope][key]
        if isinstance(held, str):
            return held
        from remuda.secrets import keyring

        return keyring.get(held.keyring, scope, key)


def load(path: Path) -> Secrets:
    """Read the file; nothing when there is none. One that others could read or write is refused."""
    text = _text(path)
    return Secrets() if text is None else Secrets(_decoded(path, text).scopes)


def put(path: Path, scope: str, key: str, value: str, *, in_keyring: bool) -> None:
    """Keep a value under a name; comments and layout of the file stay."""
    _check(scope, key, value)
    before = load(path).of(scope).get(key)
    with _edited(path) as document:
        if in_keyring:
            from remuda.secrets import keyring

            keyring.put(scope, key, value)
            _table(document, scope)[key] = _reference(keyring.SERVICE)
        else:
            _table(document, scope)[key] = value
    if isinstance(before, Kept) and not in_keyring:
        _drop(before, scope, key)


def remove(path: Path, scope: str, key: str) -> bool:
    """Forget a value, in the keyring too; whether there was one."""
    held = load(path).of(scope).get(key)
    if held is None:
        return False
    with _edited(path) as document:
        table = _table(document, scope)
        table.pop(key, None)
        if not table:
            document["scopes"].pop(scope)
    if isinstance(held, Kept):
        _drop(held, scope, key)
    return True


def _drop(held: Kept, scope: str, key: str) -> None:
    from remuda.secrets import keyring

    keyring.drop(held.keyring, scope, key)


def _check(scope: str, key: str, value: str) -> None:
    if not _SCOPE.fullmatch(scope):
        raise UsageError("this is no name for a scope", "Use letters, digits, dots, dashes or underscores.")
    if not _KEY.fullmatch(key):
        raise UsageError(
            "this is no name for a key", "Use that of the variable, as in ANTHROPIC_API_KEY; never the value."
        )
    if not value.strip() or "\0" in value or len(value.encode()) > _MOST:
        raise UsageError(f"the value for {key} is empty, too long or holds a NUL byte", "Nothing was kept.")


def _text(path: Path) -> str | None:
    """The file's text. Its owner and mode are those of the very file that is read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "Mend or move the file.") from None
    with os.fdopen(handle, "rb") as stream:
        _check_private(path, os.fstat(stream.fileno()))
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} is too long for a file of keys", "Mend or move the file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line} is not UTF-8", "Mend that line.") from None


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError(f"{path} is not a plain file", "Move it away.")
    if found.st_uid != os.geteuid():
        raise RefusedError(f"{path} belongs to another user", "Make it your own, or move it away.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise RefusedError(
            f"{path} can be read or changed by others", f"Run 'chmod 600 {path}', and change the keys in it."
        )


def _decoded(path: Path, text: str) -> _File:
    """The file's content; what is wrong with it is told by its line alone, for the rest may be a secret."""
    import tomllib

    from remuda.core.tomlplaces import line_of_error, line_of_syntax, spelled_out

    document: object = None
    try:
        document = tomllib.loads(text)
        return msgspec.convert(document, _File)
    except tomllib.TOMLDecodeError as error:
        line = line_of_syntax(str(error), text)
    except msgspec.ValidationError as error:
        line = line_of_error(spelled_out(str(error), document, _File), text)
    except RecursionError:
        line = 1
    raise ConfigError(
        f"{path}: line {line} is not in order",
        'It should look like KEY = "value", below [scopes.NAME]. The file was left as it is.',
    )


@contextmanager
def _edited(path: Path) -> Iterator[TOMLDocument]:
    """The file's document, which is written back when the block ends well."""
    import tomlkit

    with locked(path.with_name(f".{path.name}.lock")):
        text = _text(path)
        if text is not None:
            _decoded(path, text)
        document = tomlkit.parse(text or "")
        yield document
        written = tomlkit.dumps(document)
        _decoded(path, written)
        write_atomic(path, written.encode(), PRIVATE)


def _table(document: TOMLDocument, scope: str) -> dict[str, object]:
    """The table of a scope, made when it is missing."""
    import tomlkit

    scopes = document.setdefault("scopes", tomlkit.table(is_super_table=True))
    inline = isinstance(scopes, tomlkit.items.InlineTable)
    table: dict[str, object] = scopes.setdefault(scope, tomlkit.inline_table() if inline else tomlkit.table())
    return table


def _reference(service: str) -> object:
    import tomlkit

    table = tomlkit.inline_table()
    table["keyring"] = service
    return table
