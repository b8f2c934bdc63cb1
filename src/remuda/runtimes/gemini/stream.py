"""Gemini's stream-json output, and what it tells on stderr alone: retries, and why it did not start."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCall, ToolKind, Usage, message, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser, Read

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("run_shell_command", "list_background_processes", "read_background_output"), "execute"),
    **dict.fromkeys(("read_file", "read_many_files", "list_directory"), "read"),
    **dict.fromkeys(("replace", "write_file"), "edit"),
    **dict.fromkeys(("grep_search", "glob"), "search"),
    **dict.fromkeys(("web_fetch", "google_web_search"), "fetch"),
    **dict.fromkeys(("invoke_agent", "update_topic", "write_todos"), "think"),
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode"), "switch_mode"),
}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RETRY = re.compile(
    r"Attempt \d+ failed(?: with status (?P<status>[0-9]{3}))?[.:](?: Retrying with backoff\.\.\.)?"
)
_BAD_SETTINGS = re.compile(r"Error in /.+?: ")
_UNWILLING = re.compile(
    r"Unknown arguments?: |Error resuming session: |Gemini CLI is not running in a trusted directory"
)
_NO_LOGIN = re.compile(r"Auth method|auth method|authentication type|auth type .* is enforced|GEMINI_API_KEY")
_FRAME = re.compile(r"\[API Error: (.*)\]", re.DOTALL)
_PASSING = re.compile(r"Error when talking to Gemini API .*\bRetryableQuotaError: ")
_UNCONFIRMED = "requires user confirmation"
_UNCHOSEN = "Invalid auth method selected."
LOGIN_HINT = (
    "GOOGLE_GEMINI_BASE_URL is only used with a kind of login in Gemini's settings.json: "
    "security.auth.selectedType, such as 'gemini-api-key'"
)


class _Error(msgspec.Struct, frozen=True):
    type: str = ""
    message: str = ""


class _ApiError(msgspec.Struct, frozen=True):
    code: int | None = None
    message: str = ""


class _ApiAnswer(msgspec.Struct, frozen=True):
    error: _ApiError


class _Tokens(msgspec.Struct, frozen=True):
    total_tokens: int = 0


class _Stats(msgspec.Struct, frozen=True):
    """Token counts of all model calls; ``cached`` is a part of ``input_tokens``."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached: int = 0
    models: dict[str, _Tokens] = {}


class _Line(msgspec.Struct, frozen=True):
    """Any line; which fields it has depends on its type."""

    type: str = ""
    session_id: str | None = None
    model: str | None = None
    role: str = ""
    content: str = ""
    tool_name: str = ""
    tool_id: str = ""
    parameters: msgspec.Raw = msgspec.Raw(b"{}")
    status: str = ""
    output: str | None = None
    severity: str = ""
    message: str = ""
    error: _Error | None = None
    stats: _Stats = _Stats()


def _told(text: str, status: int | None = None) -> Failure:
    """A failure from an error text, which may hold the model server's own answer. Gemini frames what it was
    told, and puts advice about quotas behind it when a limit, any limit, was reached."""
    start, end = text.find("{"), text.rfind("}")
    try:
        answer = msgspec.json.decode(text[start : end + 1], type=_ApiAnswer).error
    except (msgspec.MsgspecError, RecursionError):
        framed = _FRAME.search(text)
        return failure(framed[1] if framed else text, status or (429 if "quota" in text.lower() else None))
    return failure(answer.message, answer.code or status)


def _call(line: _Line) -> ToolCall:
    return ToolCall(
        tool_call_id=line.tool_id,
        title=line.tool_name,
        kind=_KINDS.get(line.tool_name, "other"),
        status="in_progress",
        raw_input=line.parameters,
    )


def _tool_ended(state: TurnState, line: _Line, name: str) -> AnyUpdate:
    problem = line.error or _Error()
    if problem.type == "policy_violation" or _UNCONFIRMED in problem.message:
        state.refused.append(name)
    failed = line.status == "error" or line.error is not None
    return tool_output(line.tool_id, "failed" if failed else "completed", line.output or problem.message)


def _ended(state: TurnState, line: _Line) -> None:
    stats = line.stats
    state.model = max(stats.models, key=lambda name: stats.models[name].total_tokens, default=state.model)
    if stats.input_tokens or stats.output_tokens:
        state.usage = Usage(stats.input_tokens, stats.output_tokens, stats.cached)
    if line.status == "success":
        state.stop_reason = "end_turn"
    else:
        state.failure = state.failure or _told(line.error.message if line.error else "")


def _reader() -> Read[_Line]:
    """Reads the lines of one turn. The answer is what was said after the last tool call."""
    tools: dict[str, str] = {}

    def read(state: TurnState, line: _Line) -> Iterator[AnyUpdate]:
        match line.type:
            case "init":
                state.session, state.model = line.session_id, line.model
            case "message" if line.role == "assistant" and line.content:
                state.trouble = None
                state.text += line.content
                yield message(line.content)
            case "tool_use":
                state.trouble = None
                state.text = ""
                tools[line.tool_id] = line.tool_name
                yield _call(line)
            case "tool_result":
                yield _tool_ended(state, line, tools.get(line.tool_id, line.tool_id))
            case "error" if line.severity == "error":
                state.failure = _told(line.message)
            case "result":
                _ended(state, line)

    return read


def hear(state: TurnState, line: bytes) -> None:
    """Take note of a failed attempt, of settings that cannot be read and of a missing login. A colon behind
    the attempt means that the server has said how long to wait: its limit was reached."""
    text = _plain(line)
    if retry := _RETRY.match(text):
        limited = retry[0].endswith(":")
        status = int(retry["status"]) if retry["status"] else 429 if limited else None
        state.trouble = _lasting(_told(text[retry.end() :], status), passing=limited)
    elif state.session is None:
        state.trouble = _obstacle(text) or state.trouble


def _plain(line: bytes) -> str:
    return _COLOUR.sub("", line.decode("utf-8", "replace")).strip()


class _GeminiParser(JsonLineParser[_Line]):
    """The stream says nothing while Gemini repeats a request, which it does for minutes: stderr does."""

    _passing = False
    """Whether the limit that was reached is one that waiting helps against; Google calls both a quota."""

    def hear(self, line: bytes) -> None:
        """Take note of trouble."""
        hear(self.state, line)
        self._passing = self._passing or _PASSING.match(_plain(line)) is not None

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended, and all of stderr was heard."""
        super().finish(leftover)
        if self.state.failure:
            self.state.failure = _lasting(self.state.failure, passing=self._passing)


def _lasting(told: Failure, *, passing: bool) -> Failure:
    """A failure whose quota is one that lasts, or else is no quota but a limit."""
    return Failure("rate_limit", told.message) if passing and told.kind == "quota" else told


def _obstacle(text: str) -> Failure | None:
    """Why Gemini will not start, if a line says so."""
    if _BAD_SETTINGS.match(text):
        return Failure("start_failed", f"Gemini cannot read its settings. {text}")
    if _UNWILLING.match(text):
        return Failure("start_failed", text)
    if _NO_LOGIN.search(text):
        return Failure("auth", f"{text} {LOGIN_HINT}" if text == _UNCHOSEN else text)
    return None


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return _GeminiParser(_Line, _reader())
