"""The guarded connection of Codex as a state machine: what it says, what it answers, when it gives up."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.core.events import AnyUpdate, ToolCallUpdate, Usage
from remuda.guard.model import Capability, Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes import registry
from remuda.runtimes.base import Guard, Parser, Turn
from remuda.runtimes.dialogue import one_turn

Json = dict[str, Any]

CODEX = registry.get("codex")
HOOKS = Path("/staged hooks")
COMMAND = "'/staged hooks/pre_tool_use'"
KEY = "/<session-flags>/config.toml:pre_tool_use:0:0"
HASH = "sha256:0123"
OURS: Json = {
    "key": KEY, "eventName": "preToolUse", "command": COMMAND, "source": "sessionFlags", "enabled": True,
    "currentHash": HASH, "trustStatus": "untrusted",
}  # fmt: skip
TRUSTED = OURS | {"trustStatus": "trusted"}
APPROVER = OURS | {
    "key": "other",
    "eventName": "permissionRequest",
    "source": "user",
    "trustStatus": "trusted",
}
CONFIG: Json = {"config": {"mcp_servers": None}, "layers": [{"name": {"type": "user"}}]}
OPENED: Json = {
    "thread": {"id": "t1"}, "model": "gpt", "approvalPolicy": "untrusted", "approvalsReviewer": "user",
    "sandbox": {"type": "readOnly"},
}  # fmt: skip
ALLOW = Verdict(decision="allow", rule="allow", reason="fine")
DENY = Verdict(decision="deny", rule="write.any", reason="a scout changes nothing", hint="Say it instead.")


def judge(call: ToolCall) -> Verdict:
    """Denies whatever has the word *bad* in it."""
    return DENY if "bad" in f"{call.tool} {call.input}" else ALLOW


class Talk:
    """The app server's side of a conversation."""

    def __init__(self, capability: Capability = "scout", **turn: Any) -> None:
        self.judged: list[ToolCall] = []

        def judged(call: ToolCall) -> Verdict:
            self.judged.append(call)
            return judge(call)

        guard = Guard(capability=capability, judge=judged, hooks=HOOKS, note="A note.")
        place: Json = {"cwd": Path("/w"), "scratch": Path("/s"), "keep": Path("/k"), "session": "s1"}
        assert CODEX.connect is not None
        asked = Turn(**place | {"guard": guard} | turn)
        self.parser: Parser = one_turn(CODEX.connect.connection(asked), "Hello.")
        self.said: list[Json] = []
        self.closed = False
        self.listen()

    def listen(self) -> None:
        words = self.parser.say()
        self.closed = words is None
        self.said += [json.loads(line) for line in (words or b"").splitlines()]

    def tell(self, frame: Json) -> list[AnyUpdate]:
        updates = list(self.parser.feed(json.dumps(frame).encode()))
        self.listen()
        return updates

    def notice(self, method: str, **params: Any) -> list[AnyUpdate]:
        return self.tell({"method": method, "params": {"threadId": "t1", "turnId": "r1"} | params})

    def ask(self, method: str, **params: Any) -> Json:
        self.tell({"id": 77, "method": method, "params": {"threadId": "t1", "turnId": "r1"} | params})
        return self.said[-1]

    def reply(self, result: Json) -> None:
        """Answer the last request."""
        self.tell({"id": self.said[-1]["id"], "result": result})

    def opened(self, hooks: list[Json] | None = None, config: Json | None = None) -> Talk:
        """Come as far as the opened session."""
        self.reply({})
        self.reply(config or CONFIG)
        self.reply({"data": [{"hooks": [OURS] if hooks is None else hooks}]})
        return self

    def prompted(self) -> Talk:
        """Come as far as the prompt."""
        self.opened()
        self.reply(OPENED)
        self.reply({"data": [{"hooks": [TRUSTED]}]})
        self.reply({"turn": {"id": "r1"}})
        return self

    @property
    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.said if "method" in frame]

    @property
    def failed(self) -> str | None:
        failure = self.parser.state.failure
        return failure.kind if failure else None


def command(text: str, ident: str = "c1", **more: Any) -> Json:
    item = {"type": "commandExecution", "id": ident, "command": text, "cwd": "/w", "status": "inProgress"}
    return {"item": item | more}


def changed(*changes: Json, ident: str = "f1") -> Json:
    return {"item": {"type": "fileChange", "id": ident, "changes": list(changes), "status": "inProgress"}}


