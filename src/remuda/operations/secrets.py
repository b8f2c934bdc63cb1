"""Keep, list and forget secrets. Values come in and never go out again but to the agents that need them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.errors import NotFoundError, UsageError
from remuda.operations.world import World
from remuda.secrets import store

GLOBAL = store.GLOBAL


class Secret(msgspec.Struct, frozen=True):
    """A key by its name, and where its value is; never the value itself."""

    scope: str
    key: str
    kept: Literal["file", "keyring"]


class Listed(msgspec.Struct, frozen=True):
    """The answer of ``remuda secrets list``."""

    file: str
    secrets: tuple[Secret, ...]


def secrets(world: World, scope: str | None = None) -> Listed:
    """The names of all secrets, or of one scope's."""
    path = world.folders.secrets_file
    found = (
        Secret(name, key, "file" if isinstance(value, str) else "keyring")
        for name, keys in sorted(store.load(path).scopes.items())
        for key, value in sorted(keys.items())
        if scope in (None, name)
    )
    return Listed(str(path), tuple(found))


def keep(world: World, key: str, value: str, *, scope: str, keyring: bool) -> Path:
    """Keep a value; the file that it, or the reference to it, is in."""
    store.put(world.folders.secrets_file, scope, key, value, in_keyring=keyring)
    return world.folders.secrets_file


def from_variable(world: World, name: str) -> str:
    """The value of a variable of the caller's."""
    if value := world.environ.get(name):
        return value
    raise UsageError(f"the variable {name} is not set", "Set it, or give the value on standard input.")


def takers(world: World, key: str) -> tuple[str, ...]:
    """The runtimes that take a key."""
    return tuple(each.name for each in world.herd.survey().runtimes if key in each.key_names)


def forget(world: World, key: str, *, scope: str) -> None:
    """Forget a value."""
    if not store.remove(world.folders.secrets_file, scope, key):
        raise NotFoundError(f"there is no {key} in the scope {scope}", "See 'remuda secrets list'.")
