"""The one JSON document that ``openclaw agent exec`` ends with, and what its log tells long before that."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.events import AnyUpdate, Failure, Usage, message
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure, old_node

NODE = (24, 16)
_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_RESPONSE = re.compile(rb"\[model-fetch\] response .*\bstatus=([245]\d\d)\b")
_NO_RESPONSE = re.compile(rb"\[model-fetch\] error .*\bmessage=(.+)")
_EARLY_RETRY = re.compile(rb"transient same-model retry [12]/.*\bdelayMs=\d{1,4}\b")
_FAILED = re.compile(rb"embedded run agent end: .*\bisError=true\b.* rawError=(.+)")

_CLEANUP = "Agent exec cleanup failed"
"""How it speaks of a process that a tool left behind: the turn fails, its answer is lost."""


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


def trouble(state: TurnState, line: bytes) -> bool:
    """Note what a line of the log tells of the model endpoint, if it does. The first two of up to eight new
    attempts count as the end of the trouble, until they fail, too, unless they are to come much later."""
    words = _COLOUR.sub(b"", line)
    found = _RESPONSE.search(words)
    if found and found[1].startswith(b"2"):
        state.trouble, state.answered = None, True
    elif found:
        text = f"the model endpoint answered with status {found[1].decode()}"
        state.trouble = failure(text, int(found[1]))
    elif found := _FAILED.search(words) or _NO_RESPONSE.search(words):
        state.trouble = failure(found[1].decode("utf-8", "replace"))
    elif _EARLY_RETRY.search(words):
        state.trouble = None
    else:
        return False
    return True


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
        whole = not self._lines and line.endswith(b"}")
        self._lines.append(line)
        return self._ended() if whole or line.startswith(b"}") else ()

    def hear(self, line: bytes) -> None:
        """How the model endpoint fails; of an answer nothing is told before the end."""
        if trouble(self.state, line):
            return
        words = _COLOUR.sub(b"", line)
        if node := old_node(words.decode("utf-8", "replace"), NODE):
            self.state.failure = Failure("start_failed", f"OpenClaw did not start: {node}")

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, _leftover: bytes | None) -> None:
        """The output has ended."""

    def _ended(self) -> Iterable[AnyUpdate]:
        document = b"\n".join(self._lines)
        self._lines.clear()
        try:
            envelope = msgspec.json.decode(document, type=_Envelope, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.state.skipped += 1
            return ()
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
        default: ErrorKind = "crashed" if error.message.startswith(_CLEANUP) else "start_failed"
        state.failure = state.trouble or failure(error.message, default=default)


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