ASKED: Json = {"kind": "command", "itemId": "c1", "command": "/bin/bash -lc 'cat x'", "cwd": "/w"}


def test_a_turn_from_greeting_to_prompt() -> None:
    talk = Talk(append_system_prompt="More.", system_prompt="Base.", model="m").prompted()
    assert talk.methods == [
        *(
            "initialize",
            "initialized",
            "config/read",
            "hooks/list",
            "thread/start",
            "hooks/list",
            "turn/start",
        )
    ]
    start = next(frame for frame in talk.said if frame.get("method") == "thread/start")["params"]
    assert start["approvalPolicy"] == "untrusted"
    assert start["approvalsReviewer"] == "user"
    assert start["sandbox"] == "read-only"
    assert start["developerInstructions"] == "More.\n\nA note."
    assert (start["baseInstructions"], start["model"], start["cwd"]) == ("Base.", "m", "/w")
    assert start["config"] == {"hooks.state": {KEY: {"trusted_hash": HASH, "enabled": True}}}
    assert talk.said[-1]["params"]["input"] == [{"type": "text", "text": "Hello."}]
    state = talk.parser.state
    assert (state.session, state.model, state.guard) == ("t1", "gpt", "reported")


def test_a_session_is_taken_up_by_its_id() -> None:
    talk = Talk(resume=True).opened()
    assert talk.said[-1]["method"] == "thread/resume"
    assert talk.said[-1]["params"]["threadId"] == "s1"
    talk.tell({"id": talk.said[-1]["id"], "error": {"code": -32600, "message": "no rollout found"}})
    assert talk.failed == "start_failed"


def test_hooks_that_would_answer_are_set_aside_and_servers_made_to_ask() -> None:
    config = CONFIG | {"config": {"mcp_servers": {"u": {"command": "x", "tools": {"put": {}}}, "v": {}}}}
    talk = Talk().opened([OURS, APPROVER], config)
    given_ = talk.said[-1]["params"]["config"]
    assert given_["hooks.state"]["other"] == {"enabled": False}
    asks = {"default_tools_approval_mode": "prompt"}
    assert given_["mcp_servers"] == {"u": asks | {"tools": {"put": {"approval_mode": "prompt"}}}, "v": asks}


@pytest.mark.parametrize(
    "come",
    [
        lambda talk: talk.opened(config=CONFIG | {"layers": [{"name": {"type": "project"}}]}),
        lambda talk: talk.opened([]),
        lambda talk: talk.opened([OURS | {"command": "/other"}]),
        lambda talk: talk.opened([OURS | {"source": "project"}]),
        lambda talk: talk.opened([OURS, OURS]),
        lambda talk: talk.opened().reply(OPENED | {"approvalPolicy": "never"}),
        lambda talk: talk.opened().reply(OPENED | {"approvalPolicy": {"granular": {}}}),
        lambda talk: talk.opened().reply(OPENED | {"approvalsReviewer": "auto_review"}),
        lambda talk: talk.opened().reply(OPENED | {"sandbox": {"type": "dangerFullAccess"}}),
    ],
)
def test_what_stands_in_the_way_is_found_before_the_prompt(come: Callable[[Talk], object]) -> None:
    talk = Talk()
    come(talk)
    assert (talk.failed, talk.closed) == ("refused", True)
    assert "turn/start" not in talk.methods
    assert talk.parser.state.guard == "awaited"


@pytest.mark.parametrize(
    "hooks",
    [
        [],
        [OURS],
        [TRUSTED | {"enabled": False}],
        [TRUSTED | {"trustStatus": "modified"}],
        [TRUSTED, APPROVER],
    ],
)
def test_a_hook_that_will_not_run_is_no_guard(hooks: list[Json]) -> None:
    talk = Talk().opened()
    talk.reply(OPENED)
    talk.reply({"data": [{"hooks": hooks}]})
    assert (talk.failed, talk.closed) == ("refused", True)
    assert "turn/start" not in talk.methods


