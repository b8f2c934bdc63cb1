"""The system's keyring, where the ``keyring`` package and a backend that works are there."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from remuda.core.errors import NotFoundError, UsageError

SERVICE = "remuda"


class _Keyring(Protocol):
    """What is used of the package."""

    def get_password(self, service: str, name: str) -> str | None: ...
    def set_password(self, service: str, name: str, value: str) -> None: ...
    def delete_password(self, service: str, name: str) -> None: ...


def get(service: str, scope: str, key: str) -> str:
    """A value that must be there."""
    try:
        value = _keyring().get_password(service, _name(scope, key))
    except Exception as error:
        raise _unusable(error) from None
    if value is None:
        raise NotFoundError(
            f"{key} of the scope {scope} is no longer in the keyring",
            f"Run 'remuda secrets set {key} --scope {scope}' again.",
        )
    return value


def put(scope: str, key: str, value: str) -> None:
    """Keep a value, and look whether it is really there: some backends keep nothing."""
    try:
        ring = _keyring()
        ring.set_password(SERVICE, _name(scope, key), value)
        kept = ring.get_password(SERVICE, _name(scope, key)) == value
    except Exception as error:
        raise _unusable(error) from None
    if not kept:
        raise UsageError("the keyring did not keep the value", "Leave out --keyring.")


def drop(service: str, scope: str, key: str) -> None:
    """Forget a value."""
    try:
        _keyring().delete_password(service, _name(scope, key))
    except Exception as error:
        raise _unusable(error) from None


def _name(scope: str, key: str) -> str:
    return f"{scope}/{key}"


def _keyring() -> _Keyring:
    return cast(_Keyring, import_module("keyring"))


def _unusable(error: Exception) -> UsageError:
    """Backends raise what they like, and may quote what they were given: only its type is told."""
    if isinstance(error, ModuleNotFoundError):
        return UsageError(
            "the system's keyring cannot be used: the Python package 'keyring' is not installed",
            "Install it beside Remuda, or leave out --keyring.",
        )
    return UsageError(
        f"the system's keyring cannot be used ({type(error).__name__})",
        "Unlock it, or leave out --keyring.",
    )
