"""What the two OpenAI dialects share: the shape of an error."""

from __future__ import annotations

import msgspec

from remuda.rehearsal.exchange import Fault

_ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "permission_denied"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "server_is_overloaded"),
}


def error(fault: Fault) -> bytes:
    """The error body, with the type and code OpenAI pairs with the status unless a code is given."""
    server_side = fault.status >= 500
    usual = ("server_error", "server_error") if server_side else ("invalid_request_error", None)
    kind, code = _ERRORS.get(fault.status, usual)
    if fault.code == "insufficient_quota":
        kind = fault.code
    problem = {"message": fault.message, "type": kind, "param": None, "code": fault.code or code}
    return msgspec.json.encode({"error": problem})
