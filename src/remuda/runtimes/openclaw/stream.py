"""The one JSON document that ``openclaw agent exec`` ends with, and what its log tells long before that."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from remuda.core.events import AnyUpdate, Failure, Usage, message
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure

_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_RESPONSE = re.compile(rb"\[model-fetch\] response .*\bstatus=(\d{3})\b")
_NO_RESPONSE = re.compile(rb"\[model-fetch\] error .*\bmessage=(.+)")
_FAILED = re.compile(rb"embedded run agent end: .*\bisError=true\b.* rawError=(.+)")


class _Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens; those read from a cache are not part of the input here."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class _Error(msgspec.Struct, frozen=True):
    message: str = ""
    kind: str = ""


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    ok: bool = False
    status: str = ""
    final: str = ""
    usage: _Usage | None = None
    cost_usd: float | None = None
    model: str | None = None
    provider: str | None = None
    session_id: str | None = None
    error: _Error | None = None


class _Parser:
    """Gathers the document's lines; it is complete with the first line that closes it."""

    def __init__(self) -> None:
        self.state = TurnState()
        self._lines: list[bytes] = []

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The answer, with the last line of the document. What is printed before the document is no part of
        it."""
        if not self._lines and not line.startswith(b"{"):
            self.state.skipped += bool(line.strip())
            return ()
        self._lines.append(line)
        return self._ended() if line.startswith(b"}") or line.endswith(b"}") else ()

    def hear(self, line: bytes) -> None:
        """How the model endpoint answers. OpenClaw tries again up to eight times."""
        words = _COLOUR.sub(b"", line)
        if found := _RESPONSE.search(words):
            status = int(found[1])
            text = f"the model endpoint answered with status {status}"
            self.state.trouble = failure(text, status) if status >= 400 else None
        elif found := _FAILED.search(words) or _NO_RESPONSE.search(words):
            self.state.trouble = failure(found[1].decode("utf-8", "replace"))

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, _leftover: bytes | None) -> None:
        """The output has ended."""

    def _ended(self) -> Iterable[AnyUpdate]:
        try:
            envelope = msgspec.json.decode(b"\n".join(self._lines), type=_Envelope, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ()
        self._lines.clear()
        conclude(self.state, envelope)
        return (message(envelope.final),) if envelope.ok and envelope.final else ()


def conclude(state: TurnState, envelope: _Envelope) -> None:
    """Take over what the document says."""
    state.session = envelope.session_id or state.session
    state.model = envelope.model
    state.cost_usd = envelope.cost_usd
    state.usage = _counted(envelope)
    if envelope.ok:
        state.text = envelope.final
        state.stop_reason = "end_turn"
        state.trouble = None
        return
    error = envelope.error or _Error()
    if envelope.status == "timeout":
        state.failure = state.trouble or Failure("timeout", error.message or "OpenClaw's own deadline passed")
    else:
        state.failure = state.trouble or failure(error.message, default="start_failed")


def _counted(envelope: _Envelope) -> Usage | None:
    """Tokens as the model's provider counts them: all but Anthropic count what was cached as input, too."""
    usage = envelope.usage
    if usage is None:
        return None
    cached = 0 if envelope.provider == "anthropic" else usage.cache_read + usage.cache_write
    return Usage(usage.input + cached, usage.output, usage.cache_read, usage.cache_write)


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return _Parser()
