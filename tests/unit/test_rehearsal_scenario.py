"""Scenarios, the choice of a step, and the wire dialects: all pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.rehearsal import brain, wire_anthropic, wire_chat, wire_gemini, wire_responses
from remuda.rehearsal.exchange import Ask, Entry, Fault, Reply, Tool, ToolCall, Usage, digest
from remuda.rehearsal.scenario import (
    Scenario,
    ScenarioError,
    Step,
    builtin_names,
    load_scenario,
    parse_scenario,
)
from remuda.rehearsal.wire import Wire, pieces

GEMINI = wire_gemini.wire_at("/v1beta/models/m:streamGenerateContent")
assert GEMINI is not None
WIRES = [wire_anthropic.WIRE, wire_responses.WIRE, wire_chat.WIRE, GEMINI]
BASH = Tool("Bash", {"command": "string", "description": "string"})


def ask(prompt: str = "go", turn: int = 0, tools: tuple[Tool, ...] = (BASH,), **more: object) -> Ask:
    plain = Ask("m", True, "", prompt, (prompt,), turn, (), tools)
    return msgspec.structs.replace(plain, **more)


def scenario(rules: str) -> Scenario:
    return parse_scenario(f"name: test\nrules:\n{rules}", "test.yaml")


def never(place: brain.Place, times: int) -> bool:
    raise AssertionError("no fault is limited here")


def claims() -> brain.Claim:
    happened: Counter[brain.Place] = Counter()

    def claim(place: brain.Place, times: int) -> bool:
        happened[place] += 1
        return happened[place] <= times

    return claim


# --- files --------------------------------------------------------------------------------------------------


def test_the_builtin_scenarios_load_by_name() -> None:
    assert builtin_names() == ["default", "demo", "errors"]
    assert [load_scenario(name).name for name in builtin_names()] == builtin_names()


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("name: x\nrules: [{steps: [{txt: a}]}]", "$.rules[0].steps[0]", "unknown field `txt`"),
        ("name: x\nrules: [{steps: []}]", "$.rules[0].steps", "length >= 1"),
        ("name: x\nrules: [{when: {regex: '('}, steps: [{text: a}]}]", "$.rules[0].when", "regex"),
        ("name: x\nrules: [{steps: [{text: a, status: 429}]}]", "$.rules[0].steps[0]", "one of"),
        ("name: x\nrules: [{steps: [{thought: a}]}]", "$.rules[0].steps[0]", "one of"),
        ("name: x\nrules: [{steps: [{status: 429, hang: true}]}]", "$.rules[0].steps[0]", "not both"),
        ("name: x\nrules: [{steps: [{text: a, times: 2}]}]", "$.rules[0].steps[0]", "`times`"),
        ("name: x\nrules: [{steps: [{text: a, code: b}]}]", "$.rules[0].steps[0]", "belong to a `status`"),
        ("name: x\nrules: [{steps: [{text: a, input: {b: 1}}]}]", "$.rules[0].steps[0]", "needs a `tool`"),
        ("name: x\nrules: [{steps: [{status: 200}]}]", "$.rules[0].steps[0].status", ">= 400"),
        ("name: x\nrules: [{steps: [{text: a, delay: -1}]}]", "$.rules[0].steps[0].delay", ">= 0"),
        ("name: x\nrules: [{steps: [{text: a, usage: {inptu: 1}}]}]", "steps[0].usage", "`inptu`"),
        ("rules: []", "", "missing required field `name`"),
        ("", "", "Expected `object`"),
        ("a: [", "line 1, column 5", "not valid YAML"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_place(
    tmp_path: Path, text: str, place: str, problem: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    assert str(file) in caught.value.message
    assert place in caught.value.message
    assert problem in caught.value.message


def test_a_missing_or_binary_file_is_refused_and_the_builtin_names_are_offered(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="default, demo, errors"):
        load_scenario(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load_scenario(tmp_path / "latin.yaml")


# --- choosing a step ----------------------------------------------------------------------------------------


def test_the_first_matching_rule_wins() -> None:
    script = scenario("""
      - {when: {contains: alpha, model: "gpt-*"}, steps: [{text: first}]}
      - {when: {regex: "^al.ha"}, steps: [{text: second}]}
      - {steps: [{text: third}]}
    """)
    assert brain.choose(script, ask("alpha", model="gpt-5"), never).text == "first"
    assert brain.choose(script, ask("alpha", model="claude"), never).text == "second"
    assert brain.choose(script, ask("beta"), never).text == "third"


def test_no_matching_rule_gives_a_plain_answer() -> None:
    assert brain.choose(scenario("  - {when: {contains: x}, steps: [{hang: true}]}"), ask("y"), never) == (
        brain.UNSCRIPTED
    )


def test_the_turn_picks_the_step_and_the_last_text_repeats() -> None:
    script = scenario("  - steps: [{tool: shell, input: {command: a}}, {text: b}, {tool: x}]")
    chosen = [brain.choose(script, ask(turn=turn), never) for turn in range(5)]
    assert [step.tool or step.text for step in chosen] == ["shell", "b", "x", "b", "b"]


def test_a_limited_fault_happens_so_many_times_before_the_answer_of_the_same_turn() -> None:
    script = scenario(
        "  - steps: [{tool: x}, {status: 429, times: 2}, {text: a, drop: true, times: 1}, {text: b}]"
    )
    claim = claims()
    chosen = [brain.choose(script, ask(turn=1), claim) for _ in range(5)]
    assert [step.status or step.text for step in chosen] == [429, 429, "a", "b", "b"]
    assert brain.choose(script, ask(turn=0), never).tool == "x"


def test_an_unlimited_fault_happens_for_ever() -> None:
    script = scenario("  - steps: [{status: 500}, {text: unreachable}]")
    assert {brain.choose(script, ask(), never).status for _ in range(3)} == {500}


def test_a_request_without_tools_gets_text_in_place_of_a_tool_step() -> None:
    script = scenario("  - steps: [{tool: shell}, {text: done}]")
    assert brain.choose(script, ask(tools=()), never) == brain.WITHOUT_TOOLS
    assert brain.choose(script, ask(tools=(Tool("Read"),)), never) == brain.WITHOUT_SHELL


# --- what a step says ---------------------------------------------------------------------------------------


def test_placeholders_are_filled_once_and_nothing_else_is_touched() -> None:
    said = brain.reply(
        Step(text="{prompt}|{prompt_bytes}|{tool_result}|{other}|{}"),
        ask("{tool_result}é", tool_results=("one", "two")),
        "id",
    )
    assert said.text == "{tool_result}é|15|two|{other}|{}"


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (BASH, {"command": "ls", "description": "Rehearsal step"}),
        (Tool("exec_command", {"cmd": "string", "workdir": "string"}), {"cmd": "ls"}),
        (Tool("shell", {"command": "array"}), {"command": ["bash", "-c", "ls"]}),
        (Tool("terminal"), {"command": "ls"}),
    ],
)
def test_the_shell_call_is_fitted_to_the_tool_on_offer(tool: Tool, expected: dict[str, object]) -> None:
    step = Step(tool="shell", input={"command": "ls"})
    (call,) = brain.reply(step, ask(tools=(Tool("Read"), tool)), "id").calls
    assert (call.name, json.loads(call.arguments)) == (tool.name, expected)


def test_any_other_tool_is_called_exactly_as_written() -> None:
    (call,) = brain.reply(Step(tool="Nope", input={"command": ["a"]}), ask(), "id").calls
    assert (call.name, json.loads(call.arguments)) == ("Nope", {"command": ["a"]})


# --- reading a conversation ---------------------------------------------------------------------------------


def test_the_prompt_is_the_last_text_a_cli_did_not_write_itself() -> None:
    said = digest(
        [
            Entry("user", "<environment_context>x</environment_context>"),
            Entry("user", "old"),
            Entry("assistant"),
            Entry("user", "new"),
            Entry("user", "<system-reminder>y</system-reminder>"),
            Entry("assistant"),
            Entry("assistant"),
            Entry("result", "1"),
            Entry("result", "2"),
            Entry("user", "<system-reminder>z</system-reminder>"),
            Entry("assistant"),
        ]
    )
    assert (said.prompt, said.turn, said.tool_results) == ("new", 2, ("1", "2"))
    assert len(said.user_texts) == 5


def test_a_conversation_of_notes_alone_still_has_a_prompt() -> None:
    assert digest([Entry("user", "<system-reminder>a")]).prompt == "<system-reminder>a"
    assert digest([]).prompt == ""


SCHEMA = {"type": "object", "properties": {"command": {"type": ["array", "null"]}, "any": True}}
CONVERSATIONS: dict[str, dict[str, object]] = {
    "anthropic-messages": {
        "system": [{"type": "text", "text": "rules"}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "<system-reminder>"}, {"type": "text", "text": "do"}],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "shell", "input": {"text": {}}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "text", "text": "out"}]}],
            },
        ],
        "tools": [{"name": "shell", "input_schema": SCHEMA}],
    },
    "openai-responses": {
        "instructions": "rules",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "<system-reminder>"}]},
            {"type": "message", "role": "user", "content": "do"},
            {"type": "reasoning", "summary": [], "content": None},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "out"},
        ],
        "tools": [{"type": "function", "name": "shell", "parameters": SCHEMA}],
    },
    "openai-chat": {
        "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "<system-reminder>"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "do"}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "tool_call_id": "1", "content": "out"},
        ],
        "tools": [{"type": "function", "function": {"name": "shell", "parameters": SCHEMA}}],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "rules"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "<system-reminder>"}, {"text": "do"}, {"inlineData": {}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {"text": {}}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "shell", "response": {"output": "out"}}}],
            },
        ],
        "tools": [
            {"functionDeclarations": [{"name": "shell", "parametersJsonSchema": SCHEMA}]},
            {"googleSearch": {}},
        ],
    },
}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
def test_every_dialect_decodes_to_the_same_ask(wire: Wire) -> None:
    body = json.dumps({"model": "m", "stream": True, **CONVERSATIONS[wire.api]}).encode()
    assert wire.decode(body) == Ask(
        model="m",
        stream=True,
        system="rules",
        prompt="do",
        user_texts=("<system-reminder>", "do"),
        turn=1,
        tool_results=("out",),
        tools=(Tool("shell", {"command": "array", "any": ""}),),
    )


def test_tools_in_a_responses_namespace_are_called_with_it() -> None:
    inner = {"type": "function", "name": "add", "parameters": {"properties": {}}}
    body = {"input": "hi", "tools": [{"type": "namespace", "name": "mcp__calc", "tools": [inner]}]}
    asked = wire_responses.decode(json.dumps(body).encode())
    said = brain.reply(Step(tool="add"), asked, "id")
    item = json.loads(bytes_of(wire_responses.encode(said, asked)))["output"][0]
    assert (item["namespace"], item["name"]) == ("mcp__calc", "add")


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        ("/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash", False),
        ("/v1/models/m:streamGenerateContent", "m", True),
        ("/v1beta/models/m:countTokens", None, False),
        ("/v1beta/models/m", None, False),
        ("/v2/models/m:generateContent", None, False),
    ],
)
def test_a_gemini_path_names_the_model_and_what_is_wanted(path: str, model: str | None, stream: bool) -> None:
    wire = wire_gemini.wire_at(path)
    asked = wire.decode(b'{"contents":[{"parts":[{"text":"hi"}]}]}') if wire else None
    assert (asked and (asked.model, asked.stream, asked.prompt)) == (model and (model, stream, "hi"))
    assert wire_gemini.counts_at(path) == path.endswith(":countTokens")


def test_gemini_schemas_in_capitals_and_results_of_any_shape_are_read() -> None:
    declared = {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": []},
            {"role": "user", "parts": [{"functionResponse": {"response": {"error": "no"}}}]},
            {"role": "model", "parts": []},
            {"role": "user", "parts": [{"functionResponse": {"response": {"n": 1}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "run", "parameters": declared}]}],
    }
    asked = wire_gemini.decode("m", False, json.dumps(body).encode())
    assert asked.tools == (Tool("run", {"command": "string"}),)
    assert (asked.turn, asked.tool_results) == (2, ("no", '{"n":1}'))


BAD_TEXT = b'{"input":"\xff","messages":[{"role":"user","content":"\xff"}]}'
DEEP = b'{"input":"","messages":[],"deep":' + b"[" * 100_000


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b"\xff", b'{"messages":1,"input":1}', BAD_TEXT, DEEP]
)
def test_a_body_of_another_kind_is_an_error_that_can_be_told(wire: Wire, body: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        wire.decode(body)


# --- writing a reply ----------------------------------------------------------------------------------------

REPLY = Reply(
    id="7",
    text="Some text that takes more than one piece to send.",
    thought="A thought, also long enough for two pieces.",
    calls=(ToolCall("7_0", "shell", '{"command":"ls"}'), ToolCall("7_1", "Read", '{"path":"a"}')),
    usage=Usage(10, 20, 3, 4),
    stop="tools",
)


def bytes_of(encoded: object) -> bytes:
    assert isinstance(encoded, bytes)
    return encoded


def events(wire: Wire, reply: Reply) -> list[dict[str, object]]:
    frames = wire.encode(reply, ask())
    assert isinstance(frames, Iterator)
    listed = list(frames)
    assert sum(frame.text for frame in listed) == len(list(pieces(reply.text)))
    assert all(frame.render().endswith(b"\n\n") for frame in listed)
    return [json.loads(frame.data) for frame in listed if frame.data != b"[DONE]"]


def test_a_messages_stream_adds_up_to_the_message() -> None:
    plain = json.loads(bytes_of(wire_anthropic.encode(REPLY, ask(stream=False))))
    parts: dict[int, str] = {}
    for event in events(wire_anthropic.WIRE, REPLY):
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            found = next(
                delta[key] for key in ("text", "thinking", "partial_json", "signature") if key in delta
            )
            parts[event["index"]] = parts.get(event["index"], "") + found
    assert [block["type"] for block in plain["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert parts[0] == REPLY.thought + "rehearsal"
    assert parts[1] == REPLY.text == plain["content"][1]["text"]
    assert json.loads(parts[2]) == {"command": "ls"} == plain["content"][2]["input"]
    assert plain["stop_reason"] == "tool_use"
    assert plain["usage"] == {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
    }


def test_a_responses_stream_ends_with_the_response() -> None:
    plain = json.loads(bytes_of(wire_responses.encode(REPLY, ask(stream=False))))
    sent = events(wire_responses.WIRE, REPLY)
    assert [event["sequence_number"] for event in sent] == list(range(len(sent)))
    assert sent[-1]["type"] == "response.completed"
    assert sent[-1]["response"] == plain
    done = [event["item"] for event in sent if event["type"] == "response.output_item.done"]
    assert done == plain["output"]
    assert "".join(e["delta"] for e in sent if e["type"] == "response.output_text.delta") == REPLY.text
    assert plain["usage"]["input_tokens_details"] == {"cached_tokens": 3, "cache_write_tokens": 4}
    assert plain["usage"]["total_tokens"] == 30


def test_a_chat_stream_adds_up_to_the_completion() -> None:
    plain = json.loads(bytes_of(wire_chat.encode(REPLY, ask(stream=False))))
    sent = events(wire_chat.WIRE, REPLY)
    deltas = [event["choices"][0]["delta"] for event in sent if event["choices"]]
    message = plain["choices"][0]["message"]
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"] == REPLY.text
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == REPLY.thought
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [{k: v for k, v in call.items() if k != "index"} for call in calls] == message["tool_calls"]
    assert sent[-1]["usage"] == plain["usage"]
    assert plain["choices"][0]["finish_reason"] == "tool_calls"


def test_a_gemini_stream_adds_up_to_the_response() -> None:
    plain = json.loads(bytes_of(wire_gemini.encode(REPLY, ask(stream=False))))
    assert GEMINI is not None
    sent = events(GEMINI, REPLY)
    parts = [part for event in sent for part in event["candidates"][0]["content"]["parts"]]
    whole = plain["candidates"][0]["content"]["parts"]
    assert whole[:2] == [{"text": REPLY.thought, "thought": True}, {"text": REPLY.text}]
    assert "".join(part["text"] for part in parts if part.get("thought")) == REPLY.thought
    assert "".join(part["text"] for part in parts if "text" in part and "thought" not in part) == REPLY.text
    assert [part["functionCall"] for part in parts if "functionCall" in part] == [
        {"id": "call_7_0", "name": "shell", "args": {"command": "ls"}},
        {"id": "call_7_1", "name": "Read", "args": {"path": "a"}},
    ]
    assert whole[2:] == [part for part in parts if "functionCall" in part]
    assert [event for event in sent if "finishReason" in event["candidates"][0]] == sent[-1:]
    assert sent[-1]["usageMetadata"] == plain["usageMetadata"]
    assert plain["usageMetadata"]["cachedContentTokenCount"] == 3
    assert plain["usageMetadata"]["totalTokenCount"] == 30


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(400), "INVALID_ARGUMENT"),
        (Fault(401), "UNAUTHENTICATED"),
        (Fault(403), "PERMISSION_DENIED"),
        (Fault(429), "RESOURCE_EXHAUSTED"),
        (Fault(500), "INTERNAL"),
        (Fault(503), "UNAVAILABLE"),
        (Fault(529), "INTERNAL"),
        (Fault(400, code="NOT_FOUND"), "NOT_FOUND"),
    ],
)
def test_gemini_errors_have_googles_words(fault: Fault, status: str) -> None:
    problem = json.loads(wire_gemini.error(fault))["error"]
    assert problem == {"code": fault.status, "message": fault.message, "status": status}


def test_a_gemini_quota_that_waiting_does_not_help_is_told_apart() -> None:
    problem = json.loads(wire_gemini.error(Fault(429, code="insufficient_quota")))["error"]
    assert problem["status"] == "RESOURCE_EXHAUSTED"
    assert "PerDay" in problem["details"][0]["violations"][0]["quotaId"]


@pytest.mark.parametrize(
    ("fault", "anthropic", "openai"),
    [
        (Fault(401), "authentication_error", "invalid_api_key"),
        (Fault(429), "rate_limit_error", "rate_limit_exceeded"),
        (Fault(429, code="insufficient_quota"), "rate_limit_error", "insufficient_quota"),
        (Fault(400), "invalid_request_error", None),
        (Fault(500), "api_error", "server_error"),
        (Fault(529), "overloaded_error", "server_error"),
        (Fault(500, code="overloaded_error"), "overloaded_error", "overloaded_error"),
    ],
)
def test_errors_are_put_into_each_vendors_words(fault: Fault, anthropic: str, openai: str | None) -> None:
    assert json.loads(wire_anthropic.error(fault))["error"]["type"] == anthropic
    for wire in (wire_responses.WIRE, wire_chat.WIRE):
        problem = json.loads(wire.error(fault))["error"]
        assert (problem["code"], problem["message"]) == (openai, fault.message)


@given(st.text())
def test_pieces_add_up_and_are_few(text: str) -> None:
    cut = list(pieces(text))
    assert "".join(cut) == text
    assert len(cut) <= 64
    assert all(cut)