def test_folders_are_untrusted_and_what_asks_nobody_is_off() -> None:
    guard = Guard(capability="builder", judge=judge, hooks=HOOKS, note="")
    turn = Turn(cwd=Path("/no/such"), scratch=Path("/s"), keep=Path("/k"), session="s", guard=guard)
    assert CODEX.guarding.command is not None
    arguments = CODEX.guarding.command(turn).arguments
    settings_ = dict(value.split("=", 1) for flag, value in pairwise(arguments) if flag == "-c")
    for folder in ("/no/such", "/no", "/"):
        assert f'"{folder}"={{trust_level="untrusted"}}' in settings_["projects"]
    assert settings_["web_search"] == '"disabled"'
    assert settings_["features.unified_exec_tty"] == "false"
    assert settings_["features.multi_agent"] == "false"
    assert COMMAND in settings_["hooks.PreToolUse"]
    assert not any("dangerously" in argument for argument in arguments)


@pytest.mark.parametrize(("text", "answer"), [("cat x", "accept"), ("bad x", "decline")])
def test_a_command_is_judged_as_it_will_run(text: str, answer: str) -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **command(text))
    said = talk.ask("item/commandExecution/requestApproval", **ASKED | {"command": text, "cwd": "/w/sub"})
    assert said == {"jsonrpc": "2.0", "id": 77, "result": {"decision": answer}}
    assert talk.judged == [ToolCall("Bash", {"command": text}, "/w/sub")]


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": "writeStdin"},
        {"environmentId": "elsewhere"},
        {"additionalPermissions": {"network": {"enabled": True}}},
        {"networkApprovalContext": {"host": "example.com", "protocol": "https"}},
        {"command": None},
        {"cwd": None},
        {"command": 5},
    ],
)
def test_a_command_that_is_more_than_that_is_declined(odd: Json) -> None:
    talk = Talk().prompted()
    assert talk.ask("item/commandExecution/requestApproval", **ASKED | odd)["result"] == {
        "decision": "decline"
    }
    assert talk.judged == []
    assert talk.parser.state.refused


def add(path: str, **kind: Any) -> Json:
    return {"path": path, "kind": {"type": "add"} | kind, "diff": "x\n"}


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ([add("/w/a")], "accept"),
        ([add("/w/a"), add("/w/bad")], "decline"),
        ([add("/w/a", type="update", move_path="/w/bad")], "decline"),
        ([add("/w/a", type="delete")], "accept"),
        ([add("/w/a\n*** Add File: /w/b")], "decline"),
        ([add("/w/a\u2028b")], "decline"),
        ([add("/w/a ")], "decline"),
        ([add("a")], "decline"),
        ([add("/w/a", type="mystery")], "decline"),
        ([], "decline"),
    ],
)
def test_a_patch_is_judged_by_its_files(changes: list[Json], answer: str) -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **changed(*changes))
    said = talk.ask("item/fileChange/requestApproval", itemId="f1")
    assert said["result"] == {"decision": answer}


@pytest.mark.parametrize("odd", [{"itemId": "unknown"}, {"itemId": "f1", "grantRoot": "/"}])
def test_a_patch_that_is_not_known_or_wants_a_folder_is_declined(odd: Json) -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **changed(add("/w/a")))
    assert talk.ask("item/fileChange/requestApproval", **odd)["result"] == {"decision": "decline"}


def served(tool: str, ident: str = "m1", **arguments: str) -> Json:
    item = {"type": "mcpToolCall", "id": ident, "server": "u", "tool": tool, "arguments": arguments}
    return {"item": item | {"status": "inProgress"}}


def question(tool: str, **params: str) -> Json:
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": params}
    return {"serverName": "u", "mode": "form", "message": f'Allow it to run tool "{tool}"?', "_meta": meta}


def test_a_tool_of_a_server_is_judged_by_name_and_arguments() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **served("put", "m1", path="bad"))
    talk.notice("item/started", **served("put", "m2", path="good"))
    said = talk.ask("mcpServer/elicitation/request", **question("put", path="good"))
    assert said["result"]["action"] == "accept"
    assert talk.judged == [ToolCall("mcp__u__put", {"path": "good"}, "/w")]
    assert talk.ask("mcpServer/elicitation/request", **question("put", path="bad"))["result"] == {
        "action": "decline"
    }
    assert talk.ask("mcpServer/elicitation/request", **question("put", path="good"))["result"] == {
        "action": "decline"
    }


