"""The client's side of the Agent Client Protocol: what it says, what it hears, and that nothing upsets it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from remuda.core.events import AnyUpdate, Usage
from remuda.guard.model import Context, Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.hooks.judging import recording_judge
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Access, Guard, Permission, Turn, TurnState
from remuda.runtimes.copilot import guarded as copilot
from remuda.runtimes.dialogue import one_turn
from remuda.runtimes.gemini import guarded as gemini
from remuda.runtimes.opencode import guarded as opencode

Json = dict[str, Any]

PROMPT = 'Say "hello"\nto 漢字 🐎.'
SESSION = "session-1"
OPTIONS = [
    {"optionId": "once", "kind": "allow_once", "name": "Allow"},
    {"optionId": "always", "kind": "allow_always", "name": "Allow always"},
    {"optionId": "no", "kind": "reject_once", "name": "Deny"},
    {"optionId": "never", "kind": "reject_always", "name": "Deny always"},
]
REQUESTS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/prompt": schema.PromptRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/cancel": schema.CancelNotification,
    "session/fork": schema.ForkSessionRequest,
}


def make_turn(
    cwd: Path = Path("/desk"),
    *,
    resume: bool = False,
    access: Access | None = None,
    permission: Permission = "ask",
    guard: Guard | None = None,
) -> Turn:
    return Turn(
        cwd=cwd,
        scratch=Path("/scratch"),
        keep=Path("/keep"),
        session="earlier",
        resume=resume,
        access=access,
        permission=permission,
        guard=guard,
    )


class Agent:
    """Plays the agent's part, and holds every word of ours against the protocol's schema."""

    def __init__(self, turn: Turn | None = None, dialect: Dialect | None = None) -> None:
        self.parser = one_turn(AcpConnection(turn or make_turn(), dialect or Dialect()), PROMPT)
        self.heard: list[Json] = []
        self.listen()

    @property
    def state(self) -> TurnState:
        return self.parser.state

    @property
    def closed(self) -> bool:
        return self.parser.say() is None

    def listen(self) -> None:
        words = self.parser.say() or b""
        assert not words or words.endswith(b"\n")
        for line in words.splitlines():
            frame = json.loads(line)
            assert frame["jsonrpc"] == "2.0"
            check_words(frame)
            self.heard.append(frame)

    def say(self, *frames: Json, end: str = "\n") -> list[AnyUpdate]:
        updates = [update for frame in frames for update in self.parser.feed(self.line(frame, end))]
        self.listen()
        return updates

    @staticmethod
    def line(frame: Json, end: str = "") -> bytes:
        return (json.dumps({"jsonrpc": "2.0", **frame}) + end).encode()

    def answer(self, result: Json | None) -> list[AnyUpdate]:
        return self.say({"id": self.heard[-1]["id"], "result": result})

    def greet(self, **abilities: object) -> None:
        self.answer({"protocolVersion": 1, "agentCapabilities": {"loadSession": True, **abilities}})

    def open(self) -> Agent:
        """Come to where the prompt has been sent."""
        self.greet()
        self.answer({"sessionId": SESSION, "models": {"currentModelId": "m-1", "availableModels": []}})
        return self

    def update(self, **update: object) -> list[AnyUpdate]:
        session = self.state.session
        return self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def chunk(self, text: str, kind: str = "agent_message_chunk") -> list[AnyUpdate]:
        return self.update(sessionUpdate=kind, content={"type": "text", "text": text})

    def ask(self, options: list[Json] = OPTIONS, **call: object) -> Json:
        call = {"toolCallId": "c1", "title": "Do it", **call}
        params = {"sessionId": SESSION, "toolCall": call, "options": options}
        self.say({"id": "q-1", "method": "session/request_permission", "params": params})
        assert self.heard[-1]["id"] == "q-1"
        outcome: Json = self.heard[-1]["result"]["outcome"]
        return outcome


def check_words(frame: Json) -> None:
    """A request of ours, or an answer, as the schema of the protocol has it."""
    if "method" in frame:
        REQUESTS[frame["method"]].model_validate(frame["params"], extra="forbid")
    elif "error" in frame:
        schema.Error.model_validate(frame["error"])
    else:
        schema.RequestPermissionResponse.model_validate(frame["result"])


def plain(updates: Iterable[AnyUpdate]) -> list[Json]:
    """Updates as they are written; each is one that any client of the protocol understands."""
    written = [json.loads(msgspec.json.encode(update)) for update in updates]
    for update in written:
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
    return written


def test_a_turn_from_greeting_to_goodbye() -> None:
    agent = Agent().open()
    assert [frame["method"] for frame in agent.heard] == ["initialize", "session/new", "session/prompt"]
    assert agent.heard[1]["params"] == {"cwd": "/desk", "mcpServers": []}
    assert agent.heard[2]["params"] == {"sessionId": SESSION, "prompt": [{"type": "text", "text": PROMPT}]}
    assert plain(agent.chunk("Hm.", "agent_thought_chunk"))[0]["content"]["text"] == "Hm."
    assert plain(agent.chunk("Hello ")) + plain(agent.chunk("there."))
    assert not agent.closed
    usage = {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 15,
        "cachedReadTokens": 3,
        "thoughtTokens": None,
    }
    agent.answer({"stopReason": "max_tokens", "usage": usage})
    state = agent.state
    assert (state.text, state.stop_reason, state.session, state.model) == (
        "Hello there.",
        "max_tokens",
        SESSION,
        "m-1",
    )
    assert state.usage == Usage(10, 5, 3)
    assert state.failure is None
    assert agent.closed


def test_the_protocol_says_what_we_cannot_do() -> None:
    capabilities = Agent().heard[0]["params"]["clientCapabilities"]
    assert capabilities == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "_x/y"])
def test_what_we_do_not_offer_is_declined(method: str) -> None:
    agent = Agent().open()
    assert agent.say({"id": 7, "method": method, "params": {"path": "/etc/passwd"}}) == []
    assert (agent.heard[-1]["id"], agent.heard[-1]["error"]["code"]) == (7, -32601)
    assert not agent.closed


@pytest.mark.parametrize("continues", ["session/load", "session/resume"])
def test_an_earlier_session_is_continued_and_its_history_is_not_news(continues: Any) -> None:
    agent = Agent(make_turn(resume=True), Dialect(continues=continues))
    agent.greet(sessionCapabilities={"resume": {}})
    assert agent.heard[-1]["method"] == continues
    assert agent.heard[-1]["params"]["sessionId"] == "earlier"
    history = {
        "sessionId": "earlier",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Old."}},
    }
    assert agent.say({"method": "session/update", "params": history}) == []
    agent.answer({})
    assert plain(agent.chunk("New."))
    agent.answer({"stopReason": "end_turn"})
    assert (agent.state.text, agent.state.session) == ("New.", "earlier")


@pytest.mark.parametrize("abilities", [{"loadSession": False}, {"loadSession": None}])
def test_an_agent_that_cannot_continue_is_not_asked_to(abilities: Json) -> None:
    agent = Agent(make_turn(resume=True))
    agent.greet(**abilities)
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "start_failed"
    assert agent.closed


def test_a_session_that_is_gone_is_a_failed_start() -> None:
    agent = Agent(make_turn(resume=True))
    agent.greet()
    agent.answer(None)
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "start_failed"
    assert "earlier" in agent.state.failure.message
    assert agent.closed


def test_tools_are_told_with_what_they_were_called_with() -> None:
    agent = Agent().open()
    (call,) = plain(
        agent.update(
            sessionUpdate="tool_call", toolCallId="a", title="ls", kind="execute", rawInput={"command": "ls"}
        )
    )
    assert call == {
        "sessionUpdate": "tool_call",
        "toolCallId": "a",
        "title": "ls",
        "kind": "execute",
        "status": "pending",
        "rawInput": {"command": "ls"},
    }
    content = [
        {"type": "content", "content": {"type": "text", "text": "f.txt"}},
        {"type": "terminal", "terminalId": "t"},
    ]
    (outcome,) = plain(
        agent.update(sessionUpdate="tool_call_update", toolCallId="a", status="completed", content=content)
    )
    assert (outcome["status"], outcome["content"][0]["content"]["text"]) == ("completed", "f.txt")


def test_a_tool_that_is_shown_only_is_told_by_what_is_shown() -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "$ ls"}}]
    (call,) = plain(
        Agent()
        .open()
        .update(sessionUpdate="tool_call", toolCallId="a", title="run", kind="sing", content=content)
    )
    assert (call["kind"], call["rawInput"]) == ("other", {"title": "run", "text": "$ ls"})


def test_a_tool_that_is_done_at_once_is_told_twice() -> None:
    told = plain(
        Agent().open().update(sessionUpdate="tool_call", toolCallId="a", title="ls", status="failed")
    )
    assert [update["sessionUpdate"] for update in told] == ["tool_call", "tool_call_update"]


def test_the_answer_is_what_is_said_last() -> None:
    agent = Agent().open()
    agent.chunk("I look first.")
    agent.update(sessionUpdate="tool_call", toolCallId="a", title="ls")
    assert agent.chunk("\n\n") == []
    (said,) = plain(agent.chunk("\n\nDone.\n"))
    assert said["content"]["text"] == agent.state.text == "Done.\n"


def test_how_full_the_context_is_does_not_count_as_an_answer() -> None:
    agent = Agent().open()
    assert agent.update(sessionUpdate="usage_update", used=5, size=10) == []
    agent.chunk("Hello.")
    assert plain(agent.update(sessionUpdate="usage_update", used=5, size=10))[0]["used"] == 5


def test_another_session_is_none_of_our_business() -> None:
    agent = Agent().open()
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Psst."}}
    assert agent.say({"method": "session/update", "params": {"sessionId": "another", "update": update}}) == []


@pytest.mark.parametrize(
    ("access", "permission", "kind", "path", "allowed"),
    [
        (None, "ask", "execute", None, False),
        (None, "ask", "read", None, False),
        (None, "bypass", "execute", None, True),
        ("read", "bypass", "execute", None, False),
        ("read", "bypass", "edit", "a.txt", False),
        ("read", "bypass", None, None, False),
        ("read", "ask", "read", "/etc/hosts", True),
        ("read", "ask", "search", None, True),
        ("workspace", "bypass", "execute", None, False),
        ("workspace", "bypass", "fetch", None, False),
        ("workspace", "ask", "edit", None, False),
        ("workspace", "ask", "edit", "a.txt", True),
        ("workspace", "ask", "edit", "{cwd}/b/a.txt", True),
        ("workspace", "ask", "delete", "{cwd}/a.txt", True),
        ("workspace", "ask", "edit", "../a.txt", False),
        ("workspace", "ask", "edit", "{cwd}/../a.txt", False),
        ("workspace", "ask", "edit", "/etc/hosts", False),
        ("workspace", "ask", "edit", "~/a.txt", False),
        ("workspace", "ask", "edit", "way-out/a.txt", False),
        ("workspace", "ask", "edit", "nul\0.txt", False),
    ],
)
def test_permission_is_what_the_turn_allows(
    tmp_path: Path,
    access: Access | None,
    permission: Permission,
    kind: str | None,
    path: str | None,
    allowed: bool,
) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    (cwd / "way-out").symlink_to(tmp_path)
    place = [] if path is None else [path.replace("{cwd}", str(cwd))]
    for call in (
        {"locations": [{"path": path} for path in place]},
        {"content": [{"type": "diff", "path": path, "newText": "x"} for path in place]},
    ):
        agent = Agent(make_turn(cwd, access=access, permission=permission)).open()
        outcome = agent.ask(kind=kind, **call)
        assert outcome == {"outcome": "selected", "optionId": "once" if allowed else "no"}
        assert agent.state.refused == ([] if allowed else ["Do it"])


def test_one_path_outside_spoils_the_whole_edit(tmp_path: Path) -> None:
    agent = Agent(make_turn(tmp_path, access="workspace")).open()
    agent.ask(kind="edit", locations=[{"path": "a.txt"}, {"path": "/etc/hosts"}])
    assert agent.state.refused == ["Do it"]


@pytest.mark.parametrize("permission", ["ask", "bypass"])
def test_nothing_is_allowed_or_denied_for_ever(permission: Permission) -> None:
    lasting = [option for option in OPTIONS if str(option["kind"]).endswith("always")]
    agent = Agent(make_turn(permission=permission)).open()
    assert agent.ask(lasting) == {"outcome": "cancelled"}
    assert agent.state.refused == ["Do it"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32000, "message": "Authentication required"}, "auth"),
        ({"code": -32000, "message": "x"}, "auth"),
        (
            {"code": -32603, "message": "Internal error", "data": {"details": "429 Too Many Requests"}},
            "rate_limit",
        ),
        ({"code": -32603, "message": "Internal error", "data": "exceeded your current quota"}, "quota"),
        ({"code": -32603, "message": "Internal error"}, "model"),
        ({"code": -32603, "message": "", "data": None}, "model"),
        ({}, "model"),
    ],
)
def test_a_prompt_that_fails(error: Json, kind: str) -> None:
    agent = Agent().open()
    agent.say({"id": agent.heard[-1]["id"], "error": error})
    assert agent.state.failure is not None
    assert agent.state.failure.kind == kind
    assert agent.closed


def test_a_session_that_cannot_be_opened() -> None:
    agent = Agent()
    agent.greet()
    agent.say({"id": 2, "error": {"code": -32602, "message": "Invalid params"}})
    assert agent.state.failure is not None
    assert (agent.state.failure.kind, agent.state.failure.message) == ("start_failed", "Invalid params")


@pytest.mark.parametrize("version", [0, 2])
def test_another_version_of_the_protocol(version: int) -> None:
    agent = Agent()
    agent.answer({"protocolVersion": version})
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "protocol"
    assert agent.closed


def test_an_agent_that_goes_away_in_mid_turn() -> None:
    agent = Agent().open()
    agent.parser.finish(None)
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "crashed"


def test_an_agent_that_never_began_is_judged_by_its_last_words() -> None:
    agent = Agent()
    agent.parser.finish(None)
    assert agent.state.failure is None


def test_tokens_of_a_session_say_nothing_about_a_later_turn() -> None:
    for resume, expected in ((False, Usage(9, 1)), (True, None)):
        agent = Agent(make_turn(resume=resume), Dialect(counted_since="session")).open()
        agent.answer(
            {"stopReason": "end_turn", "usage": {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10}}
        )
        assert agent.state.usage == expected


def test_tokens_may_lie_elsewhere() -> None:
    agent = Agent(dialect=Dialect(usage=lambda outcome: msgspec.json.decode(outcome.meta, type=Usage))).open()
    agent.answer({"stopReason": "end_turn", "_meta": {"input_tokens": 4}})
    assert agent.state.usage == Usage(4)


def test_an_answer_without_tokens_may_be_an_error_message() -> None:
    agent = Agent(dialect=Dialect(uncounted_is_failed=True)).open()
    agent.chunk("HTTP 401: invalid key")
    agent.answer({"stopReason": "end_turn"})
    assert agent.state.failure is not None
    assert (agent.state.failure.kind, agent.state.text) == ("auth", "")


def test_a_session_that_is_gone_may_show_only_when_it_is_prompted() -> None:
    agent = Agent(make_turn(resume=True), Dialect(uncounted_is_failed=True)).open()
    agent.answer({"stopReason": "refusal"})
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "start_failed"
    assert "earlier" in agent.state.failure.message


def test_noise_is_skipped_and_counted() -> None:
    agent = Agent().open()
    for noise in (
        b"Loading\xe2\x80\xa6",
        b"\xff\xfe",
        b"{",
        b"[1]",
        b"nul\x00",
        b"7",
        b"null",
        b'"text"',
        b'{"id":{}}',
    ):
        assert list(agent.parser.feed(noise)) == []
    assert agent.state.skipped == 9
    assert list(agent.parser.feed(b"")) == list(agent.parser.feed(b"  \r")) == []
    assert agent.state.skipped == 9
    assert plain(agent.chunk("Still here."))


def test_messages_that_share_a_line_are_all_heard() -> None:
    agent = Agent().open()
    one, two = (
        agent.line(
            {
                "method": "session/update",
                "params": {
                    "sessionId": SESSION,
                    "update": {
                        "sessionUpdate": "agent_message_chunk",
                        "content": {"type": "text", "text": text},
                    },
                },
            }
        )
        for text in ('one {"jsonrpc": "2.0"}', "two")
    )
    for line in (one + two, one + b" " + two, b"[" + one + b"," + two + b"]", b"Log: " + one + two + b"\r"):
        texts = [update["content"]["text"] for update in plain(agent.parser.feed(line))]
        assert texts == ['one {"jsonrpc": "2.0"}', "two"], line


def frames_of_a_turn() -> list[bytes]:
    """What an agent says in a whole turn, with a bit of everything."""
    updates: list[Json] = [
        {"sessionUpdate": "available_commands_update", "availableCommands": []},
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm."}},
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "a",
            "title": "ls",
            "kind": "execute",
            "rawInput": {"c": ["l"]},
        },
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "a",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "x"}}],
        },
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done."}},
        {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    ]
    said: list[Json] = [
        {"method": "session/update", "params": {"sessionId": SESSION, "update": update}} for update in updates
    ]
    asked: Json = {
        "id": 0,
        "method": "session/request_permission",
        "params": {
            "sessionId": SESSION,
            "toolCall": {"toolCallId": "b", "kind": "edit", "locations": [{"path": "/x"}]},
            "options": OPTIONS,
        },
    }
    greeting: Json = {"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}}
    opened: Json = {"id": 2, "result": {"sessionId": SESSION, "models": {"currentModelId": "m"}}}
    ended: Json = {
        "id": 3,
        "result": {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 2}},
    }
    return [Agent.line(frame) for frame in (greeting, opened, *said, asked, ended)]


FRAMES = frames_of_a_turn()
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
values = st.recursive(
    junk,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A frame with something in it replaced or left out, or with some bytes cut."""
    line = draw(st.sampled_from(FRAMES))
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(line)))
        return line[:cut] + draw(st.binary(max_size=4)) + line[draw(st.integers(cut, len(line))) :]
    frame = json.loads(line)
    place = frame
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
    return json.dumps(frame).encode()


