"""Typed errors: what went wrong, what to do next, and which exit code says so.

An error never carries a prompt, a secret or a token.
"""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "not_installed",
    "auth",
    "rate_limit",
    "quota",
    "timeout",
    "refused",
    "start_failed",
    "crashed",
    "protocol",
    "cancelled",
    "model",
]
"""Why a turn failed, the same words for every runtime."""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TIMEOUT = 3
EXIT_NOT_FOUND = 4
EXIT_REFUSED = 5
EXIT_UNUSABLE = 6
EXIT_INTERRUPTED = 130

_EXIT_BY_KIND: dict[ErrorKind, int] = {
    "not_installed": EXIT_UNUSABLE,
    "auth": EXIT_UNUSABLE,
    "start_failed": EXIT_UNUSABLE,
    "timeout": EXIT_TIMEOUT,
    "refused": EXIT_REFUSED,
    "cancelled": EXIT_INTERRUPTED,
}


def exit_code_for(kind: ErrorKind) -> int:
    """The process exit code that stands for an error kind."""
    return _EXIT_BY_KIND.get(kind, EXIT_FAILED)


class RemudaError(Exception):
    """Base of every error a caller is expected to meet: a message and the next step."""

    exit_code: int = EXIT_FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


def of_system(error: OSError) -> RemudaError:
    """What the operating system would not do, and with which file."""
    place = f" {error.filename}" if error.filename else ""
    return RemudaError(f"the system refused{place}: {error.strerror or type(error).__name__}")


class UsageError(RemudaError):
    """The request itself cannot be carried out as asked."""

    exit_code = EXIT_USAGE


class ConfigError(RemudaError):
    """A configuration or scenario file is malformed; nothing was changed."""

    exit_code = EXIT_USAGE


class NotFoundError(RemudaError):
    """A named thing does not exist."""

    exit_code = EXIT_NOT_FOUND


class RefusedError(RemudaError):
    """Policy says no. Final: never retried, never routed around."""

    exit_code = EXIT_REFUSED


class StartError(RemudaError):
    """The operating system would not start a program."""

    exit_code = EXIT_UNUSABLE


class NotInstalledError(RemudaError):
    """The agent's program is missing or cannot be used."""

    exit_code = EXIT_UNUSABLE
