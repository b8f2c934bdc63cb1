"""The client's side of the control protocol: what it says, whom it asks, and that nothing upsets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.events import AnyUpdate
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.runtimes.base import Guard, Parser, Turn, TurnState
from remuda.runtimes.claude import stream as claude_stream
from remuda.runtimes.control import HOOKS, PROMPT_HOOK, TOOL_HOOK, ControlParser
from remuda.runtimes.rehearsal import stream as rehearsal_stream

Json = dict[str, Any]

PROMPT = 'Say "hello"\nto 漢字 🐎.'
ALLOW = Verdict(decision="allow", rule="allow", reason="fine", hint="")
DENY = Verdict(decision="deny", rule="test.deny", reason="it is forbidden", hint="Leave it.")


class Judge:
    """Denies whatever speaks of something forbidden, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ToolCall] = []

    def __call__(self, call: ToolCall) -> Verdict:
        self.asked.append(call)
        return DENY if "forbidden" in repr(call.input) else ALLOW


def make_turn(judge: Judge) -> Turn:
    guard = Guard(capability="builder", judge=judge, hooks=Path("/hooks"), note="")
    return Turn(cwd=Path("/work"), scratch=Path("/s"), keep=Path("/k"), session="x", guard=guard)


class Agent:
    """Plays the agent's part, and reads every word of ours."""

    def __init__(self, make: Callable[[Turn, str], Parser] = claude_stream.parser) -> None:
        self.judge = Judge()
        turn = make_turn(self.judge)
        self.parser = ControlParser(turn, PROMPT, make(turn, PROMPT))
        self.heard: list[Json] = []
        self.asked = 0
        self.listen()

    @property
    def state(self) -> TurnState:
        return self.parser.state

    @property
    def closed(self) -> bool:
        return self.parser.say() is None

    def listen(self) -> list[Json]:
        words = self.parser.say() or b""
        assert not words or words.endswith(b"\n")
        said = [json.loads(line) for line in words.splitlines()]
        self.heard += said
        return said

    def say(self, message: Json) -> list[AnyUpdate]:
        updates = list(self.parser.feed(json.dumps(message).encode()))
        self.listen()
        return updates

    def greet(self) -> Agent:
        ident = self.heard[0]["request_id"]
        self.say({"type": "control_response", "response": {"subtype": "success", "request_id": ident}})
        return self

    def ask(self, **request: object) -> Json:
        """Ask something; the one answer."""
        self.asked += 1
        before = len(self.heard)
        ident = f"q-{self.asked}"
        self.say({"type": "control_request", "request_id": ident, "request": request})
        (answer,) = self.heard[before:]
        assert (answer["type"], answer["response"]["request_id"]) == ("control_response", ident)
        reply = answer["response"]
        assert isinstance(reply, dict)
        return reply

    def hook(self, ident: str, command: str, cwd: str = "/tree/below") -> Json:
        told = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": ident, "cwd": cwd}
        return self.ask(subtype="hook_callback", callback_id=TOOL_HOOK, input=told, tool_use_id=ident)

    def permission(self, ident: str, command: str) -> Json:
        given = {"command": command}
        return self.ask(subtype="can_use_tool", tool_name="Bash", input=given, tool_use_id=ident)

    def start(self) -> None:
        self.ask(subtype="hook_callback", callback_id=PROMPT_HOOK, input={"prompt": PROMPT})

    def outcome(self, ident: str, *, error: bool = False) -> list[AnyUpdate]:
        block = {"type": "tool_result", "tool_use_id": ident, "content": "out", "is_error": error}
        return self.say({"type": "user", "message": {"content": [block]}})


def denial(reply: Json) -> str:
    output = reply["response"]["hookSpecificOutput"]
    assert (output["hookEventName"], output["permissionDecision"]) == ("PreToolUse", "deny")
    words = output["permissionDecisionReason"]
    assert isinstance(words, str)
    return words


def test_the_hooks_are_announced_before_the_prompt_is_told() -> None:
    agent = Agent()
    (greeting,) = agent.heard
    assert greeting["type"] == "control_request"
    assert greeting["request"] == {"subtype": "initialize", "hooks": HOOKS}
    agent.say({"type": "control_response", "response": {"subtype": "success", "request_id": "another"}})
    assert len(agent.heard) == 1
    agent.greet().greet()
    (_, prompt) = agent.heard
    assert prompt["type"] == "user"
    assert prompt["message"] == {"role": "user", "content": [{"type": "text", "text": PROMPT}]}


def test_an_agent_that_takes_no_hooks_hears_no_prompt() -> None:
    agent = Agent()
    ident = agent.heard[0]["request_id"]
    reply = {"subtype": "error", "request_id": ident, "error": "what is a hook?"}
    agent.say({"type": "control_response", "response": reply})
    assert agent.closed
    assert len(agent.heard) == 1
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "start_failed"


def test_the_guard_is_awaited_until_the_first_hook() -> None:
    agent = Agent().greet()
    assert agent.state.guard == "awaited"
    agent.start()
    assert agent.state.guard == "reported"


def test_a_hook_is_silent_or_denies_with_the_reason() -> None:
    agent = Agent().greet()
    assert agent.hook("t1", "ls") == {"subtype": "success", "request_id": "q-1", "response": {}}
    assert denial(agent.hook("t2", "forbidden")) == told(DENY)
    assert agent.judge.asked == [
        ToolCall("Bash", {"command": "ls"}, "/tree/below"),
        ToolCall("Bash", {"command": "forbidden"}, "/tree/below"),
    ]


