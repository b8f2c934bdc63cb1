"""What a turn tells: its events, its usage, and what permissions and capabilities really hold."""

from __future__ import annotations

from acp.schema import SessionNotification
from tests.agents.lab import Ended, Lab

from remuda.core.errors import exit_code_for
from remuda.core.events import Usage
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step

MODEL = "scripted-model-1"


def check_stream(ended: Ended, agent: str) -> None:
    """Envelopes of known fields, numbered without a gap, with updates that any ACP client understands."""
    assert ended.code == 0, ended.stderr
    assert len({line["session"] for line in ended.lines}) == 1
    for number, line in enumerate(ended.lines, 1):
        assert set(line) - {"update", "result"} == {"v", "seq", "session", "agent", "time"}
        assert (line["v"], line["seq"], line["agent"]) == (1, number, agent)
        if "update" in line:
            SessionNotification.model_validate({"sessionId": line["session"], "update": line["update"]})
    assert {"stop_reason", "text", "usage", "cost_usd", "exit_code", "error"} <= set(
        ended.lines[-1]["result"]
    )


def counted(lab: Lab, said: exchange.Usage) -> Usage | None:
    """What the server said, as far as this runtime's way to the model carries it."""
    conduct = lab.runtime.conduct
    if not conduct.usage:
        return None
    return Usage(
        said.input,
        said.output,
        said.cache_read if conduct.cache_reads else 0,
        said.cache_write if conduct.cache_writes else 0,
    )


def test_a_text_turn(lab: Lab) -> None:
    lab.play(Step(text="The answer is 42 🐎.", usage=exchange.Usage(301, 17, 11, 3)))
    model = ("--model", MODEL) if lab.runtime.conduct.model_choice else ()
    ended = lab.run("What is the answer?", *model)
    check_stream(ended, lab.runtime.name)
    assert ended.kinds == ["agent_message_chunk"]
    result = ended.result
    assert (result.text, result.stop_reason, result.error) == ("The answer is 42 🐎.", "end_turn", None)
    assert result.usage == counted(lab, exchange.Usage(301, 17, 11, 3))
    assert result.runtime_session
    if lab.runtime.conduct.model_choice:
        assert result.model == (MODEL if lab.runtime.conduct.tells_model else None)
        assert {heard.model for heard in lab.server.heard() if heard.api} == {MODEL}


def check_tool_call(ended: Ended) -> None:
    (call,) = (update for update in ended.updates if update["sessionUpdate"] == "tool_call")
    (outcome,) = (update for update in ended.updates if update["sessionUpdate"] == "tool_call_update")
    assert call["kind"] == "execute"
    assert "f.txt" in str(call["rawInput"])
    assert (outcome["toolCallId"], outcome["status"]) == (call["toolCallId"], "completed")
    assert "written" in ended.tool_outputs


def test_a_tool_turn(shell_lab: Lab) -> None:
    lab = shell_lab
    lab.play(
        Step(
            thought="A file will do.",
            tool="shell",
            input={"command": "echo written > f.txt && cat f.txt"},
            usage=exchange.Usage(1000, 50, 600, 100),
        ),
        Step(text="It says: written", usage=exchange.Usage(1100, 30, 1000, 20)),
    )
    ended = lab.run("Write a file.", *lab.bypass)
    check_stream(ended, lab.runtime.name)
    conduct = lab.runtime.conduct
    thoughts = ["agent_thought_chunk"] if conduct.tells_thoughts else []
    tools = ["tool_call", "tool_call_update"] if conduct.tells_tools else []
    assert ended.kinds == [*thoughts, *tools, "agent_message_chunk"]
    if conduct.tells_thoughts:
        assert ended.joined("agent_thought_chunk") == "A file will do."
    if conduct.tells_tools:
        check_tool_call(ended)
    assert ended.joined("agent_message_chunk") == ended.result.text == "It says: written"
    assert ended.result.refused == ()
    assert (lab.cwd / "f.txt").read_text() == "written\n"
    assert ended.result.usage == counted(lab, exchange.Usage(2100, 80, 1600, 120))


def test_a_turn_that_edits(edit_lab: Lab) -> None:
    (reply,) = edit_lab.write("f.txt", "written")
    edit_lab.play(reply)
    ended = edit_lab.run("Write a file.", *edit_lab.bypass)
    check_stream(ended, edit_lab.runtime.name)
    assert ended.kinds == ["agent_message_chunk", "tool_call", "tool_call_update"]
    (call,) = (update for update in ended.updates if update["sessionUpdate"] == "tool_call")
    assert (call["kind"], call["rawInput"]) == ("edit", {"path": "f.txt"})
    assert (edit_lab.cwd / "f.txt").read_text() == "written\n"


def is_refused(lab: Lab, ended: Ended, *bounds: str) -> bool:
    """Whether a runtime that cannot be held to one of these bounds started nothing and said so."""
    if not lab.runtime.conduct.refuses & set(bounds):
        return False
    assert ended.code == exit_code_for("refused")
    assert ended.result.error is not None
    assert lab.runtime.title in ended.result.error.message
    assert lab.server.heard() == ()
    return True


def test_without_approval_it_is_as_declared(lab: Lab) -> None:
    lab.play(*lab.write("f.txt", "written"))
    ended = lab.run("Write a file.", "--permission", "ask")
    if is_refused(lab, ended, "ask"):
        return
    check_stream(ended, lab.runtime.name)
    failed = [update for update in ended.updates if update.get("status") == "failed"]
    assert (lab.cwd / "f.txt").exists() == (lab.runtime.conduct.ask == "runs")
    assert ended.result.refused or failed or lab.runtime.conduct.ask != "refused"
