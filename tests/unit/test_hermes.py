"""What Hermes is told to do and to leave, and what its log says about the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import RefusedError, UsageError
from remuda.core.events import Failure
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes.base import Guard, Invocation, Judge, Turn, TurnState
from remuda.runtimes.hermes import plugin
from remuda.runtimes.hermes.guarded import HermesConnection
from remuda.runtimes.hermes.runtime import (
    connect_command,
    disarm,
    guarded_command,
    print_command,
    spawn_command,
)
from remuda.runtimes.hermes.stream import hear, model

TURN = Turn(cwd=Path("/work"), scratch=Path("/scratch"), keep=Path("/keep"), session="s")
ALLOW, DENY, ASK = (
    Verdict(decision=d, rule="test", reason="a test", hint="") for d in ("allow", "deny", "ask")
)
LOG = b"2026-11-15 20:15:02 [WARNING] agent.conversation_loop: "


def turn(**changes: object) -> Turn:
    return msgspec.structs.replace(TURN, **changes)


def written(invocation: Invocation) -> tuple[dict[str, object], str]:
    """The configuration and the variables that are laid over the user's own."""
    config, variables = invocation.files
    assert (config.name, variables.name) == ("config.yaml", ".env")
    return json.loads(config.content), variables.content


def test_a_bypass_needs_no_configuration_of_its_own() -> None:
    assert print_command(turn(permission="bypass")) == Invocation(
        arguments=("acp",), env={"HERMES_YOLO_MODE": "1"}
    )


def test_without_leave_nothing_is_run_or_written() -> None:
    invocation = print_command(turn())
    config, variables = written(invocation)
    assert config["approvals"] == {"mode": "manual", "deny": ["*"]}
    assert "HERMES_YOLO_MODE='0'\n" in variables
    assert "HERMES_WRITE_SAFE_ROOT='/dev/null'\n" in variables
    assert invocation.env["HERMES_MANAGED_DIR"] == "/scratch"
    assert "HERMES_HOME" not in invocation.env


def guard(judge: Judge = lambda _call: DENY) -> Guard:
    return Guard(capability="builder", judge=judge, hooks=Path("/hooks"), note='Stay "here".')


def test_a_guarded_turn_has_a_plugin_that_asks_and_no_other() -> None:
    invocation = guarded_command(turn(guard=guard(), permission="bypass"))
    *parts, config, variables = invocation.files
    assert json.loads(config.content)["plugins"] == {"enabled": [], "disabled": []}
    assert "deny" not in json.loads(config.content)["approvals"]
    assert "HERMES_BUNDLED_PLUGINS='/scratch/plugins'\n" in variables.content
    for name in ("YOLO_MODE", "EXEC_ASK", "SAFE_MODE", "ENABLE_PROJECT_PLUGINS"):
        assert f"HERMES_{name}='0'\n" in variables.content
        assert invocation.env[f"HERMES_{name}"] == "0"
    assert [part.name.removeprefix("plugins/remuda-guard/") for part in parts] == [
        "plugin.yaml",
        "__init__.py",
        "words.json",
    ]
    compile(parts[1].content, "plugin", "exec")
    assert json.loads(parts[2].content)["refusal"].endswith('Stay "here".')


def test_the_plugin_is_the_same_for_every_run() -> None:
    one, other = (
        guarded_command(turn(guard=guard(), scratch=Path(place), cwd=Path("/'")))
        for place in ("/scratch/1", "/scratch/2")
    )
    assert one.files[:2] == other.files[:2]
    assert one.files[2] != other.files[2]


@pytest.mark.parametrize("scratch", ["/it's", "/a\n", "/${HOME}", "/a\\"])
def test_a_folder_whose_name_would_mean_something_else_is_refused(scratch: str) -> None:
    with pytest.raises(RefusedError):
        guarded_command(turn(scratch=Path(scratch), guard=guard()))