def test_what_a_server_asks_itself_is_declined() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **served("put"))
    asked = question("put") | {"_meta": None}
    assert talk.ask("mcpServer/elicitation/request", **asked)["result"] == {"action": "decline"}


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("item/permissions/requestApproval", {"permissions": {}, "scope": "turn"}),
        ("item/tool/requestUserInput", {"answers": {}}),
        ("item/tool/call", {"contentItems": [], "success": False}),
        ("execCommandApproval", {"decision": {"denied": {"rejection": "nobody is there to be asked"}}}),
        ("applyPatchApproval", {"decision": {"denied": {"rejection": "nobody is there to be asked"}}}),
    ],
)
def test_whatever_else_asks_gets_nothing(method: str, result: Json) -> None:
    talk = Talk().prompted()
    assert talk.ask(method, command=["touch", "x"])["result"] == result
    assert talk.judged == []


def test_an_unknown_question_is_an_error() -> None:
    assert "error" in Talk().prompted().ask("item/novelty/requestApproval", itemId="c1")


def test_a_refusal_is_told_with_its_reason() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **command("bad x"))
    talk.ask("item/commandExecution/requestApproval", **ASKED | {"command": "bad x"})
    (update,) = talk.notice("item/completed", **command("bad x", status="declined"))
    assert isinstance(update, ToolCallUpdate)
    assert update.status == "failed"
    assert "write.any" in update.content[0].content.text
    assert talk.parser.state.refused == ["bad x"]


def test_a_refusal_of_the_hook_is_told() -> None:
    talk = Talk().prompted()
    raw = {"type": "function_call", "call_id": "c9", "name": "exec_command", "arguments": '{"cmd": "bad y"}'}
    talk.notice("rawResponseItem/completed", item=raw)
    run = {"id": "pre:0:/x:c9", "eventName": "preToolUse", "status": "blocked", "entries": [{"text": "no"}]}
    _, update = talk.notice("hook/completed", run=run)
    assert isinstance(update, ToolCallUpdate)
    assert (update.tool_call_id, update.status, update.content[0].content.text) == ("c9", "failed", "no")
    assert talk.parser.state.refused == ["bad y"]
    assert talk.notice("hook/completed", run=run | {"status": "failed"}) == []


@pytest.mark.parametrize(
    ("method", "news"),
    [
        ("item/completed", command("cat x", status="completed", exitCode=0)),
        ("item/completed", command("cat x", status="failed", exitCode=1)),
        ("item/started", command("cat x", processId="4711")),
        ("item/completed", changed(add("/w/a"))),
        ("item/commandExecution/outputDelta", {"itemId": "c1", "delta": "x"}),
        ("item/commandExecution/terminalInteraction", {"itemId": "c1", "stdin": "x"}),
        ("item/completed", served("bad")),
        ("item/completed", {"item": {"type": "collabAgentToolCall", "id": "a1", "tool": "spawnAgent"}}),
        ("item/completed", {"item": {"type": "commandExecution", "id": 5}}),
        ("item/started", {"item": None}),
    ],
)
def test_what_ran_unasked_ends_the_turn(method: str, news: Json) -> None:
    talk = Talk().prompted()
    talk.notice(method, **news)
    assert (talk.failed, talk.closed) == ("refused", True)


def test_what_never_asked_spoils_the_end() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **changed(add("/w/a")))
    talk.notice("turn/completed", turn={"id": "r1", "status": "completed"})
    assert (talk.failed, talk.closed) == ("refused", True)


def test_what_was_allowed_goes_on() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **command("cat x"))
    talk.ask("item/commandExecution/requestApproval", **ASKED)
    talk.notice("item/commandExecution/outputDelta", itemId="c1", delta="x")
    talk.notice("item/completed", **command("cat x", status="completed", exitCode=0, aggregatedOutput="x"))
    talk.notice("item/completed", **served("list_resources"))
    talk.notice("item/completed", item={"type": "agentMessage", "id": "a", "text": "Read."})
    talk.notice("turn/completed", turn={"id": "r1", "status": "completed"})
    assert (talk.failed, talk.closed) == (None, True)
    assert (talk.parser.state.text, talk.parser.state.stop_reason) == ("Read.", "end_turn")


def test_a_sandbox_that_does_not_work_is_told() -> None:
    talk = Talk().prompted()
    talk.notice("item/started", **command("cat x"))
    talk.ask("item/commandExecution/requestApproval", **ASKED)
    output = "bwrap: Creating new namespace failed\nmore\n"
    talk.notice("item/completed", **command("cat x", status="failed", exitCode=1, aggregatedOutput=output))
    assert (talk.failed, talk.closed) == ("start_failed", True)
    assert talk.parser.state.failure is not None
    assert "Creating new namespace failed" in talk.parser.state.failure.message