lines = st.lists(
    st.one_of(
        st.sampled_from(FRAMES), mutated(), st.binary(max_size=40), values.map(json.dumps).map(str.encode)
    ),
    max_size=15,
)


@given(lines, st.booleans(), st.sampled_from([None, "read", "workspace"]))
def test_nothing_upsets_it(said: list[bytes], resume: bool, access: Access | None) -> None:
    agent = Agent(make_turn(resume=resume, access=access), Dialect(uncounted_is_failed=True))
    for line in said:
        plain(agent.parser.feed(line))
        agent.parser.hear(line)
        agent.listen()
    agent.parser.finish(None)
    msgspec.json.encode(agent.state)


def test_the_frames_that_are_mutated_make_a_whole_turn() -> None:
    agent = Agent()
    for line in FRAMES:
        agent.parser.feed(line)
        agent.listen()
    assert (agent.state.text, agent.state.stop_reason, agent.state.skipped) == ("Done.", "end_turn", 0)


FINE = Verdict(decision="allow", rule="fine", reason="")
WRONG = Verdict(decision="deny", rule="not.fine", reason="because", hint="Stop.")


class Judge:
    """Allows commands that begin with the word ``ok`` and paths below ``/w``, and remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    def __call__(self, call: ToolCall) -> Verdict:
        self.calls.append(call)
        given = call.input if isinstance(call.input, dict) else {}
        paths = given.get("paths", ["/"])
        fine = str(given.get("command")).startswith("ok") or all(path.startswith("/w/") for path in paths)
        return FINE if fine else WRONG


def guarded(judge: Judge, manners: Manners | None = None, **turn: Any) -> Agent:
    """An agent in a guarded turn, whose prompt has been sent."""
    guard = Guard(capability="builder", judge=judge, hooks=Path("/hooks"), note="Be good.")
    return Agent(make_turn(guard=guard, **turn), Dialect(manners=manners or Manners())).open()


def tool(
    agent: Agent, ident: str, status: str | None = None, new: bool = False, **more: object
) -> list[AnyUpdate]:
    kind = "tool_call" if new else "tool_call_update"
    return agent.update(
        sessionUpdate=kind, toolCallId=ident, **({"status": status} if status else {}), **more
    )


def test_a_note_comes_before_the_prompt() -> None:
    blocks = guarded(Judge()).heard[-1]["params"]["prompt"]
    assert [block["text"] for block in blocks] == ["Be good.", PROMPT]


@pytest.mark.parametrize("permission", ["ask", "bypass"])
@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ({"kind": "execute", "rawInput": {"command": "ok"}}, True),
        ({"kind": "execute", "rawInput": {"command": "no"}}, False),
        ({"kind": "execute", "rawInput": {}}, False),
        ({"kind": "execute"}, False),
        ({"kind": "edit", "locations": [{"path": "/w/a"}]}, True),
        ({"kind": "edit", "content": [{"type": "diff", "path": "/w/a", "newText": "x"}]}, True),
        ({"kind": "edit", "locations": [{"path": "/w/a"}, {"path": "/etc/b"}]}, False),
        ({"kind": "read", "locations": [{"path": "/etc/b"}]}, False),
        ({"kind": "edit"}, False),
        ({"kind": "fetch"}, False),
        ({}, False),
    ],
)
def test_the_guard_decides_alone(permission: Permission, call: Json, allowed: bool) -> None:
    judge = Judge()
    agent = guarded(judge, permission=permission)
    assert agent.ask(**call) == {"outcome": "selected", "optionId": "once" if allowed else "no"}
    assert len(judge.calls) == 1
    assert bool(agent.state.refused) != allowed


def test_a_refusal_is_told_once_with_its_reason() -> None:
    agent = guarded(Judge())
    params = {
        "sessionId": SESSION,
        "options": OPTIONS,
        "toolCall": {"toolCallId": "a", "title": "rm", "kind": "execute", "rawInput": {"command": "no"}},
    }
    updates = plain(agent.say({"id": 9, "method": "session/request_permission", "params": params}))
    assert [update["sessionUpdate"] for update in updates] == ["tool_call", "tool_call_update"]
    assert updates[1]["status"] == "failed"
    assert updates[1]["content"][0]["content"]["text"] == told(WRONG)
    assert agent.say({"id": 10, "method": "session/request_permission", "params": params}) == []
    assert tool(agent, "a", "failed") == []
    assert agent.state.refused == ["shell"]


def test_nothing_is_allowed_for_good_under_a_guard() -> None:
    lasting = [option for option in OPTIONS if str(option["kind"]).endswith("always")]
    agent = guarded(Judge())
    assert agent.ask(lasting, kind="execute", rawInput={"command": "ok"}) == {"outcome": "cancelled"}
    assert agent.state.refused == ["shell"]


def completed(update: Any, _told: Told) -> bool:
    return bool(update.status == "completed")


@pytest.mark.parametrize("command", [None, "no"])
def test_a_tool_that_runs_without_consent_ends_the_turn(command: str | None) -> None:
    agent = guarded(Judge(), Manners(ran=completed))
    tool(agent, "c1", "pending", new=True)
    if command:
        agent.ask(kind="execute", rawInput={"command": command})
    assert not agent.closed
    assert tool(agent, "c1", "completed") == []
    assert agent.state.failure is not None
    assert agent.state.failure.kind == "refused"
    assert agent.closed


def test_a_tool_that_asked_may_run() -> None:
    agent = guarded(Judge(), Manners(ran=completed))
    agent.ask(kind="execute", rawInput={"command": "ok"})
    assert tool(agent, "c1", "completed")
    assert agent.state.failure is None


def test_a_request_waits_until_enough_is_known() -> None:
    judge = Judge()
    agent = guarded(judge, Manners(understands=opencode.understands, enough=opencode.enough))
    tool(agent, "c1", "pending", new=True, title="bash", rawInput={"cwd": "/desk"})
    params = {"sessionId": SESSION, "options": OPTIONS, "toolCall": {"toolCallId": "c1", "title": "ok"}}
    agent.say({"id": 9, "method": "session/request_permission", "params": params})
    assert "method" in agent.heard[-1]
    tool(agent, "c1", "in_progress", title="ok", rawInput={"command": "ok", "workdir": "/elsewhere"})
    assert agent.heard[-1]["result"]["outcome"]["optionId"] == "once"
    agent.say({"id": 10, "method": "session/request_permission", "params": params})
    assert agent.heard[-1]["id"] == 10
    assert judge.calls == [ToolCall("bash", {"command": "ok", "workdir": "/elsewhere"}, "/desk")]


def asked(**call: object) -> Any:
    return msgspec.convert({"content": msgspec.Raw(b"[]"), **call}, type=wire.Change)


def shown(text: str) -> msgspec.Raw:
    return msgspec.Raw(json.dumps([{"type": "content", "content": {"type": "text", "text": text}}]).encode())


@pytest.mark.parametrize(
    ("details", "folder"),
    [
        ("[current working directory /desk]", "/desk"),
        ("[current working directory /desk] (a] (b)", "/desk"),
        ("[current working directory /deskshop]", None),
        ("[in sub]", "sub"),
        ("[in sub] (tidy up) [background]", "sub"),
        ("[in sub] (b] (c)", None),
        ("", None),
    ],
)
def test_where_gemini_would_run_a_command(details: str, folder: str | None) -> None:
    request = asked(toolCallId="run_shell_command__1", title="make", content=shown(details))
    call = gemini.understands(request, Told(), "/desk")
    assert (call.input if call else None) == ({"command": "make", "dir_path": folder} if folder else None)


@pytest.mark.parametrize(
    ("ident", "title", "paths"),
    [
        ("glob__1", "'*'", ["."]),
        ("glob__1", "'*' within sub", [".", "sub"]),
        (
            "grep_search__1",
            "'x in y' in *.env within ~/k",
            [".", "y'", "*.env", "~/k", "*.env", "~/k", "~/k"],
        ),
        ("grep_search__1", "'x' within a/.../b", None),
        ("list_directory__1", "a...b", None),
        ("list_directory__1", ".ssh", [".", ".ssh"]),
        ("read_file__1", "a.txt", None),
        ("mcp_x_glob__1", "'*'", None),
    ],
)
def test_where_gemini_would_search(ident: str, title: str, paths: list[str] | None) -> None:
    call = gemini.understands(asked(toolCallId=ident, title=title), Told(), "/desk")
    assert (call.input if call else None) == (None if paths is None else {"paths": paths})


def test_what_copilot_tells_of_a_command_has_to_agree() -> None:
    request = asked(kind="execute", rawInput=msgspec.Raw(b'{"command": "ls"}'))
    known = Told(input=msgspec.Raw(b'{"command": "ls"}'))
    assert copilot.understands(request, known, "/desk") == ToolCall("bash", {"command": "ls"}, "/desk")
    assert copilot.understands(request, Told(input=msgspec.Raw(b'{"command": "rm"}')), "/desk") is None


MANNERS = [
    Manners(ran=completed),
    Manners(understands=gemini.understands, ran=gemini.ran),
    Manners(understands=opencode.understands, enough=opencode.enough, ran=opencode.ran),
    Manners(understands=copilot.understands, ran=copilot.ran),
]


@given(lines, st.booleans(), st.sampled_from(MANNERS))
def test_nothing_upsets_a_guarded_turn(said: list[bytes], resume: bool, manners: Manners) -> None:
    """No request is answered twice, and none is left open but by those who wait for more."""
    context = Context(capability="scout", worktree="/desk")
    judge = recording_judge(context, Path("/dev/null/audit"), runtime="x", session="s")
    guard = Guard(capability="scout", judge=judge, hooks=Path("/hooks"), note="")
    agent = Agent(make_turn(resume=resume, guard=guard), Dialect(manners=manners))
    replies = requests = 0
    for line in said:
        before = len(agent.heard)
        over = agent.state.failure is not None or agent.state.stop_reason is not None
        found, _ = wire.frames(line)
        plain(agent.parser.feed(line))
        agent.listen()
        replies += sum("method" not in frame for frame in agent.heard[before:])
        requests += 0 if over else sum(frame.method is not None and frame.id is not None for frame in found)
        assert replies <= requests
        if manners.enough is Manners().enough and not agent.closed:
            assert replies == requests
    agent.parser.finish(None)
    msgspec.json.encode(agent.state)
