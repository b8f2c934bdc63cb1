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
from remuda.runtimes.control import HOOKS, PROMPT_HOOK, TOOL_HOOK, ControlConnection
from remuda.runtimes.dialogue import one_turn
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
        self.parser = one_turn(ControlConnection(turn, lambda: make(turn, "")), PROMPT)
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
    agent.parser = one_turn(ControlConnection(turn, lambda: claude_stream.parser(turn, "")), PROMPT)
    agent.listen()
    assert denial(agent.hook("t1", "ls"))


ASKED = Verdict(decision="ask", rule="test.ask", reason="who knows")


class Session(Agent):
    """An agent in a session of many turns, with a person to be asked about what is unclear."""

    def __init__(self, *, binding: bool = True, **changes: object) -> None:
        super().__init__()

        def judge(call: ToolCall) -> Verdict:
            verdict = self.judge(call)
            return ASKED if "unclear" in repr(call.input) else verdict

        guard = Guard(capability="builder", judge=judge, hooks=Path("/hooks"), note="", binding=binding)
        turn = msgspec.structs.replace(make_turn(self.judge), **{"guard": guard} | changes)
        self.parser = ControlConnection(turn, lambda: claude_stream.parser(turn, ""))
        self.heard.clear()
        self.listen()
        self.greet()

    def turn(self, text: str) -> None:
        """A prompt, and the hook that tells of it."""
        self.parser.prompt(text)
        self.listen()
        self.ask(subtype="hook_callback", callback_id=PROMPT_HOOK, input={"prompt": text})

    def request(self, ident: str, command: str) -> None:
        """A request for permission that may have to wait."""
        given = {"command": command}
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": given, "tool_use_id": ident}
        self.say({"type": "control_request", "request_id": ident, "request": asked})

    def answers(self, ident: str) -> list[Json]:
        replies = [message["response"] for message in self.heard if message["type"] == "control_response"]
        return [reply["response"] for reply in replies if reply["request_id"] == ident]

    def decide(self, question: str, allowed: bool) -> bool:
        done = self.parser.decide(question, allowed, "so it be")
        self.listen()
        return done is not None

    def result(self, text: str, cost: float = 0, **more: object) -> None:
        usage = {"input_tokens": 3, "output_tokens": 4}
        self.say({"type": "result", "result": text, "usage": usage, "total_cost_usd": cost} | more)


def test_each_turn_has_a_state_of_its_own() -> None:
    agent = Session()
    agent.turn("one")
    agent.say({"type": "system", "subtype": "init", "session_id": "s-1", "model": "m"})
    agent.result("First.", 0.5)
    first = agent.state
    assert (agent.parser.phase, first.text, first.cost_usd) == ("idle", "First.", 0.5)
    agent.parser.prompt("two")
    agent.listen()
    assert (agent.parser.phase, agent.parser.acknowledged) == ("working", False)
    assert (agent.state.text, agent.state.guard, agent.state.session) == ("", "awaited", "s-1")
    agent.start()
    assert agent.parser.acknowledged
    agent.result("Second.", 0.75)
    assert (agent.state.text, agent.state.cost_usd, first.text) == ("Second.", 0.25, "First.")


def test_a_failed_turn_is_not_the_end() -> None:
    agent = Session()
    agent.turn("one")
    agent.result("it failed", is_error=True, api_error_status=500)
    assert agent.state.failure is not None
    agent.turn("two")
    agent.result("Well again.")
    assert (agent.state.failure, agent.state.text) == (None, "Well again.")


def test_a_turn_that_nobody_asked_for_ends_no_other() -> None:
    """Work in the background has ended, and the agent speaks of it while the next prompt is on its way."""
    agent = Session()
    agent.turn("one")
    agent.result("First.")
    agent.parser.prompt("two")
    agent.listen()
    notice = {"prompt": "<task-notification>it is done</task-notification>"}
    agent.ask(subtype="hook_callback", callback_id=PROMPT_HOOK, input=notice)
    agent.result("It is done.")
    assert (agent.parser.phase, agent.state.text) == ("working", "")
    agent.ask(subtype="hook_callback", callback_id=PROMPT_HOOK, input={"prompt": "two"})
    agent.result("Second.")
    assert (agent.parser.phase, agent.state.text) == ("idle", "Second.")