def test_permission_is_given_for_what_was_judged() -> None:
    agent = Agent().greet()
    assert agent.permission("t1", "ls")["response"] == {
        "behavior": "allow",
        "updatedInput": {"command": "ls"},
    }
    assert agent.permission("t2", "forbidden")["response"] == {"behavior": "deny", "message": told(DENY)}


def test_permission_is_judged_where_the_hook_said_the_agent_is() -> None:
    agent = Agent().greet()
    agent.hook("t1", "ls", cwd="/elsewhere")
    agent.permission("t1", "ls")
    agent.permission("t2", "ls")
    assert [call.cwd for call in agent.judge.asked] == ["/elsewhere", "/elsewhere", "/work"]


@pytest.mark.parametrize("given", [None, "text", 7, ["a"]])
def test_what_cannot_be_read_is_denied_unasked(given: object) -> None:
    agent = Agent().greet()
    told = {"tool_name": "Bash", "tool_input": given, "tool_use_id": "t1", "cwd": "/work"}
    assert denial(agent.ask(subtype="hook_callback", callback_id=TOOL_HOOK, input=told))
    reply = agent.ask(subtype="can_use_tool", tool_name="Bash", input=given, tool_use_id="t1")
    assert reply["response"]["behavior"] == "deny"
    assert agent.judge.asked == []


@pytest.mark.parametrize(
    "request_", [{"subtype": "mcp_message"}, {}, {"subtype": "hook_callback", "callback_id": "not-ours"}]
)
def test_other_requests_are_refused(request_: Json) -> None:
    assert Agent().greet().ask(**request_)["subtype"] == "error"


@pytest.mark.parametrize("asked", [b"{", b'{"subtype":"can_use_tool","input":{"a":"\\ud800"}}}'])
def test_a_request_that_is_no_json_ends_the_turn(asked: bytes) -> None:
    agent = Agent().greet()
    agent.parser.feed(b'{"type":"control_request","request_id":"1","request":' + asked)
    assert agent.closed
    assert agent.state.failure is not None


def test_a_call_that_was_granted_may_complete() -> None:
    agent = Agent().greet()
    agent.hook("t1", "ls")
    agent.permission("t1", "ls")
    assert len(agent.outcome("t1")) == 1
    assert agent.state.failure is None


def test_a_call_that_completes_unasked_ends_the_turn() -> None:
    agent = Agent().greet()
    agent.outcome("t1")
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "refused"
    assert agent.closed


def test_a_call_that_completes_although_it_was_denied_ends_the_turn() -> None:
    agent = Agent().greet()
    agent.hook("t1", "ls")
    agent.permission("t1", "forbidden")
    agent.outcome("t1")
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "refused"


def test_a_call_that_fails_needs_no_consent() -> None:
    agent = Agent().greet()
    agent.outcome("t1", error=True)
    assert agent.state.failure is None


def test_the_connection_is_closed_behind_the_result() -> None:
    agent = Agent().greet()
    assert not agent.closed
    agent.say({"type": "result", "subtype": "success", "result": "Done."})
    assert agent.closed
    assert (agent.state.text, agent.state.stop_reason) == ("Done.", "end_turn")


def test_without_a_guard_nothing_is_allowed() -> None:
    turn = msgspec.structs.replace(make_turn(Judge()), guard=None)
    agent = Agent()
    agent.parser = ControlParser(turn, PROMPT, claude_stream.parser(turn, PROMPT))
    agent.listen()
    assert denial(agent.hook("t1", "ls"))


def request(**fields: object) -> Json:
    return {"type": "control_request", "request_id": "r", "request": fields}


TOLD = {"tool_name": "Bash", "tool_input": {"command": "forbidden"}, "tool_use_id": "t", "cwd": "/"}
MESSAGES: list[Json] = [
    {"type": "control_response", "response": {"subtype": "success", "request_id": "remuda-1"}},
    request(subtype="hook_callback", callback_id=PROMPT_HOOK, input={}),
    request(subtype="hook_callback", callback_id=TOOL_HOOK, input=TOLD),
    request(subtype="can_use_tool", tool_name="Bash", input={"command": "forbidden"}, tool_use_id="t"),
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}},
    {"type": "tool_result", "id": "t", "status": "completed", "output": "x"},
    {"type": "control_cancel_request", "request_id": "r"},
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A message with one part of it replaced or left out."""
    message = json.loads(json.dumps(draw(st.sampled_from(MESSAGES))))
    place = message
    while True:
        key = draw(st.sampled_from(sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict) or not inner or draw(st.booleans()):
            break
        place = inner
    if draw(st.booleans()):
        del place[key]
    else:
        place[key] = draw(values)
    return json.dumps(message).encode()


lines = st.lists(
    st.one_of(
        st.sampled_from(MESSAGES).map(json.dumps).map(str.encode),
        mutated(),
        st.binary(max_size=40),
        values.map(json.dumps).map(str.encode),
    ),
    max_size=12,
)


def grants(message: Json) -> bool:
    response = message["response"].get("response")
    return isinstance(response, dict) and response.get("behavior") == "allow"


@given(lines, st.sampled_from([claude_stream.parser, rehearsal_stream.parser]))
def test_nothing_upsets_it_and_every_request_has_one_answer(
    said: list[bytes], make: Callable[[Turn, str], Parser]
) -> None:
    agent = Agent(make)
    for line in said:
        was_over = agent.closed
        list(agent.parser.feed(line))
        agent.parser.hear(line)
        answers = [message for message in agent.listen() if message["type"] == "control_response"]
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        asks = isinstance(message, dict) and message.get("type") == "control_request"
        assert len(answers) == (asks and not was_over)
        assert not any(map(grants, answers)) or "forbidden" not in line.decode()
    agent.parser.finish(None)
    msgspec.json.encode(agent.state)
