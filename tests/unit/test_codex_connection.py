"""Many turns with Codex's app server as a state machine, above all in a person's own session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.events import Usage
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes import registry
from remuda.runtimes.base import Guard, Turn
from remuda.runtimes.codex.connection import CodexConnection

Json = dict[str, Any]

CODEX = registry.get("codex")
COMMAND = "item/commandExecution/requestApproval"


def judge(call: ToolCall) -> Verdict:
    """Judges by the word in the command."""
    text = str(call.input)
    decision = next((word for word in ("deny", "ask") if word in text), "allow")
    return msgspec.convert({"decision": decision, "rule": "test.rule", "reason": "a test"}, Verdict)


def turn(**changes: Any) -> Turn:
    guard = Guard(capability="supervised", judge=judge, hooks=Path("/h"), note="A note.", binding=False)
    usual = Turn(cwd=Path("/w"), scratch=Path("/s"), keep=Path("/k"), session="t0", guard=guard)
    return msgspec.structs.replace(usual, **changes)


class Server:
    """The app server's side."""

    def __init__(self, **changes: Any) -> None:
        self.connection = CodexConnection(turn(**changes))
        self.said: list[Json] = []
        self.rounds = 0
        self.listen()

    def listen(self) -> None:
        words = self.connection.say()
        self.said += [json.loads(line) for line in (words or b"").splitlines()]

    def tell(self, frame: Json) -> None:
        list(self.connection.feed(json.dumps(frame).encode()))
        self.listen()

    def notice(self, method: str, **params: Any) -> None:
        self.tell({"method": method, "params": {"threadId": "t1", "turnId": f"r{self.rounds}"} | params})

    def reply(self, result: Json) -> None:
        self.tell({"id": self.said[-1]["id"], "result": result})

    def opened(self) -> Server:
        self.reply({})
        self.reply({"thread": {"id": "t1"}, "model": "gpt"})
        return self

    def prompt(self, text: str) -> None:
        self.rounds += 1
        self.connection.prompt(text)
        self.listen()
        self.reply({"turn": {"id": f"r{self.rounds}"}})

    def ask(self, ident: int, command: str, item: str = "c1", **more: Any) -> None:
        asked = {"itemId": item, "command": command, "cwd": "/w"} | more
        self.tell({"id": ident, "method": COMMAND, "params": asked})

    def answers(self, ident: int) -> list[str]:
        answers = (frame for frame in self.said if frame.get("id") == ident and "result" in frame)
        return [frame["result"]["decision"] for frame in answers]

    def end(self, text: str = "Done.", status: str = "completed", ident: str | None = None) -> None:
        self.notice("item/completed", item={"type": "agentMessage", "id": "m", "text": text})
        self.notice("turn/completed", turn={"id": ident or f"r{self.rounds}", "status": status})

    def tokens(self, total: int, last: int) -> None:
        counts = {"total": {"inputTokens": total}, "last": {"inputTokens": last}}
        self.notice("thread/tokenUsage/updated", tokenUsage=counts)


def test_a_persons_session_opens_without_a_word_about_hooks() -> None:
    server = Server(append_system_prompt="More.", system_prompt="Base.", model="m").opened()
    assert [frame["method"] for frame in server.said] == ["initialize", "initialized", "thread/start"]
    assert server.said[-1]["params"] == {
        "cwd": "/w", "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": "read-only",
        "model": "m", "baseInstructions": "Base.", "developerInstructions": "More.",
        "experimentalRawEvents": True,
    }  # fmt: skip
    assert (server.connection.phase, server.connection.state.guard) == ("idle", "none")
    assert (server.connection.state.session, server.connection.state.model) == ("t1", "gpt")


def test_a_session_is_taken_up_again() -> None:
    server = Server(resume=True, permission="bypass", guard=None)
    server.reply({})
    assert server.said[-1]["method"] == "thread/resume"
    assert server.said[-1]["params"] == {
        "threadId": "t0", "excludeTurns": True, "cwd": "/w", "approvalPolicy": "never",
        "approvalsReviewer": "user", "sandbox": "read-only",
    }  # fmt: skip


def test_turns_follow_each_other_and_count_for_themselves() -> None:
    server = Server().opened()
    server.connection.prompt("one")
    server.listen()
    assert not server.connection.acknowledged
    server.rounds = 1
    assert server.said[-1]["params"]["sandboxPolicy"] == {"type": "dangerFullAccess"}
    server.reply({"turn": {"id": "r1"}})
    assert server.connection.acknowledged
    server.tokens(100, 100)
    server.tokens(150, 50)
    server.end("First.")
    assert server.connection.state.usage == Usage(150)
    assert (server.connection.phase, server.connection.state.text) == ("idle", "First.")
    server.prompt("two")
    server.tokens(180, 30)
    server.end("late news of the first turn", ident="r1")
    assert server.connection.phase == "working"
    server.end("Second.")
    assert server.connection.state.usage == Usage(30)
    assert (server.connection.state.text, server.connection.state.stop_reason) == ("Second.", "end_turn")


