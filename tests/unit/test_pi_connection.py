"""Many turns with Pi as a state machine: prompts and their confirmation, a person who is asked, aborts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.events import Usage
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes.base import Guard, Turn
from remuda.runtimes.pi import extensions
from remuda.runtimes.pi.connection import PiConnection
from remuda.runtimes.pi.runtime import RUNTIME

Json = dict[str, Any]

REPLY = "extension_ui_response"


def judge(call: ToolCall) -> Verdict:
    """Allows what reads, denies what writes, and has a person asked about the shell."""
    decision = {"read": "allow", "bash": "ask"}.get(call.tool, "deny")
    return msgspec.convert({"decision": decision, "rule": "test.rule", "reason": "a test"}, Verdict)


def turn(*, binding: bool = False, **changes: Any) -> Turn:
    guard = Guard(capability="supervised", judge=judge, hooks=Path("/h"), note="", binding=binding)
    usual = Turn(cwd=Path("/w"), scratch=Path("/s"), keep=Path("/k"), session="s", guard=guard)
    return msgspec.structs.replace(usual, **changes)


class Pi:
    """The other end of the connection."""

    def __init__(self, given_: Turn | None = None) -> None:
        self.connection = PiConnection(given_ or turn())
        self.sent: list[Json] = []
        self.listen()

    def listen(self) -> None:
        words = self.connection.say()
        self.sent += [json.loads(line) for line in (words or b"").splitlines()]

    def says(self, *records: Json) -> None:
        for record in records:
            list(self.connection.feed(json.dumps(record).encode()))
            self.listen()

    def ready(self) -> Pi:
        report = {"statusKey": extensions.TITLE, "statusText": extensions.READY}
        self.says({"type": "extension_ui_request", "id": "0", "method": "setStatus"} | report)
        data = {"sessionId": "s-1", "model": {"id": "m-1"}}
        self.says({"type": "response", "id": "state", "success": True, "data": data})
        return self

    def prompt(self, text: str) -> None:
        self.connection.prompt(text)
        self.listen()

    def asks(self, ident: str, tool: str, command: str = "ls") -> None:
        call = {"id": f"call-{ident}", "tool": tool, "cwd": "/w", "input": {"command": command}}
        shown = {"title": extensions.TITLE, "placeholder": json.dumps(call)}
        self.says({"type": "extension_ui_request", "id": ident, "method": "input"} | shown)

    def answers(self, text: str, reason: str = "stop") -> None:
        usage = {"input": 5, "output": 7}
        content = [{"type": "text", "text": text}]
        answer = {"role": "assistant", "content": content, "stopReason": reason, "usage": usage}
        self.says({"type": "message_end", "message": answer}, {"type": "agent_settled"})

    def replies(self, ident: str) -> list[Json]:
        return [record for record in self.sent if record["type"] == REPLY and record["id"] == ident]

    def decide(self, allowed: bool) -> None:
        assert self.connection.decide(self.connection.questions[0].id, allowed, "so it be") is not None
        self.listen()


def test_turns_follow_each_other() -> None:
    pi = Pi().ready()
    assert pi.connection.phase == "idle"
    pi.prompt("one")
    assert pi.sent[-1] == {"id": "prompt", "type": "prompt", "message": "one"}
    assert not pi.connection.acknowledged
    pi.says({"type": "response", "id": "prompt", "command": "prompt", "success": True})
    assert pi.connection.acknowledged
    pi.answers("First.")
    assert (pi.connection.phase, pi.connection.state.text) == ("idle", "First.")
    pi.prompt("two")
    assert (pi.connection.state.text, pi.connection.acknowledged) == ("", False)
    pi.answers("Second.")
    state = pi.connection.state
    assert (state.text, state.usage, state.session, state.model) == ("Second.", Usage(5, 7), "s-1", "m-1")
    pi.connection.close()
    assert pi.connection.say() is None


def test_a_prompt_that_is_not_taken_fails_its_turn_only() -> None:
    pi = Pi().ready()
    pi.prompt("one")
    pi.says({"type": "response", "id": "prompt", "success": False, "error": "busy"})
    assert pi.connection.state.failure is not None
    assert pi.connection.phase == "idle"
    pi.prompt("two")
    pi.answers("Well.")
    assert (pi.connection.state.failure, pi.connection.state.text) == (None, "Well.")


def test_a_person_is_asked_and_decides() -> None:
    pi = Pi().ready()
    pi.prompt("one")
    pi.asks("1", "bash", "make it so")
    (question,) = pi.connection.questions
    assert (question.tool, question.title) == ("bash", "make it so")
    assert not pi.replies("1")
    pi.decide(True)
    assert [reply["value"] for reply in pi.replies("1")] == [extensions.ALLOW]
    pi.asks("2", "bash")
    pi.decide(False)
    assert [reply["value"] for reply in pi.replies("2")] == ["so it be (person)"]
    assert pi.connection.state.refused == ["bash"]


def test_an_extension_of_ones_own_may_ask_the_person() -> None:
    asks = {"type": "extension_ui_request", "id": "9", "method": "confirm", "title": "Go?", "message": "Now."}
    pi = Pi().ready()
    pi.prompt("one")
    pi.says(asks)
    assert pi.connection.questions[0].title == "Go? Now."
    pi.decide(True)
    assert pi.replies("9") == [{"type": "extension_ui_response", "id": "9", "confirmed": True}]
    held = Pi(turn(binding=True)).ready()
    held.prompt("one")
    held.says(asks)
    assert held.replies("9") == [{"type": "extension_ui_response", "id": "9", "cancelled": True}]


def test_an_abort_denies_what_waits() -> None:
    pi = Pi().ready()
    pi.prompt("one")
    pi.asks("1", "bash")
    pi.connection.abort()
    pi.listen()
    (reply,) = pi.replies("1")
    assert reply["value"] != extensions.ALLOW
    assert pi.sent[-1] == {"id": "abort", "type": "abort"}
    pi.says({"type": "response", "id": "abort", "success": True})
    pi.asks("2", "read")
    (reply,) = pi.replies("2")
    assert reply["value"] != extensions.ALLOW
    pi.answers("", "aborted")
    assert pi.connection.state.stop_reason == "cancelled"
    pi.prompt("two")
    pi.answers("Still here.")
    assert (pi.connection.state.failure, pi.connection.state.text) == (None, "Still here.")


def test_without_our_extension_there_is_no_session_that_asks() -> None:
    pi = Pi()
    pi.says({"type": "response", "id": "state", "success": True, "data": {}})
    assert pi.connection.phase == "closed"
    bypassing = Pi(turn(guard=None, permission="bypass"))
    bypassing.says({"type": "response", "id": "state", "success": True, "data": {}})
    assert bypassing.connection.phase == "idle"


def test_a_persons_session_keeps_its_own_tools_and_extensions() -> None:
    assert RUNTIME.connect is not None
    own = RUNTIME.connect.command(turn())
    assert extensions.APPROVAL in [file.name for file in own.files]
    assert not {"--no-extensions", "--tools"} & set(own.arguments)
    assert not RUNTIME.connect.command(turn(guard=None, permission="bypass")).files


ACTS = st.sampled_from(["bash", "read", "edit", "yes", "no", "abort", "settle", "prompt"])


@pytest.mark.parametrize("binding", [True, False])
@given(acts=st.lists(ACTS, max_size=30))
def test_whatever_happens_every_question_is_answered_once(acts: list[str], binding: bool) -> None:
    pi = Pi(turn(binding=binding)).ready()
    asked: dict[str, str] = {}
    for number, act in enumerate(acts):
        if act in ("bash", "read", "edit"):
            asked[str(number)] = act
            pi.asks(str(number), act)
        elif act in ("yes", "no") and pi.connection.questions:
            pi.decide(act == "yes")
        elif act == "abort":
            pi.connection.abort()
        elif act == "settle":
            pi.answers("Done.")
        elif act == "prompt" and pi.connection.phase == "idle":
            pi.prompt("again")
        pi.listen()
    for _ in pi.connection.questions:
        pi.decide(False)
    for ident, tool in asked.items():
        (reply,) = pi.replies(ident)
        assert tool != "edit" or reply["value"] != extensions.ALLOW
