"""What aider prints: its console and, in the same stream, its own log of events, requests and replies.

The console alone cannot be trusted, as it shows the model's words beside aider's own. The log can: its events
carry an id that the model does not know, and its replies are marked line by line. So the model's words count
only as a reply, and aider's only where an event says that no reply is being shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCall, Usage, message, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure

_EVENT = b'{"event": '
_REPLY = "LLM RESPONSE "
_REPLIED = "ASSISTANT "
_ERROR = re.compile(r"litellm\.\w+: ")
_MODEL = re.compile(r"(?:Main m|M)odel: (\S+) with ")
_EDITED = "Applied edit to "
_LOGIN = Failure(
    "auth", "aider found no API key and wants to log in to OpenRouter; set the key of your model's provider"
)


class _Properties(msgspec.Struct, frozen=True):
    """What an event tells; which fields it has depends on the event."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_cost: float = 0.0
    exception: str = ""
    reason: str = ""


class _Event(msgspec.Struct, frozen=True):
    event: str
    properties: _Properties = _Properties()
    user_id: str | None = None


_decoder = msgspec.json.Decoder(_Event, strict=False)


class AiderParser:
    """Follows a turn: a request is sent, the reply shown and logged, aider acts on it, until aider exits."""

    def __init__(self, session: str) -> None:
        self.state = TurnState()
        self._session = session
        self._user: str | None = None
        self._waiting = False
        self._in_reply = False
        self._reply: list[str] = []
        self._error = ""
        self._cut_off = False
        self._edits = 0

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        if line.startswith(_EVENT) and (event := self._event(line)):
            return tuple(self._happened(event))
        text = line.decode(errors="replace").rstrip("\r\n")
        if self._waiting:
            self._shown(text)
            return ()
        return tuple(self._told(text))

    def hear(self, line: bytes) -> None:
        """Standard error tells nothing that the stream does not."""

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, leftover: bytes | None) -> None:
        """The last event has told everything."""

    def _event(self, line: bytes) -> _Event | None:
        """The event in a line, unless it only looks like one: the first event tells the id of them all."""
        try:
            event = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if self._user is None and event.event == "launched":
            self._user = event.user_id
        return event if event.user_id == self._user else None

    def _happened(self, event: _Event) -> Iterator[AnyUpdate]:
        match event.event:
            case "launched":
                self.state.session = self._session
            case "message_send_starting":
                self._waiting, self._in_reply, self._reply = True, False, []
                self._error, self._cut_off = "", False
                self.state.stop_reason = None
            case "message_send":
                yield from self._answered(event.properties)
            case "message_send_exception":
                self._error = event.properties.exception
            case "oauth_flow_initiated":
                self.state.trouble = _LOGIN
            case "exit":
                yield from self._ended(event.properties.reason)

    def _answered(self, told: _Properties) -> Iterator[AnyUpdate]:
        state = self.state
        self._waiting = False
        state.trouble = None
        state.stop_reason = "end_turn"
        state.usage = (state.usage or Usage()) + Usage(told.prompt_tokens, told.completion_tokens)
        state.cost_usd = told.total_cost or None
        yield from self._replied()

    def _replied(self) -> Iterator[AnyUpdate]:
        if text := "\n".join(self._reply):
            self.state.text = text
            yield message(text)

    def _ended(self, reason: str) -> Iterator[AnyUpdate]:
        """Aider exits with code 0 whatever happened. A reply that was cut off is not counted as sent."""
        if self._waiting and self._cut_off:
            self.state.stop_reason = "max_tokens"
            yield from self._replied()
        elif self._waiting:
            self.state.failure = failure(self._error or "aider got no answer from the model")
        elif self.state.stop_reason is None:
            self.state.failure = self.state.trouble or failure(reason, default="start_failed")
        self._waiting = False

    def _shown(self, text: str) -> None:
        """A line while a reply is awaited or shown. Of those that look like the logged reply, the last is."""
        if text.startswith(_REPLY):
            self._in_reply, self._reply = True, []
        elif self._in_reply and text.startswith(_REPLIED):
            self._reply.append(text.removeprefix(_REPLIED))
        else:
            self._in_reply = False
            if _ERROR.match(text):
                self._error = text
            elif text.startswith("Retrying in "):
                self.state.trouble = failure(self._error)
            self._cut_off = self._cut_off or text.endswith(" has hit a token limit!")

    def _told(self, text: str) -> Iterator[AnyUpdate]:
        """A line of aider's own."""
        if self.state.model is None and (found := _MODEL.match(text)):
            self.state.model = found.group(1)
        elif text.startswith(_EDITED):
            self._edits += 1
            path, call_id = text.removeprefix(_EDITED), f"edit-{self._edits}"
            shown = msgspec.Raw(msgspec.json.encode({"path": path}))
            yield ToolCall(
                tool_call_id=call_id, title=path, kind="edit", status="in_progress", raw_input=shown
            )
            yield tool_output(call_id, "completed", text)


def parser(turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return AiderParser(turn.session)
