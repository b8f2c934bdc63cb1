"""Many turns over the Agent Client Protocol: what belongs to which, who is asked, and how one is ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.test_acp import OPTIONS, SESSION, check_words, completed, lines, make_turn, plain

from remuda.core.events import AnyUpdate, Failure, Usage
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners
from remuda.runtimes.base import Guard, TurnState
from remuda.runtimes.opencode import guarded as opencode

Json = dict[str, Any]


def judge(call: ToolCall) -> Verdict:
    """Says what the first word of a command says."""
    given = call.input if isinstance(call.input, dict) else {}
    word = str(given.get("command", "deny")).split()[0]
    return msgspec.convert({"decision": word, "rule": "r", "reason": "a test"}, Verdict)


def guard(*, binding: bool = True) -> Guard:
    return Guard(capability="builder", judge=judge, hooks=Path("/hooks"), note="", binding=binding)


class Talk:
    """Plays the agent's part in a conversation that stays open."""

    def __init__(self, dialect: Dialect | None = None, **turn: Any) -> None:
        self.connection = AcpConnection(make_turn(**turn), dialect or Dialect())
        self.heard: list[Json] = []
        self.asked = 0
        self.listen()
        self.reply({"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        self.reply({"sessionId": SESSION})
        assert self.connection.phase == "idle"

    def listen(self) -> list[Json]:
        said = [json.loads(line) for line in (self.connection.say() or b"").splitlines()]
        for frame in said:
            check_words(frame)
        self.heard += said
        return said

    def say(self, frame: Json) -> list[AnyUpdate]:
        updates = list(self.connection.feed(json.dumps({"jsonrpc": "2.0", **frame}).encode()))
        plain(updates)
        self.listen()
        return updates

    def reply(self, result: Json | None) -> None:
        """Answer our last request."""
        self.say({"id": self.request, "result": result})

    @property
    def failed(self) -> str | None:
        """The kind of failure of this turn."""
        return self.connection.state.failure.kind if self.connection.state.failure else None

    @property
    def request(self) -> object:
        return next(frame["id"] for frame in reversed(self.heard) if "method" in frame and "id" in frame)

    def prompt(self, text: str = "Do it.") -> None:
        self.connection.prompt(text)
        (frame,) = self.listen()
        assert frame["method"] == "session/prompt"
        assert (self.connection.phase, self.connection.acknowledged) == ("working", False)

    def end(self, stop: str = "end_turn", tokens: int | None = None) -> None:
        usage = {"inputTokens": tokens, "outputTokens": 1, "totalTokens": 0} if tokens else None
        self.reply({"stopReason": stop, "usage": usage})
        assert self.connection.phase == "idle"

    def update(self, session: str = SESSION, **update: object) -> list[AnyUpdate]:
        return self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def chunk(self, text: str, session: str = SESSION) -> list[AnyUpdate]:
        content = {"type": "text", "text": text}
        return self.update(session, sessionUpdate="agent_message_chunk", content=content)

    def tool(self, ident: str, status: str, *, new: bool = False) -> list[AnyUpdate]:
        kind = "tool_call" if new else "tool_call_update"
        return self.update(sessionUpdate=kind, toolCallId=ident, title="t", status=status)

    def ask(self, command: str, ident: str = "c1") -> int:
        """Ask for permission; the request's name."""
        self.asked += 1
        call = {"toolCallId": ident, "title": "t", "kind": "execute", "rawInput": {"command": command}}
        params = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
        self.say({"id": 1000 + self.asked, "method": "session/request_permission", "params": params})
        return 1000 + self.asked

    def outcome(self, ident: int) -> str | None:
        """The one answer to a request, if there is one."""
        found = [frame["result"]["outcome"] for frame in self.heard if frame.get("id") == ident]
        assert len(found) <= 1
        return (found[0].get("optionId") or found[0]["outcome"]) if found else None


def test_turns_follow_each_other_in_one_session() -> None:
    talk = Talk()
    for text in ("One.", "Two."):
        talk.prompt(text)
        assert talk.heard[-1]["params"] == {"sessionId": SESSION, "prompt": [{"type": "text", "text": text}]}
        assert talk.chunk(text)
        assert talk.connection.acknowledged
        talk.end()
        assert (talk.connection.state.text, talk.connection.state.session) == (text, SESSION)
    talk.connection.close()
    assert talk.connection.say() is None
    assert talk.connection.phase == "closed"


def test_a_prompt_that_fails_leaves_the_conversation_as_it_is() -> None:
    talk = Talk()
    talk.prompt()
    talk.say({"id": talk.request, "error": {"code": -32603, "message": "401 Unauthorized"}})
    assert (talk.failed, talk.connection.phase) == ("auth", "idle")
    talk.prompt()
    talk.chunk("Well.")
    talk.end()
    assert talk.failed is None


def test_an_answer_counts_once() -> None:
    talk = Talk()
    talk.prompt("One.")
    first = talk.request
    talk.end()
    talk.say({"id": first, "error": {"code": 1, "message": "late"}})
    talk.prompt("Two.")
    talk.say({"id": first, "result": {"stopReason": "refusal"}})
    assert talk.connection.phase == "working"
    talk.end()
    assert talk.connection.state.stop_reason == "end_turn"


def test_what_comes_late_is_not_a_part_of_the_next_turn() -> None:
    talk = Talk()
    talk.prompt("One.")
    talk.tool("c1", "in_progress", new=True)
    talk.connection.abort()
    talk.listen()
    talk.end("cancelled")
    assert talk.chunk("Late.") == talk.tool("c1", "in_progress") == []
    assert talk.connection.state.text == ""
    talk.prompt("Two.")
    assert talk.tool("c1", "completed") == []
    assert not talk.connection.acknowledged
    assert talk.tool("c1", "pending", new=True)
    assert talk.tool("c1", "completed")
    assert talk.connection.acknowledged


def test_another_session_is_ignored_in_every_turn() -> None:
    talk = Talk()
    for _ in range(2):
        talk.prompt()
        assert talk.chunk("Psst.", "another") == []
        assert not talk.connection.acknowledged
        talk.end()


@pytest.mark.parametrize(
    ("since", "resume", "expected"),
    [
        ("turn", False, [Usage(5, 1), Usage(7, 1)]),
        ("process", True, [Usage(5, 1), Usage(2, 0)]),
        ("session", False, [Usage(5, 1), Usage(2, 0)]),
        ("session", True, [None, Usage(2, 0)]),
    ],
)
def test_tokens_are_those_of_the_turn(since: Any, resume: bool, expected: list[Usage | None]) -> None:
    talk = Talk(Dialect(counted_since=since), resume=resume)
    told = []
    for tokens in (5, 7):
        talk.prompt()
        talk.update(talk.connection.state.session or "", sessionUpdate="usage_update", used=1, size=2)
        talk.end(tokens=tokens)
        told.append(talk.connection.state.usage)
    assert told == expected


def test_a_turn_that_counts_nothing_has_failed_in_later_turns_too() -> None:
    talk = Talk(Dialect(counted_since="process", uncounted_is_failed=True))
    talk.prompt()
    talk.chunk("Fine.")
    talk.end(tokens=5)
    assert talk.failed is None
    talk.prompt()
    talk.chunk("HTTP 401: invalid key")
    talk.reply({"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 1, "totalTokens": 6}})
    assert talk.failed == "auth"


@pytest.mark.parametrize("binding", [True, False])
@pytest.mark.parametrize("allowed", [True, False])
def test_a_person_decides(binding: bool, allowed: bool) -> None:
    talk = Talk(guard=guard(binding=binding))
    talk.prompt()
    request = talk.ask("ask rm -rf x")
    (question,) = talk.connection.questions
    assert (question.tool, question.title, question.reason) == ("shell", "ask rm -rf x", "a test")
    assert talk.outcome(request) is None
    updates = list(talk.connection.decide(question.id, allowed, "I say so") or ())
    talk.listen()
    assert talk.outcome(request) == ("once" if allowed else "no")
    assert [update["status"] for update in plain(updates)] == ([] if allowed else ["failed", "failed"])
    assert bool(talk.connection.state.refused) != allowed
    assert talk.connection.decide(question.id, True, "again") is None
    step = talk.ask("ask rm -rf x")
    assert talk.outcome(step) == ("once" if allowed else "no")
    assert not talk.connection.questions


def test_what_a_person_allowed_is_asked_about_again_in_the_next_turn() -> None:
    talk = Talk(guard=guard())
    for _ in range(2):
        talk.prompt()
        talk.ask("ask x")
        (question,) = talk.connection.questions
        talk.connection.decide(question.id, True, "yes")
        talk.listen()
        talk.end()


def test_what_cannot_be_read_is_for_the_person_where_there_is_one() -> None:
    for binding in (True, False):
        talk = Talk(guard=guard(binding=binding))
        talk.prompt()
        call = {"toolCallId": "x", "title": "Use the server", "kind": "other"}
        params = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
        talk.say({"id": 7, "method": "session/request_permission", "params": params})
        assert talk.outcome(7) == ("no" if binding else None)
        assert [question.tool for question in talk.connection.questions] == (
            [] if binding else ["Use the server"]
        )


def test_an_abort_cancels_what_is_open_and_then_the_turn() -> None:
    dialect = Dialect(manners=Manners(enough=opencode.enough))
    talk = Talk(dialect, guard=guard())
    talk.prompt()
    talk.tool("c1", "in_progress", new=True)
    parked, unclear = talk.ask("ask x"), talk.ask("allow x", "c2")
    assert talk.connection.questions
    talk.connection.prompt("never sent")
    talk.connection.abort()
    talk.connection.abort()
    assert not talk.connection.questions
    said = talk.listen()
    assert [talk.outcome(parked), talk.outcome(unclear)] == ["cancelled", "cancelled"]
    assert said[-1]["method"] == "session/cancel"
    assert said[-1]["params"] == {"sessionId": SESSION}
    assert talk.outcome(talk.ask("allow x", "c3")) == "cancelled"
    talk.end("cancelled")
    assert talk.failed == "cancelled"
    assert talk.connection.say() == b""
    talk.prompt()
    talk.chunk("Still here.")
    talk.end()
    assert talk.failed is None


def test_a_request_between_turns_or_left_open_is_cancelled() -> None:
    talk = Talk(guard=guard())
    assert talk.outcome(talk.ask("allow x")) == "cancelled"
    talk.prompt()
    parked = talk.ask("ask x")
    talk.end()
    assert talk.outcome(parked) == "cancelled"
    assert not talk.connection.questions


def test_the_guard_holds_in_every_turn_and_between_them() -> None:
    manners = Dialect(manners=Manners(ran=completed))
    for steps in (("end",), ("end", "prompt")):
        talk = Talk(manners, guard=guard())
        talk.prompt()
        assert talk.outcome(talk.ask("allow x")) == "once"
        assert talk.tool("c1", "completed")
        for step in steps:
            getattr(talk, step)()
        talk.tool("c1", "completed")
        assert talk.connection.phase != "closed"
        talk.tool("c2", "completed")
        assert (talk.failed, talk.connection.phase) == ("refused", "closed")


def test_a_name_that_is_used_again_has_to_ask_again() -> None:
    talk = Talk(Dialect(manners=Manners(ran=completed)), guard=guard())
    talk.prompt()
    assert talk.outcome(talk.ask("deny x")) == "no"
    talk.end()
    talk.prompt()
    assert talk.outcome(talk.ask("allow x")) == "once"
    assert talk.tool("c1", "completed")
    talk.end()
    talk.prompt()
    talk.tool("c1", "pending", new=True)
    talk.tool("c1", "completed")
    assert talk.connection.phase == "closed"


def test_in_a_persons_own_session_nobody_has_to_ask() -> None:
    talk = Talk(Dialect(manners=Manners(ran=completed)), guard=guard(binding=False))
    talk.prompt()
    assert talk.tool("c1", "completed", new=True)
    assert talk.connection.phase == "working"


def test_a_session_that_is_stuck_goes_on_in_a_copy() -> None:
    talk = Talk(Dialect(gets_stuck=True, counted_since="process"))
    talk.prompt()
    talk.connection.abort()
    talk.listen()
    talk.say({"id": talk.request, "error": {"code": -32603, "message": "Internal error"}})
    assert talk.connection.state.stop_reason == "cancelled"
    talk.connection.prompt("Go on.")
    (frame,) = talk.listen()
    assert frame["method"] == "session/fork"
    assert frame["params"] == {"sessionId": SESSION, "cwd": "/desk", "mcpServers": []}
    talk.reply({"sessionId": "copy"})
    assert talk.heard[-1]["params"]["sessionId"] == talk.connection.state.session == "copy"
    assert talk.chunk("Here.", "copy")
    talk.end(tokens=3)
    assert talk.connection.state.usage == Usage(3, 1)
    talk.prompt("And on.")


def test_a_session_that_cannot_be_copied_is_tried_again() -> None:
    talk = Talk(Dialect(gets_stuck=True))
    talk.prompt()
    talk.connection.abort()
    talk.listen()
    talk.say({"id": talk.request, "error": {"code": -32603, "message": "Internal error"}})
    for failing in ({"result": {}}, {"error": {"code": 1, "message": "no"}}):
        talk.connection.prompt("Go on.")
        (frame,) = talk.listen()
        assert frame["method"] == "session/fork"
        talk.say({"id": frame["id"], **failing})
        assert talk.failed in ("protocol", "model")
        assert talk.connection.state.session == SESSION
    talk.connection.prompt("Go on.")
    talk.listen()
    talk.connection.abort()
    talk.listen()
    talk.reply({"sessionId": "copy"})
    assert (talk.failed, talk.connection.phase) == ("cancelled", "idle")
    talk.prompt()
    assert talk.heard[-1]["params"]["sessionId"] == "copy"


def test_what_stderr_tells_between_turns_is_about_the_last_one() -> None:
    def hear(state: TurnState, line: bytes) -> None:
        state.failure = state.failure or Failure("model", line.decode())

    talk = Talk(Dialect(hear=hear, uncounted_is_failed=True))
    talk.connection.hear(b"early")
    talk.prompt()
    assert talk.failed is None
    talk.connection.hear(b"of the turn before")
    talk.chunk("Fine.")
    talk.end(tokens=2)
    assert (talk.connection.state.failure, talk.connection.state.text) == (None, "Fine.")


DEEDS = st.sampled_from(["prompt", "abort", "decide", "deny", "close"])


@given(
    st.lists(lines | DEEDS, max_size=12), st.booleans(), st.sampled_from([Manners(), Manners(ran=completed)])
)
def test_every_request_is_answered_once(deeds: list[Any], binding: bool, manners: Manners) -> None:
    """Whatever is said and done: nothing raises, no request is answered twice, and none but a person's is
    left open while the conversation lasts."""
    talk = Talk(Dialect(manners=manners, gets_stuck=True), guard=guard(binding=binding))
    connection, requests = talk.connection, 0
    talk.heard.clear()
    for deed in deeds:
        question = next(iter(connection.questions), None)
        match deed:
            case "prompt":
                connection.prompt("x")
            case "abort":
                connection.abort()
            case "close":
                connection.close()
            case "decide" | "deny" if question:
                plain(connection.decide(question.id, deed == "decide", "") or ())
            case list():
                for line in deed:
                    open_ = connection.phase != "closed"
                    found, _ = wire.frames(line)
                    plain(connection.feed(line))
                    connection.hear(line)
                    requests += open_ * sum(f.method is not None and f.id is not None for f in found)
        talk.listen()
        replies = sum("method" not in frame for frame in talk.heard)
        assert replies <= requests
        if connection.phase != "closed":
            assert replies + len(connection.questions) == requests
    connection.finish(None)
    assert connection.phase == "closed"