class Asking:
    """A guarded connection whose session is open, and a guard that lets things be read."""

    def __init__(self, reports: bool = True, binding: bool = True) -> None:
        self.judged: list[ToolCall] = []
        self.turn = turn(guard=msgspec.structs.replace(guard(self.judge), binding=binding))
        self.parser = HermesConnection(self.turn)
        self.parser.prompt("the prompt")
        self.answers: list[dict[str, Any]] = []
        if reports:
            self.parser.hear(plugin.mark(self.turn).encode())
        self.says({"id": 1, "result": {"protocolVersion": 1}})
        self.says({"id": 2, "result": {"sessionId": "s-1"}})

    def judge(self, call: ToolCall) -> Verdict:
        self.judged.append(call)
        return {"read_file": ALLOW, "patch": ASK}.get(call.tool, DENY)

    def says(self, frame: object) -> None:
        self.parser.feed(json.dumps(frame).encode())
        words = self.parser.say()
        self.closed = words is None
        self.answers += [json.loads(line) for line in (words or b"").splitlines()]

    def asks(self, raw_input: object, ident: object = 9) -> str:
        options = [
            {"optionId": "allow_once", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"},
        ]
        call = {"toolCallId": f"perm-check-{len(self.answers)}", "rawInput": raw_input}
        params = {"sessionId": "s-1", "toolCall": call, "options": options}
        self.says({"id": ident, "method": "session/request_permission", "params": params})
        answer = self.answers[-1]
        assert answer["id"] == ident
        return str(answer["result"]["outcome"]["optionId"])

    def shows(self, tool: str) -> dict[str, object]:
        call = json.dumps({"tool": tool, "cwd": "/w", "input": {"path": "/w/x"}})
        return {"command": call, "description": plugin.mark(self.turn)}

    def begins(self, ident: str) -> None:
        change = {"sessionUpdate": "tool_call", "toolCallId": ident, "title": "t", "status": "pending"}
        self.says({"method": "session/update", "params": {"sessionId": "s-1", "update": change}})


def test_the_prompt_waits_for_the_plugins_report() -> None:
    assert Asking().answers[-1]["method"] == "session/prompt"
    unreported = Asking(reports=False)
    assert unreported.closed
    assert unreported.parser.state.failure is not None
    assert unreported.parser.state.failure.kind == "refused"
    assert "session/prompt" not in [answer.get("method") for answer in unreported.answers]


def test_every_question_is_judged() -> None:
    hermes = Asking()
    assert hermes.asks(hermes.shows("read_file")) == "allow_once"
    assert hermes.asks(hermes.shows("terminal")) == "no"
    assert hermes.asks({"command": "rm -rf x", "description": "recursive delete"}) == "no"
    assert hermes.asks({"tool": "write_file", "arguments": {"path": "x"}}) == "no"
    assert hermes.judged == [
        ToolCall("read_file", {"path": "/w/x"}, "/w"),
        ToolCall("terminal", {"path": "/w/x"}, "/w"),
        ToolCall("terminal", {"command": "rm -rf x"}, "/work"),
        ToolCall("write_file", {"path": "x"}, "/work"),
    ]
    assert hermes.parser.state.refused == ["terminal", "terminal", "write_file"]


@pytest.mark.parametrize("raw", [None, "", {}, [], {"command": 1}, {"tool": "read_file"}])
def test_a_question_that_cannot_be_read_is_refused(raw: object) -> None:
    hermes = Asking()
    assert hermes.asks(raw) == "no"
    assert hermes.asks({"command": "{", "description": plugin.mark(hermes.turn)}) == "no"
    assert "read_file" not in [call.tool for call in hermes.judged]


def test_a_tool_that_begins_must_have_been_allowed() -> None:
    hermes = Asking()
    hermes.asks(hermes.shows("read_file"))
    hermes.begins("tc-1")
    assert hermes.parser.state.failure is None
    hermes.asks(hermes.shows("terminal"))
    hermes.begins("tc-2")
    assert hermes.closed
    assert hermes.parser.state.failure is not None
    assert hermes.parser.state.failure.kind == "refused"


def ended(hermes: Asking) -> None:
    """The turn ends, and the next begins."""
    number = next(frame["id"] for frame in reversed(hermes.answers) if "method" in frame)
    hermes.parser.prompt("the next")
    usage = {"inputTokens": number, "outputTokens": 1, "totalTokens": 0}
    hermes.says({"id": number, "result": {"stopReason": "end_turn", "usage": usage}})
    assert hermes.answers[-1]["method"] == "session/prompt"
    assert hermes.parser.state.guard == "reported"


def test_what_was_allowed_in_one_turn_is_not_in_the_next() -> None:
    hermes = Asking()
    hermes.asks(hermes.shows("read_file"))
    hermes.begins("tc-1")
    hermes.asks(hermes.shows("read_file"))
    ended(hermes)
    hermes.begins("tc-2")
    assert hermes.closed


def test_a_call_that_goes_on_is_not_a_new_one() -> None:
    hermes = Asking()
    hermes.asks(hermes.shows("read_file"))
    hermes.begins("tc-1")
    ended(hermes)
    change = {"sessionUpdate": "tool_call_update", "toolCallId": "tc-1", "status": "completed"}
    hermes.says({"method": "session/update", "params": {"sessionId": "s-1", "update": change}})
    assert not hermes.closed
    hermes.begins("tc-1")
    assert hermes.closed


def test_a_question_to_a_person_is_over_when_hermes_waits_no_longer() -> None:
    hermes = Asking()
    question = {"sessionId": "s-1", "toolCall": {"toolCallId": "p", "rawInput": hermes.shows("patch")}}
    options = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
    hermes.says({"id": 7, "method": "session/request_permission", "params": {**question, "options": options}})
    (asked,) = hermes.parser.questions
    assert asked.tool == "patch"
    hermes.parser.hear(
        b"2026-11-15 20:15:02 [WARNING] acp_adapter.permissions: Permission request timed out or failed: "
    )
    assert not hermes.parser.questions
    assert hermes.parser.decide(asked.id, True, "too late") is None
    hermes.says({})
    assert hermes.answers[-1]["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
    hermes.begins("tc-1")
    assert hermes.closed


def test_in_a_persons_own_session_there_is_no_plugin() -> None:
    hermes = Asking(reports=False, binding=False)
    assert hermes.answers[-1]["method"] == "session/prompt"
    hermes.begins("tc-1")
    assert not hermes.closed
    assert hermes.asks({"command": "rm -rf x", "description": "recursive delete"}) == "no"
    assert hermes.judged == [ToolCall("terminal", {"command": "rm -rf x"}, "/work")]


def test_a_persons_own_session_asks_over_the_connection() -> None:
    invocation = connect_command(turn())
    assert invocation == Invocation(arguments=("acp",), env={"HERMES_EXEC_ASK": "0"})
    assert connect_command(turn(permission="bypass")).env["HERMES_YOLO_MODE"] == "1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.integers() | st.text(max_size=3), JSON), max_size=8))
def test_every_question_is_answered_once(questions: list[tuple[object, object]]) -> None:
    hermes = Asking()
    for ident, raw in questions:
        assert hermes.asks(raw, ident) == "no"
    assert len(hermes.answers) == 3 + len(questions)


def test_an_endpoint_has_a_home_of_its_own() -> None:
    invocation = print_command(turn(endpoint="http://127.0.0.1:1", permission="bypass", model="m"))
    config, _ = written(invocation)
    assert config["model"] == {
        "provider": "custom",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key": "remuda-endpoint-key",
        "default": "m",
        "context_length": 200_000,
    }
    assert invocation.env["HERMES_HOME"] == "/keep"
    assert invocation.keeps


def test_instructions_are_added_but_not_replaced() -> None:
    config, _ = written(print_command(turn(append_system_prompt="Be brief.")))
    assert config["agent"] == {"environment_hint": "Be brief."}
    with pytest.raises(UsageError):
        print_command(turn(system_prompt="Be brief."))


def test_a_person_answers_for_themselves() -> None:
    assert spawn_command(turn(resume=True)) == Invocation(arguments=("--resume", "s"))


@pytest.mark.parametrize("prompt", ["/help", " \n/reset all"])
def test_a_command_is_only_text(prompt: str) -> None:
    assert disarm(prompt) == f"Task: {prompt}"
    assert disarm(f"Say {prompt}") == f"Say {prompt}"


def heard(*lines: bytes) -> TurnState:
    state = TurnState()
    for line in lines:
        hear(state, line)
    return state


TROUBLE = LOG + b"API call failed (attempt 1/3) error_type=X model=m summary=HTTP 500: Oh no"


def test_the_log_tells_of_trouble_and_of_its_end() -> None:
    assert heard(TROUBLE).trouble == Failure("model", "HTTP 500: Oh no")
    assert heard(TROUBLE, LOG + b"API call #1: model=m provider=custom in=1 out=2").trouble is None
    final = heard(LOG + b"Non-retryable client error: Error code: 401 - \xff").failure
    assert final is not None
    assert final.kind == "auth"


def test_what_a_prompt_says_is_not_taken_for_the_log() -> None:
    quoted = b"2026-11-15 20:15:02 [INFO] acp_adapter.server: Prompt on session s: API call failed (attempt 1"
    state = heard(quoted, b"Non-retryable client error: 401")
    assert state.trouble is state.failure is None


def test_a_model_is_named_without_its_provider() -> None:
    assert [model(name) for name in ("custom:m-1", "openrouter:a/b:free", "plain")] == [
        "m-1",
        "a/b:free",
        "plain",
    ]
