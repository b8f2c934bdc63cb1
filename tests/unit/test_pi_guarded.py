"""Pi's guarded connection: every question is answered once, and nothing passes that did not ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes.base import Guard, Turn
from remuda.runtimes.dialogue import one_turn
from remuda.runtimes.pi import extensions, guarded
from remuda.runtimes.pi.connection import PiConnection
from remuda.runtimes.pi.runtime import RUNTIME

Json = dict[str, Any]


class Pi:
    """The other end of the connection, and a guard that allows what reads."""

    def __init__(self) -> None:
        self.judged: list[ToolCall] = []
        guard = Guard(capability="scout", judge=self.judge, hooks=Path("/hooks"), note="")
        asked = Turn(cwd=Path("/w"), scratch=Path("/s"), keep=Path("/k"), session="s", guard=guard)
        self.parser = one_turn(PiConnection(asked), "the prompt")
        self.sent: list[Json] = []
        self.listen()

    def judge(self, call: ToolCall) -> Verdict:
        self.judged.append(call)
        decision = "allow" if call.tool == "read" else "deny"
        return Verdict(decision=decision, rule="test.rule", reason="it is a test", hint="Read.")

    def listen(self) -> None:
        words = self.parser.say()
        self.closed = words is None
        self.sent += [json.loads(line) for line in (words or b"").splitlines()]

    def says(self, *records: Json | bytes) -> list[Any]:
        found: list[Any] = []
        for record in records:
            line = record if isinstance(record, bytes) else json.dumps(record).encode()
            found += self.parser.feed(line)
            self.listen()
        return found

    def ready(self) -> Pi:
        self.says(
            {"type": "extension_ui_request", "id": "0", "method": "setStatus"}
            | {"statusKey": extensions.TITLE, "statusText": extensions.READY},
            {"type": "response", "id": "state", "command": "get_state", "success": True}
            | {"data": {"sessionId": "s-1", "model": {"id": "m-1"}}},
        )
        return self

    def answers(self) -> list[Json]:
        return [record for record in self.sent if record["type"] == "extension_ui_response"]


def question(ident: str, tool: str, shown: str | None = None) -> Json:
    call = {"id": f"call-{ident}", "tool": tool, "cwd": "/w", "input": {"path": "/w/x"}}
    return {
        "type": "extension_ui_request",
        "id": ident,
        "method": "input",
        "title": extensions.TITLE,
        "placeholder": json.dumps(call) if shown is None else shown,
    }


def ended(ident: str, text: str = "", *, error: bool = False) -> Json:
    result = {"content": [{"type": "text", "text": text}]}
    shape = {"type": "tool_execution_end", "toolCallId": f"call-{ident}", "toolName": "bash"}
    return shape | {"result": result, "isError": error}


def test_the_prompt_waits_for_the_guards_report() -> None:
    pi = Pi()
    assert [record["type"] for record in pi.sent] == ["get_state"]
    assert pi.parser.state.guard == "awaited"
    pi.ready()
    assert pi.sent[-1] == {"id": "prompt", "type": "prompt", "message": "the prompt"}
    assert (pi.parser.state.session, pi.parser.state.model) == ("s-1", "m-1")


def test_without_a_report_there_is_no_prompt() -> None:
    pi = Pi()
    pi.says({"type": "response", "id": "state", "success": True, "data": {}})
    assert pi.closed
    assert pi.parser.state.failure is not None
    assert pi.parser.state.failure.kind == "refused"
    assert "prompt" not in [record["type"] for record in pi.sent]


def test_what_is_allowed_may_run_and_what_is_not_is_told_why() -> None:
    pi = Pi().ready()
    pi.says(question("1", "read"), ended("1", "text"), question("2", "bash"))
    assert pi.answers() == [
        {"type": "extension_ui_response", "id": "1", "value": extensions.ALLOW},
        {"type": "extension_ui_response", "id": "2", "value": "it is a test (test.rule). Read."},
    ]
    assert pi.judged[1] == ToolCall("bash", {"path": "/w/x"}, "/w")
    (update,) = pi.says(ended("2", "it is a test", error=True))
    assert update.status == "failed"
    assert pi.parser.state.refused == ["bash"]
    assert not pi.closed


@pytest.mark.parametrize(
    "shown", ["", "{", "[]", "{}", '{"id": 1, "tool": "read", "cwd": "/", "input": 1}', "[" * 100_000]
)
def test_a_question_that_cannot_be_read_is_refused(shown: str) -> None:
    pi = Pi().ready()
    pi.says(question("1", "read", shown))
    assert pi.answers()[0]["value"].startswith(extensions.REFUSAL)
    assert not pi.judged


@pytest.mark.parametrize("method", ["select", "confirm", "editor", "input"])
def test_questions_of_others_are_waved_aside(method: str) -> None:
    pi = Pi().ready()
    pi.says({"type": "extension_ui_request", "id": "9", "method": method, "title": "?", "message": "!"})
    assert pi.answers() == [{"type": "extension_ui_response", "id": "9", "cancelled": True}]


@pytest.mark.parametrize(
    "slip",
    [
        ended("1"),
        ended("1", "Command exited with code 1", error=True),
        {"type": "tool_execution_update", "toolCallId": "call-1"},
        {"type": "tool_execution_end", "toolCallId": 7, "message": "odd", "isError": "no"},
    ],
)
def test_a_tool_that_ran_unasked_ends_the_run(slip: Json) -> None:
    pi = Pi().ready()
    pi.says(slip)
    assert pi.closed
    assert pi.parser.state.failure is not None
    assert pi.parser.state.failure.kind == "refused"


@pytest.mark.parametrize("text", ["Tool bush not found", 'Validation failed for tool "bash":\n - command'])
def test_a_tool_that_never_ran_did_not_have_to_ask(text: str) -> None:
    pi = Pi().ready()
    pi.says(ended("1", text, error=True))
    assert pi.parser.state.failure is None


def test_a_refused_tool_that_runs_all_the_same_ends_the_run() -> None:
    pi = Pi().ready()
    pi.says(question("1", "bash"), ended("1", "done"))
    assert pi.parser.state.failure is not None


def test_the_connection_is_closed_when_pi_has_settled() -> None:
    pi = Pi().ready()
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "stopReason": "stop"}
    pi.says({"type": "message_end", "message": answer}, {"type": "agent_settled"})
    assert pi.closed
    assert (pi.parser.state.text, pi.parser.state.stop_reason) == ("Yes.", "end_turn")


def test_a_prompt_that_is_not_taken_is_a_failure() -> None:
    pi = Pi().ready()
    pi.says({"type": "response", "id": "prompt", "success": False, "error": "No API key found for x."})
    assert pi.closed
    assert pi.parser.state.failure is not None
    assert pi.parser.state.failure.kind == "auth"


def test_a_pi_that_goes_away_has_crashed() -> None:
    pi = Pi().ready()
    pi.parser.finish(None)
    assert pi.parser.state.failure is not None
    assert pi.parser.state.failure.kind == "crashed"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("extension_ui_request", "response", "tool_execution_end", "message_end"))
        | ODD
    },
    optional={
        "id": st.sampled_from(("state", "prompt", "1", "2")) | ODD,
        "method": st.sampled_from(("input", "confirm", "select", "editor", "setStatus", "notify")) | ODD,
        "title": st.just(extensions.TITLE) | ODD,
        "placeholder": st.just(question("1", "read")["placeholder"]) | ODD,
        "statusKey": st.just(extensions.TITLE) | ODD,
        "statusText": st.just(extensions.READY) | ODD,
        **dict.fromkeys(("success", "error", "data", "message", "result", "toolCallId", "isError"), ODD),
    },
)


@given(st.lists(RECORDS | st.binary(max_size=40), max_size=20))
def test_nothing_upsets_it_and_every_question_is_answered_once(said: list[Json | bytes]) -> None:
    pi = Pi().ready()
    asked: set[str] = set()
    for record in said:
        open_before = not pi.closed
        pi.says(record)
        if isinstance(record, dict) and open_before and record["type"] == "extension_ui_request":
            dialog = record.get("method") in ("input", "confirm", "select", "editor")
            asked |= {record["id"]} if dialog and isinstance(record.get("id"), str) else set()
    pi.parser.finish(None)
    answered = [answer["id"] for answer in pi.answers()]
    assert len(answered) == len(set(answered))
    assert set(answered) == asked
    allowed = sum(answer.get("value") == extensions.ALLOW for answer in pi.answers())
    assert allowed == len(pi.judged)


def turn(**changes: Any) -> Turn:
    guard = Guard(capability="builder", judge=Pi().judge, hooks=Path("/hooks"), note="")
    usual = Turn(cwd=Path("/work"), scratch=Path("/scratch"), keep=Path("/keep"), session="s", guard=guard)
    return msgspec.structs.replace(usual, **changes)


def test_the_extension_is_the_same_for_every_run() -> None:
    assert RUNTIME.guarding.command is not None
    one = RUNTIME.guarding.command(turn())
    other = RUNTIME.guarding.command(turn(cwd=Path("/`${x}`"), permission="bypass", session="t"))
    assert [file for file in one.files if file.name == extensions.APPROVAL] == list(other.files)
    assert one.arguments[:4] == ("--mode", "rpc", "--no-extensions", "--no-approve")


@pytest.mark.parametrize(
    ("place", "text", "objects"),
    [
        ("work/.pi/settings.json", '{"theme": "dark"}', False),
        ("work/.pi/settings.json", '{"sessionDir": "/elsewhere"}', True),
        ("work/.pi/settings.json", "not json", True),
        ("home/.pi/agent/settings.json", '{"shellPath": "/opt/bin/bash", "sessionDir": "/mine"}', False),
        ("home/.pi/agent/settings.json", '{"shellPath": "/usr/bin/fish"}', True),
        ("home/.pi/agent/settings.json", '{"shellCommandPrefix": "cd /"}', True),
        ("elsewhere/settings.json", '{"shellCommandPrefix": "cd /"}', False),
    ],
)
def test_settings_that_change_what_is_judged(tmp_path: Path, place: str, text: str, objects: bool) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(text)
    asked = turn(cwd=tmp_path / "work", environ={"HOME": str(tmp_path / "home")})
    assert (guarded.objection(asked) is not None) == objects


def test_the_users_settings_are_looked_for_where_pi_does(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "settings.json").write_text('{"shellCommandPrefix": "cd /"}')
    for named in (str(tmp_path / "mine"), "~/mine"):
        environ = {"HOME": str(tmp_path), "PI_CODING_AGENT_DIR": named}
        assert guarded.objection(turn(cwd=tmp_path, environ=environ))
