"""What went wrong, as a status and a document."""

from __future__ import annotations

import msgspec

from remuda.core.errors import (
    EXIT_FAILED,
    EXIT_NOT_FOUND,
    EXIT_REFUSED,
    EXIT_TIMEOUT,
    EXIT_UNUSABLE,
    EXIT_USAGE,
    RemudaError,
    of_system,
)
from remuda.core.sql import StoreGoneError

_BY_EXIT = {
    EXIT_FAILED: (409, "failed"),
    EXIT_USAGE: (400, "usage"),
    EXIT_TIMEOUT: (504, "timeout"),
    EXIT_NOT_FOUND: (404, "not_found"),
    EXIT_REFUSED: (403, "refused"),
    EXIT_UNUSABLE: (409, "not_usable"),
}
_BY_KIND = {"rate_limit": 429, "quota": 429, "timeout": 504, "auth": 409}

STATUSES = {
    400: "The request cannot be carried out as asked.",
    403: "Policy says no. Final.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    409: "It failed, or cannot be done as things are.",
    413: "The request is too large.",
    429: "An agent is at its limit.",
    500: "A mistake in Remuda.",
    503: "The database does not answer. Try again.",
    504: "It took too long.",
}


class Trouble(msgspec.Struct, frozen=True):
    """Why something was not done; ``exit_code`` is what the command line would have ended with."""

    kind: str
    message: str
    hint: str = ""
    exit_code: int = EXIT_FAILED


class ErrorDocument(msgspec.Struct, frozen=True):
    """The answer where there is no other."""

    error: Trouble


def told(error: Exception) -> tuple[int, ErrorDocument]:
    """What an exception is to the caller. One that nobody expected says nothing of what it was about."""
    if isinstance(error, OSError):
        error = of_system(error)
    if isinstance(error, StoreGoneError):
        return 503, ErrorDocument(Trouble("store_gone", error.message, error.hint, error.exit_code))
    if isinstance(error, RemudaError):
        status, kind = _BY_EXIT.get(error.exit_code, (409, "failed"))
        kind = getattr(error, "kind", kind)
        return _BY_KIND.get(kind, status), ErrorDocument(
            Trouble(kind, error.message, error.hint, error.exit_code)
        )
    return 500, ErrorDocument(Trouble("internal", f"a mistake in Remuda: {type(error).__name__}"))
