"""What agent CLIs send to a hook: every spelling is understood, nothing is an exception."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from remuda.guard.tools import ToolCall
from remuda.hooks.events import COMMANDS, Event, event_of
from remuda.hooks.payload import LARGEST, Payload, Refusal, read

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    (
        *("tool_name", "toolName", "tool_input", "toolInput", "toolArgs", "cwd"),
        *("session_id", "sessionId", "hook_event_name", "hookEventName"),
    )
)


def parsed(**fields: object) -> Payload:
    return read(json.dumps(fields).encode(), "/w")


def refusal(payload: Payload) -> str:
    assert isinstance(payload.call, Refusal)
    return payload.call.why


@pytest.mark.parametrize("event", COMMANDS)
def test_an_event_goes_by_any_spelling(event: Event) -> None:
    command = COMMANDS[event]
    camel = event[0].lower() + event[1:]
    for name in (event, camel, command, command.replace("-", "_"), command.upper()):
        assert event_of(name) == event


def test_there_are_the_documented_events_and_no_others() -> None:
    assert len(COMMANDS) == 8
    assert COMMANDS["SessionEnd"] == "session-stop"
    assert (event_of("userPromptSubmitted"), event_of("agentStop")) == ("UserPromptSubmit", "Stop")
    assert [event_of(name) for name in ("", "pre", "PreToolUses", "pre tool use", "\0")] == [None] * 5


def test_the_documented_payload() -> None:
    payload = parsed(
        tool_name="Bash",
        tool_input={"command": "pwd"},
        cwd="/repo",
        session_id="one",
        hook_event_name="PreToolUse",
    )
    assert payload == Payload(ToolCall("Bash", {"command": "pwd"}, "/repo"), "PreToolUse", "one")


def test_copilots_payload() -> None:
    payload = parsed(
        toolName="bash", toolArgs='{"command": "pwd"}', sessionId="one", timestamp=17, cwd="/repo"
    )
    assert payload == Payload(ToolCall("bash", {"command": "pwd"}, "/repo"), None, "one")


@pytest.mark.parametrize("name", ["tool_input", "toolInput", "toolArgs"])
def test_an_input_may_be_an_object_its_json_or_a_text(name: str) -> None:
    for given, meant in (
        ({"a": 1}, {"a": 1}),
        (' {"a": 1}', {"a": 1}),
        ("*** Begin Patch", "*** Begin Patch"),
        ([1], [1]),
        (None, {}),
    ):
        assert parsed(toolName="x", **{name: given}).call == ToolCall("x", meant, "/w")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "names no tool"),
        ({"tool_name": 5}, "names no tool"),
        ({"tool_name": " "}, "names no tool"),
        ({"tool_name": "x" * 300}, "names no tool"),
        ({"tool_name": "a", "toolName": "b"}, "tool_name is there twice"),
        ({"tool_name": "a", "tool_input": {}, "toolArgs": "ls"}, "tool_input is there twice"),
        ({"tool_name": "a", "toolArgs": '{"command": "rm'}, "not JSON"),
        ({"tool_name": "a", "cwd": "here"}, "working folder"),
        ({"tool_name": "a", "cwd": "/a\0b"}, "working folder"),
        ({"tool_name": "a", "cwd": 5}, "working folder"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, object], told: str) -> None:
    assert told in refusal(parsed(**fields))


def test_a_refused_payload_still_says_whose_it_is() -> None:
    payload = parsed(session_id="one", hookEventName="stop")
    assert (payload.session, payload.event) == ("one", "Stop")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "there is none"),
        (b" \n", "there is none"),
        (b"[]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b"{", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (b'{"a":' * 100_000, "not a JSON object"),
        (b'{"tool_name": "\\ud800"}', "not a JSON object"),
        (b" " * LARGEST + b"{}", "longer than"),
    ],
)
def test_what_is_no_object_is_refused(data: bytes, told: str) -> None:
    assert told in refusal(read(data, "/w"))


def test_a_refusal_does_not_repeat_what_it_refuses() -> None:
    secret = "hunter2"
    for data in (b'{"tool_name": "a", "toolArgs": "{hunter2"}', b"hunter2", b'{"cwd": "hunter2"}'):
        assert secret not in refusal(read(data, "/w"))


@hypothesis.given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    assert isinstance(read(data, "/w").call, ToolCall | Refusal)


@hypothesis.given(st.dictionaries(KEYS, VALUES, max_size=8))
def test_no_object_raises(fields: dict[str, object]) -> None:
    payload = read(json.dumps(fields).encode(), "")
    assert isinstance(payload.call, Refusal) or payload.call.cwd.startswith("/")