def tokens(total: int, last: int) -> Json:
    return {"tokenUsage": {"total": {"inputTokens": total}, "last": {"inputTokens": last}}}


def test_only_the_tokens_of_this_turn_count() -> None:
    talk = Talk().prompted()
    talk.notice("thread/tokenUsage/updated", **tokens(100, 100) | {"turnId": "earlier"})
    for total in (130, 160, 160):
        talk.notice("thread/tokenUsage/updated", **tokens(total, 30))
    assert talk.parser.state.usage == Usage(input_tokens=60)


def test_trouble_is_told_until_it_is_over() -> None:
    talk = Talk().prompted()
    details = "unexpected status 401 Unauthorized"
    talk.notice(
        "error", error={"message": "Reconnecting... 1/5", "additionalDetails": details}, willRetry=True
    )
    assert talk.parser.state.trouble is not None
    assert talk.parser.state.trouble.kind == "auth"
    talk.notice("item/completed", item={"type": "agentMessage", "id": "a", "text": "Back."})
    assert talk.parser.state.trouble is None


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ({"status": "failed", "error": {"message": "last status: 429 Too Many Requests"}}, "rate_limit"),
        ({"status": "failed", "error": None}, "model"),
        ({"status": "interrupted"}, "cancelled"),
        ({"status": "novel"}, "model"),
    ],
)
def test_how_a_turn_may_end(turn: Json, kind: str) -> None:
    talk = Talk().prompted()
    talk.notice("turn/completed", turn=turn, threadId="other")
    assert not talk.closed
    talk.notice("turn/completed", turn=turn)
    assert (talk.failed, talk.closed) == (kind, True)


def test_going_away_in_mid_turn_is_a_crash() -> None:
    talk = Talk().prompted()
    talk.parser.finish(None)
    assert talk.failed == "crashed"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["t1", "r1", "c1", "m1", "bad"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        *(
            "threadId",
            "turnId",
            "item",
            "itemId",
            "run",
            "error",
            "tokenUsage",
            "turn",
            "kind",
            "command",
            "cwd",
        ),
        *(
            "grantRoot",
            "serverName",
            "message",
            "_meta",
            "environmentId",
            "additionalPermissions",
            "data",
            "config",
        ),
    ]
)
KNOWN = st.sampled_from(
    [
        command("cat x"),
        command("bad x", status="completed"),
        changed(add("/w/a")),
        served("put"),
        ASKED,
        question("put"),
        {"itemId": "f1"},
        tokens(3, 1),
        {"turn": {"id": "r1", "status": "completed"}},
    ]
)
METHODS = st.sampled_from(
    [
        *(
            "item/started",
            "item/completed",
            "hook/completed",
            "error",
            "turn/completed",
            "rawResponseItem/completed",
        ),
        *(
            "thread/tokenUsage/updated",
            "item/commandExecution/outputDelta",
            "item/commandExecution/requestApproval",
        ),
        *("item/fileChange/requestApproval", "mcpServer/elicitation/request", "item/tool/call", "novel"),
    ]
)
PARAMS = st.dictionaries(FIELDS, VALUES, max_size=4) | KNOWN | VALUES
FRAMES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 9) | st.text(max_size=3),
        "method": METHODS,
        "params": PARAMS,
        "result": VALUES,
    },
)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 6), st.lists(FRAMES | st.binary(max_size=40), max_size=12))
def test_every_question_is_answered_once_and_nothing_raises(steps: int, frames: list[Json | bytes]) -> None:
    talk = Talk()
    answers: list[Json] = [
        {},
        CONFIG,
        {"data": [{"hooks": [OURS]}]},
        OPENED,
        {"data": [{"hooks": [TRUSTED]}]},
    ]
    for result in [*answers, {"turn": {"id": "r1"}}][:steps]:
        talk.reply(result)
    for frame in frames:
        before, was_closed = len(talk.said), talk.closed
        if isinstance(frame, bytes):
            list(talk.parser.feed(frame))
            talk.listen()
            continue
        talk.tell(frame)
        replies = [each for each in talk.said[before:] if "method" not in each]
        asks = frame.get("method") is not None and frame.get("id") is not None
        assert [each["id"] for each in replies] == ([frame["id"]] if asks and not was_closed else [])
        for reply in replies:
            granted = reply.get("result") in ({"decision": "accept"}, {"action": "accept", "content": {}})
            assert not granted or talk.judged
    talk.parser.finish(None)
