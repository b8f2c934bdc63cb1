"""What OpenClaw is given for a connection, and what its turns mean that end without a word."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import UsageError
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes.base import Connection, Guard, Turn
from remuda.runtimes.openclaw.connected import connection
from remuda.runtimes.openclaw.runtime import connect_command

TURN = Turn(cwd=Path("/tree"), scratch=Path("/scratch"), keep=Path("/keep"), session="s", endpoint="http://e")
REFUSED = b"[model-fetch] response provider=remuda api=openai-completions model=m status=401 elapsedMs=9"
SHUT_OUT = b"Embedded agent failed before reply: Inline API key is disabled after a provider auth failure."
SORRY = "⚠️ OpenClaw couldn't produce or deliver a reply. Please try again."


def said(talk: Connection) -> list[dict[str, object]]:
    return [json.loads(line) for line in (talk.say() or b"").splitlines()]


def hears(talk: Connection, **frame: object) -> None:
    tuple(talk.feed(json.dumps({"jsonrpc": "2.0", **frame}).encode()))


def tells(talk: Connection, told: str, **fields: object) -> None:
    hears(
        talk, method="session/update", params={"sessionId": "a", "update": {"sessionUpdate": told, **fields}}
    )


def conversing(turn: Turn = TURN) -> Connection:
    """A conversation whose first prompt is on its way."""
    talk = connection(turn)
    said(talk)
    hears(talk, id=1, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    said(talk)
    hears(talk, id=2, result={"sessionId": "a"})
    talk.prompt("Hello.")
    said(talk)
    return talk


def ends(talk: Connection) -> str | None:
    hears(talk, id=3, result={"stopReason": "end_turn"})
    return talk.state.failure.kind if talk.state.failure else None


def test_a_turn_without_a_word_has_failed() -> None:
    assert ends(conversing()) == "model"


@pytest.mark.parametrize("line", [REFUSED, SHUT_OUT])
def test_the_log_tells_why(line: bytes) -> None:
    talk = conversing()
    talk.hear(line)
    assert ends(talk) == "auth"


def test_a_gateway_that_does_not_run_is_named() -> None:
    talk = connection(TURN)
    talk.hear(b"ACP bridge failed: connect ECONNREFUSED 127.0.0.1:18789")
    assert talk.state.failure is not None
    assert "openclaw gateway run" in talk.state.failure.message


def test_an_excuse_is_no_answer() -> None:
    talk = conversing()
    tells(talk, "agent_message_chunk", content={"type": "text", "text": SORRY})
    assert ends(talk) == "model"
    assert talk.state.text == ""


def test_trouble_that_was_got_over_is_none() -> None:
    talk = conversing()
    talk.hear(REFUSED)
    tells(talk, "agent_message_chunk", content={"type": "text", "text": "Hello."})
    assert ends(talk) is None
    assert talk.state.text == "Hello."


def test_a_command_is_judged_in_its_own_folder() -> None:
    seen: list[ToolCall] = []

    def judge(call: ToolCall) -> Verdict:
        seen.append(call)
        return Verdict(decision="allow", rule="test", reason="")

    guard = Guard(capability="supervised", judge=judge, hooks=Path("/none"), note="", binding=False)
    talk = conversing(msgspec.structs.replace(TURN, guard=guard))
    given = {"command": "rm -rf x", "workdir": "sub"}
    tells(talk, "tool_call", toolCallId="c", title="exec", kind="execute", rawInput=given)
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"name": "exec", "command": "rm -rf x"}}
    options = [{"optionId": "allow-once", "kind": "allow_once"}, {"optionId": "deny", "kind": "reject_once"}]
    params = {"sessionId": "a", "toolCall": call, "options": options}
    hears(talk, id=0, method="session/request_permission", params=params)
    assert [(call.tool, call.cwd) for call in seen] == [("shell", "/tree/sub")]
    (answer,) = said(talk)
    assert answer["result"] == {"outcome": {"outcome": "selected", "optionId": "allow-once"}}


def test_another_endpoint_gets_a_gateway_of_its_own() -> None:
    asking = connect_command(TURN)
    assert asking.arguments == ("--", "acp")
    assert asking.launcher[-1] == "/scratch/openclaw.json"
    assert asking.env["OPENCLAW_STATE_DIR"] == "/keep"
    assert asking.keeps
    tools = json.loads(asking.files[0].content)["tools"]
    assert (tools["allow"][-1], tools["exec"]) == ("exec", {"mode": "ask"})
    bypass = connect_command(msgspec.structs.replace(TURN, permission="bypass"))
    assert "tools" not in json.loads(bypass.files[0].content)


def test_a_users_own_gateway_is_left_as_it_is() -> None:
    own = msgspec.structs.replace(TURN, endpoint=None)
    invocation = connect_command(own)
    assert (invocation.launcher, invocation.arguments, invocation.files) == ((), ("acp",), ())
    for changes in ({"model": "m"}, {"system_prompt": "x"}, {"append_system_prompt": "x"}):
        with pytest.raises(UsageError):
            connect_command(msgspec.structs.replace(own, **changes))