def test_a_failed_turn_is_not_the_end() -> None:
    server = Server().opened()
    server.prompt("one")
    error = {"message": "unexpected status 500 Internal Server Error"}
    server.notice("turn/completed", turn={"id": "r1", "status": "failed", "error": error})
    assert server.connection.state.failure is not None
    server.connection.prompt("two")
    server.listen()
    server.tell({"id": server.said[-1]["id"], "error": {"code": -1, "message": "not now"}})
    assert server.connection.state.failure.kind == "model"
    assert server.connection.phase == "idle"
    server.prompt("three")
    server.end("Well again.")
    assert (server.connection.state.failure, server.connection.state.text) == (None, "Well again.")


def test_a_person_decides_once() -> None:
    server = Server().opened()
    server.prompt("one")
    server.ask(70, "ask me")
    (question,) = server.connection.questions
    assert question.title == "ask me"
    assert not server.answers(70)
    assert server.connection.decide(question.id, True, "yes") is not None
    assert server.connection.decide(question.id, False, "no") is None
    server.listen()
    assert server.answers(70) == ["accept"]
    server.ask(71, "deny this", "c2")
    assert server.answers(71) == ["decline"]


def test_what_the_guard_does_not_understand_is_for_the_person() -> None:
    server = Server().opened()
    server.prompt("one")
    server.ask(70, "curl x", networkApprovalContext={"host": "example.org"})
    (question,) = server.connection.questions
    assert question.title == 'curl x {"host": "example.org"}'
    server.connection.decide(question.id, False, "no")
    server.listen()
    assert server.answers(70) == ["decline"]
    server.tell({"id": 71, "method": "item/permissions/requestApproval", "params": {}})
    assert server.said[-1]["result"] == {"permissions": {}, "scope": "turn"}


def test_a_request_that_is_resolved_elsewhere_wants_no_answer() -> None:
    server = Server().opened()
    server.prompt("one")
    server.ask(70, "ask me")
    server.notice("serverRequest/resolved", requestId=70)
    assert not server.connection.questions
    assert not server.answers(70)


def test_an_abort_waits_for_the_name_of_the_turn() -> None:
    server = Server().opened()
    server.rounds = 1
    server.connection.prompt("one")
    server.listen()
    start = server.said[-1]
    server.connection.abort()
    server.listen()
    assert server.said[-1] == start
    server.tell({"id": start["id"], "result": {"turn": {"id": "r1"}}})
    assert server.said[-1]["method"] == "turn/interrupt"
    assert server.said[-1]["params"] == {"threadId": "t1", "turnId": "r1"}
    server.tell({"id": server.said[-1]["id"], "error": {"code": -1, "message": "no such turn"}})
    server.ask(70, "ls")
    assert server.answers(70) == ["decline"]
    server.end("", "interrupted")
    assert server.connection.state.stop_reason == "cancelled"
    server.prompt("two")
    server.ask(71, "ls")
    assert server.answers(71) == ["accept"]


def test_what_runs_unasked_is_no_trespass_in_a_persons_own_session() -> None:
    server = Server().opened()
    server.prompt("one")
    item = {"type": "commandExecution", "id": "c9", "command": "ls", "processId": "1", "status": "inProgress"}
    server.notice("item/started", item=item)
    server.notice("item/commandExecution/outputDelta", itemId="c9")
    server.notice("item/completed", item=item | {"status": "completed", "exitCode": 0})
    server.notice("item/completed", item=7)
    server.end("Done.")
    assert (server.connection.state.failure, server.connection.phase) == (None, "idle")


def test_nobody_types_into_a_program_unasked() -> None:
    assert CODEX.connect is not None
    assert "features.unified_exec_tty=false" in CODEX.connect.command(turn()).arguments
    free = CODEX.connect.command(turn(permission="bypass", guard=None)).arguments
    assert "features.unified_exec_tty=false" not in free


ACTS = st.sampled_from(["ask", "deny", "ls", "odd", "yes", "no", "abort", "end", "prompt"])


@given(acts=st.lists(ACTS, max_size=30))
def test_whatever_happens_every_request_is_answered_once(acts: list[str]) -> None:
    server = Server().opened()
    asked: dict[int, str] = {}
    for number, act in enumerate(acts, 1000):
        questions = server.connection.questions
        if act in ("ask", "deny", "ls", "odd"):
            asked[number] = act
            server.ask(number, act, f"c{number}", **({"kind": "stdin"} if act == "odd" else {}))
        elif act in ("yes", "no") and questions:
            server.connection.decide(questions[0].id, act == "yes", "so it be")
        elif act == "abort":
            server.connection.abort()
        elif act == "end":
            server.end()
        elif act == "prompt" and server.connection.phase == "idle":
            server.prompt("again")
        server.listen()
    for question in server.connection.questions:
        server.connection.decide(question.id, False, "no")
    server.listen()
    for ident, act in asked.items():
        (answer,) = server.answers(ident)
        assert act != "deny" or answer == "decline"