def test_a_person_decides_once() -> None:
    agent = Session()
    agent.turn("one")
    agent.request("q1", "unclear 1")
    agent.request("q2", "unclear 2")
    assert agent.answers("q1") == agent.answers("q2") == []
    first, second = agent.parser.questions
    assert (first.tool, first.title, first.reason) == ("Bash", "unclear 1", "who knows")
    assert agent.decide(second.id, False)
    assert agent.decide(first.id, True)
    assert not agent.decide(first.id, False)
    assert agent.answers("q1") == [{"behavior": "allow", "updatedInput": {"command": "unclear 1"}}]
    assert agent.answers("q2") == [{"behavior": "deny", "message": "so it be (person)"}]
    assert agent.outcome("q1")
    assert agent.state.failure is None
    agent.outcome("q2")
    assert agent.state.failure is not None


def test_a_request_that_is_taken_back_wants_no_answer() -> None:
    agent = Session()
    agent.turn("one")
    agent.request("q1", "unclear")
    (question,) = agent.parser.questions
    agent.say({"type": "control_cancel_request", "request_id": "another"})
    assert agent.parser.questions == (question,)
    agent.say({"type": "control_cancel_request", "request_id": "q1"})
    assert not agent.parser.questions
    assert not agent.decide(question.id, True)
    assert not agent.answers("q1")


def test_an_abort_denies_what_is_open_and_what_comes_after_it() -> None:
    agent = Session()
    agent.turn("one")
    agent.parser.prompt("waits, and will not be sent")
    agent.request("q1", "unclear")
    agent.parser.abort()
    agent.parser.abort()
    agent.listen()
    (denied,) = agent.answers("q1")
    assert denied["behavior"] == "deny"
    asked = [message["request"] for message in agent.heard if message["type"] == "control_request"]
    assert [request["subtype"] for request in asked] == ["initialize", "interrupt"]
    agent.request("q2", "ls")
    (denied,) = agent.answers("q2")
    assert denied["behavior"] == "deny"
    agent.result("", is_error=True)
    assert agent.state.failure is not None
    assert (agent.state.failure.kind, agent.state.stop_reason) == ("cancelled", "cancelled")
    assert agent.parser.phase == "idle"
    agent.turn("two")
    agent.request("q3", "ls")
    (granted,) = agent.answers("q3")
    assert granted["behavior"] == "allow"


def test_what_is_open_at_the_end_of_a_turn_is_denied() -> None:
    agent = Session()
    agent.turn("one")
    agent.request("q1", "unclear")
    agent.result("Done without it.")
    (denied,) = agent.answers("q1")
    assert denied["behavior"] == "deny"
    assert not agent.parser.questions


def test_in_a_persons_own_session_only_what_is_asked_for_is_judged() -> None:
    agent = Session(binding=False)
    agent.turn("one")
    assert agent.state.guard == "none"
    assert agent.hook("t1", "forbidden", cwd="/elsewhere")["response"] == {}
    agent.outcome("t1")
    assert agent.state.failure is None
    assert not agent.judge.asked
    agent.hook("t2", "ls", cwd="/elsewhere")
    agent.request("t2", "ls")
    assert agent.judge.asked == [ToolCall("Bash", {"command": "ls"}, "/elsewhere")]


def test_whoever_wants_no_questions_gets_none() -> None:
    agent = Session(guard=None, permission="bypass")
    agent.turn("one")
    assert agent.hook("t1", "forbidden")["response"] == {}
    agent.request("t1", "forbidden")
    assert agent.answers("t1")[0]["behavior"] == "allow"


ACTS = st.one_of(
    st.tuples(st.just("request"), st.sampled_from(["ls", "forbidden", "unclear"])),
    st.tuples(st.just("decide"), st.booleans()),
    st.tuples(st.sampled_from(["abort", "result", "prompt", "cancel"]), st.none()),
)


@given(st.lists(ACTS, max_size=30), st.booleans())
def test_whatever_happens_every_request_is_answered_once(
    acts: list[tuple[str, str | bool | None]], binding: bool
) -> None:
    agent = Session(binding=binding)
    open_: dict[str, str] = {}
    for number, (act, given_) in enumerate(acts):
        match act:
            case "request":
                open_[f"r-{number}"] = str(given_)
                agent.request(f"r-{number}", str(given_))
            case "decide" if agent.parser.questions:
                agent.decide(agent.parser.questions[0].id, bool(given_))
            case "abort":
                agent.parser.abort()
            case "result":
                agent.result("Done.")
            case "prompt" if agent.parser.phase == "idle":
                agent.turn("again")
        agent.listen()
    agent.parser.abort()
    agent.listen()
    waiting = {question.title for question in agent.parser.questions}
    for ident, command in open_.items():
        answers = agent.answers(ident)
        assert len(answers) == 1 or (not answers and command in waiting)
        assert not answers or command != "forbidden" or answers[0]["behavior"] == "deny"


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
