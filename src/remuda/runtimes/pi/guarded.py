"""Pi under guard: its own protocol over the standard streams, and an extension that asks before every tool.

The extension reports when the session starts, and the prompt is sent after that only. Nothing is loaded but
what Remuda brings: no other extension, which could change a call behind our back, no settings of a project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from remuda.core.events import AnyUpdate, Failure
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.runtimes.base import Guard, Parser, Turn
from remuda.runtimes.dialogue import Dialogue
from remuda.runtimes.failures import failure
from remuda.runtimes.pi.extensions import ALLOW, READY, REFUSAL, TITLE
from remuda.runtimes.pi.stream import PiParser

Wanted = TypeVar("Wanted")

FLAGS = ("--no-extensions", "--no-approve")
"""Neither the user's extensions nor anything of the project's, whether it was trusted before or not."""

_DIALOGS = ("select", "confirm", "input", "editor")
_STATE, _PROMPT = "state", "prompt"
_UNREADABLE = "the call could not be read"
_NEVER_RAN = re.compile(r"Tool .* not found$|Validation failed for tool ", re.DOTALL)
_SHELLS = ("bash", "sh")


class _Frame(msgspec.Struct, frozen=True, rename="camel"):
    """What the guard looks at in a line. Each may be anything: a line that is odd in one place must not go by
    unseen."""

    type: object = None
    id: object = None
    method: object = None
    title: object = None
    placeholder: object = None
    status_key: object = None
    status_text: object = None
    success: object = None
    error: object = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    tool_call_id: object = None
    is_error: object = None
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Asked(msgspec.Struct, frozen=True):
    """A tool call, as the extension shows it."""

    id: str
    tool: str
    cwd: str
    input: object


class _Model(msgspec.Struct, frozen=True):
    id: str | None = None


class _State(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str | None = None
    model: _Model | None = None


class _Block(msgspec.Struct, frozen=True):
    text: str = ""


class _Outcome(msgspec.Struct, frozen=True):
    content: list[_Block] = []


def _decoded(raw: str | msgspec.Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


class GuardedParser(Dialogue, PiParser):
    """One guarded turn: look whether the guard is there, prompt, and answer for every tool call until Pi has
    settled. Every question is answered once, with a refusal where it cannot be read."""

    def __init__(self, guard: Guard, prompt: str) -> None:
        Dialogue.__init__(self)
        PiParser.__init__(self)
        self.state.guard = "awaited"
        self._guard = guard
        self._prompt = prompt
        self._answered: set[str] = set()
        self._allowed: set[str] = set()
        self._refused: set[str] = set()
        self._send({"id": _STATE, "type": "get_state"})

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout; questions in it are answered."""
        if self._over:
            return ()
        frame = _decoded(line.decode("utf-8", "replace"), _Frame) or _Frame()
        match frame.type:
            case "extension_ui_request":
                self._answer(frame)
                return ()
            case "response":
                self._respond(frame)
                return ()
            case "tool_execution_update" | "tool_execution_end" if self._slipped_by(frame):
                self._fail(Failure("refused", "a tool ran that had not asked the guard"))
                return ()
        updates = super().feed(line)
        self._over = frame.type == "agent_settled"
        return updates

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended. In the middle of a turn Pi's last words may quote the prompt, so they are not
        repeated."""
        PiParser.finish(self, leftover)
        self._break_off()

    def _send(self, record: Mapping[str, object]) -> None:
        self._outbox += msgspec.json.encode(record) + b"\n"

    def _answer(self, frame: _Frame) -> None:
        """A question of an extension's, or the guard's report that it is there."""
        if frame.method == "setStatus" and (frame.status_key, frame.status_text) == (TITLE, READY):
            self.state.guard = "reported"
        if frame.method not in _DIALOGS or not isinstance(frame.id, str) or frame.id in self._answered:
            return
        self._answered.add(frame.id)
        asks_guard = frame.method == "input" and frame.title == TITLE
        answer = {"value": self._judged(frame.placeholder)} if asks_guard else {"cancelled": True}
        self._send({"type": "extension_ui_response", "id": frame.id, **answer})

    def _judged(self, shown: object) -> str:
        """The word that lets a tool call run, or why it may not."""
        asked = _decoded(shown, _Asked) if isinstance(shown, str) else None
        if asked is None:
            self.state.refused.append("tool")
            return f"{REFUSAL} {_UNREADABLE}"
        verdict = self._guard.judge(ToolCall(asked.tool, asked.input, asked.cwd))
        if verdict.decision == "allow":
            self._allowed.add(asked.id)
            return ALLOW
        self._refused.add(asked.id)
        self.state.refused.append(asked.tool)
        return told(verdict)

    def _slipped_by(self, frame: _Frame) -> bool:
        """Whether a tool has run unasked. One that is not offered, or whose input is not what it takes, never
        ran, and so nobody was asked."""
        ident = frame.tool_call_id if isinstance(frame.tool_call_id, str) else None
        if ident in self._allowed:
            return False
        if frame.type == "tool_execution_update" or frame.is_error is not True:
            return True
        return not (ident in self._refused or _NEVER_RAN.match(_text(frame.result)))

    def _respond(self, frame: _Frame) -> None:
        """What became of a request of ours: the first tells of the session, and comes behind the report."""
        if frame.success is not True:
            self._fail(failure(str(frame.error or ""), default="start_failed"))
        elif frame.id == _STATE and not self._prompted:
            self._begin(_decoded(frame.data, _State) or _State())

    def _begin(self, opened: _State) -> None:
        if self.state.guard != "reported":
            self._fail(Failure("refused", "the guard did not report at the start of the session"))
            return
        self.state.session = opened.session_id
        self.state.model = opened.model.id if opened.model else None
        self._prompted = True
        self._send({"id": _PROMPT, "type": "prompt", "message": self._prompt})


def _text(result: msgspec.Raw) -> str:
    outcome = _decoded(result, _Outcome) or _Outcome()
    return "\n".join(block.text for block in outcome.content)


def parser(turn: Turn, prompt: str) -> Parser:
    """A parser for one guarded turn."""
    assert turn.guard is not None
    return GuardedParser(turn.guard, prompt)


class _Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings that change where Pi writes by itself, or what a shell command means."""

    session_dir: object = None
    shell_command_prefix: object = None
    shell_path: object = None


def _settings(file: Path) -> _Settings | None:
    """What a settings file says; None when it is there and cannot be understood."""
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return _Settings()
    except (OSError, UnicodeError):
        return None
    return _decoded(text, _Settings)


def _home(environ: Mapping[str, str]) -> Path:
    """Where Pi keeps the user's settings."""
    home = environ.get("HOME", "/")
    named = environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(f"{home}{named[1:]}" if named == "~" or named.startswith("~/") else named)


def objection(turn: Turn) -> str | None:
    """A project may name the folder of sessions although it is not trusted. The user's own settings may put
    something in front of every command, or have it read by another shell than it is judged for."""
    project = turn.cwd / ".pi" / "settings.json"
    brought = _settings(project)
    if brought is None or brought.session_dir is not None:
        return f"{project} says where Pi keeps its sessions, or cannot be read"
    own = _home(turn.environ) / "settings.json"
    kept = _settings(own)
    if kept is None:
        return f"{own} cannot be read"
    if kept.shell_command_prefix:
        return f"shellCommandPrefix in {own} puts something in front of every command"
    if kept.shell_path and Path(str(kept.shell_path)).name not in _SHELLS:
        return f"shellPath in {own} names a shell that the guard does not know"
    return None
