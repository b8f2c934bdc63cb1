"""The event parsers: on streams that real agent CLIs printed, and on whatever else may come."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import ErrorKind
from remuda.core.events import (
    AnyUpdate,
    MessageChunk,
    Result,
    ThoughtChunk,
    ToolCall,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)
from remuda.runtimes import registry
from remuda.runtimes.base import UNVERIFIED, Conduct, Parser, Turn
from remuda.sessions.headless import conclude, envelope

STREAMS = Path(__file__).parents[1] / "fixtures" / "streams"
TURN = Turn(cwd=Path("/work"), scratch=Path("/scratch"), keep=Path("/keep"), session="s")
RECORDED = sorted(folder.name for folder in STREAMS.iterdir())
FAILURES: dict[str, ErrorKind] = {"401": "auth", "429": "rate_limit", "500": "model", "drop": "model"}
ALL = [(file.parent.name, file.stem) for file in sorted(STREAMS.glob("*/*.stream"))]

every_runtime = pytest.mark.parametrize("name", RECORDED)
every_recording = pytest.mark.parametrize(("name", "case"), ALL)


def fixture(name: str, case: str) -> list[bytes]:
    return (STREAMS / name / f"{case}.stream").read_bytes().split(b"\n")[:-1]


def output(name: str, case: str) -> list[bytes]:
    """The lines of standard output."""
    return [line[2:] for line in fixture(name, case) if line.startswith(b"> ")]


def is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


TELL_BY_LINE = [name for name in RECORDED if all(map(is_json, output(name, "tool")))]
"""The runtimes whose every line stands for itself."""


def new_parser(name: str) -> Parser:
    return registry.get(name).parser(TURN, "What is the answer?")


def feed(parser: Parser, lines: Iterable[bytes]) -> list[AnyUpdate]:
    """What recorded lines tell; the parser may answer to each."""
    updates: list[AnyUpdate] = []
    parser.say()
    for line in lines:
        if line.startswith(b"> "):
            updates += parser.feed(line[2:])
        else:
            parser.hear(line[2:])
        parser.say()
    return updates


def play(name: str, case: str, parser: Parser | None = None) -> tuple[list[AnyUpdate], Parser]:
    """A recorded stream from its first line to the file that was left."""
    parser = parser or new_parser(name)
    updates = feed(parser, fixture(name, case))
    leftover = STREAMS / name / f"{case}.leftover"
    parser.finish(leftover.read_bytes() if leftover.exists() else None)
    return updates, parser


def kinds(updates: list[AnyUpdate]) -> list[type[AnyUpdate]]:
    """The kinds of updates; chunks that follow each other count as one. How full the context is may be told
    at any time."""
    told = (type(update) for update in updates if not isinstance(update, UsageUpdate))
    return [kind for kind, _ in groupby(told)]


def counted(conduct: Conduct, usage: Usage) -> Usage | None:
    """What the server said, as far as a runtime tells it."""
    if not conduct.usage:
        return None
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_read_tokens if conduct.cache_reads else 0,
        usage.cached_write_tokens if conduct.cache_writes else 0,
    )


def check_sane(parser: Parser, updates: Iterable[AnyUpdate]) -> None:
    """Whatever was learnt can be printed as events and read again."""
    for update in updates:
        json.loads(msgspec.json.encode(envelope("s", "a", 1, update=update)).decode())
    for code in (0, 1):
        result = conclude(parser.state, code, "")
        assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result
    assert parser.state.skipped >= 0


def test_every_runtime_is_recorded() -> None:
    assert sorted(registry.names()) == RECORDED
    for name in RECORDED:
        conduct = registry.get(name).conduct
        left_out = {"refused-tool"} if "ask" in conduct.refuses else set()
        left_out |= {"drop"} if conduct.drop == "goes on" else set()
        recorded = {case for runtime, case in ALL if runtime == name}
        assert recorded == {"text", "tool", "refused-tool", *FAILURES} - left_out


@every_recording
def test_every_recorded_line_is_understood(name: str, case: str) -> None:
    updates, parser = play(name, case)
    assert parser.state.skipped == 0
    check_sane(parser, updates)


@every_runtime
def test_a_text_turn(name: str) -> None:
    updates, parser = play(name, "text")
    conduct = registry.get(name).conduct
    assert kinds(updates) == [MessageChunk]
    result = conclude(parser.state, 0, "")
    assert (result.text, result.stop_reason, result.error) == ("The answer is 42 🐎.", "end_turn", None)
    assert result.usage == counted(conduct, Usage(301, 17, 11, 3))
    assert bool(result.model) == conduct.tells_model
    assert result.runtime_session


@every_runtime
def test_a_tool_turn(name: str) -> None:
    updates, parser = play(name, "tool")
    conduct = registry.get(name).conduct
    if not conduct.shell:
        assert kinds(updates) == [MessageChunk, ToolCall, ToolCallUpdate]
        return
    thoughts: list[type[AnyUpdate]] = [ThoughtChunk] if conduct.tells_thoughts else []
    tools: list[type[AnyUpdate]] = [ToolCall, ToolCallUpdate] if conduct.tells_tools else []
    assert kinds(updates) == [*thoughts, *tools, MessageChunk]
    assert parser.state.text == "It says: written"
    assert parser.state.usage == counted(conduct, Usage(2100, 80, 1600, 120))
    assert parser.state.refused == []
    if conduct.tells_tools:
        check_shell_call(name, updates)


def check_shell_call(name: str, updates: list[AnyUpdate]) -> None:
    (call,) = (update for update in updates if isinstance(update, ToolCall))
    (outcome,) = (update for update in updates if isinstance(update, ToolCallUpdate))
    assert call.kind == "execute"
    runtime = registry.get(name)
    connected = [channel.mode for channel in runtime.channels] == ["connection"]
    assert call.status == ("pending" if connected else "in_progress")
    assert (outcome.tool_call_id, outcome.status) == (call.tool_call_id, "completed")
    output = outcome.content[0].content.text
    described = connected or runtime.verified_version == UNVERIFIED
    assert "written" in output if described else output.startswith("written")


@pytest.mark.parametrize("name", [name for name, case in ALL if case == "refused-tool"])
def test_a_refused_tool(name: str) -> None:
    updates, parser = play(name, "refused-tool")
    told = registry.get(name).conduct.ask == "refused"
    calls = [update for update in updates if isinstance(update, ToolCall)]
    assert [u.status for u in updates if isinstance(u, ToolCallUpdate)] == ["failed"] * told
    assert parser.state.refused == [call.title for call in calls] * told
    assert conclude(parser.state, 0, "").error is None


@pytest.mark.parametrize(("name", "case"), [pair for pair in ALL if pair[1] in FAILURES])
def test_a_failing_model(name: str, case: str) -> None:
    """Trouble is told while the program still retries, so that nobody has to wait until it gives up."""
    _, parser = play(name, case)
    failure = parser.state.failure or parser.state.trouble
    assert failure is not None
    assert failure.kind == FAILURES[case]
    assert not failure.message.startswith(("{", '"'))
    assert conclude(parser.state, 1, "").error == failure


def before_failure(name: str, case: str) -> list[bytes]:
    """The lines in which the program has not given up yet."""
    parser = new_parser(name)
    lines = []
    for line in fixture(name, case):
        feed(parser, [line])
        if parser.state.failure:
            break
        lines.append(line)
    return lines


@pytest.mark.parametrize("name", TELL_BY_LINE)
def test_trouble_that_was_got_over_is_forgotten(name: str) -> None:
    parser = new_parser(name)
    feed(parser, before_failure(name, "500"))
    play(name, "text", parser)
    assert conclude(parser.state, 0, "").error is None


REAL = {
    name: [line for runtime, case in ALL if runtime == name for line in output(name, case)]
    for name in RECORDED
}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, -(2**63) - 1, 2**64, 10**400, -1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["\ud800", "\x00", "é" * 50])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
DEEP = st.sampled_from([b"[" * 100_000, b'{"type":' * 100_000, b"[" * 5_000 + b"]" * 5_000])


def places(document: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where in a JSON document there is a value."""
    below: Iterable[tuple[str | int, object]] = ()
    if isinstance(document, dict):
        below = document.items()
    elif isinstance(document, list):
        below = enumerate(document)
    return [path, *(place for key, value in below for place in places(value, (*path, key)))]


def replaced(document: object, path: tuple[str | int, ...], value: object) -> object:
    """A JSON document with one value exchanged."""
    if not path:
        return value
    key, *rest = path
    if isinstance(document, dict):
        return {**document, key: replaced(document[key], tuple(rest), value)}
    assert isinstance(document, list)
    return [replaced(item, tuple(rest), value) if at == key else item for at, item in enumerate(document)]


WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    2**63,
    10**400,
    1e300,
    "",
    "text",
    "\ud800",
    [],
    [[]],
    {},
    {"type": 1},
    [{"text": 5}],
)


@every_recording
def test_a_wrong_value_anywhere_in_a_real_line_is_survived(name: str, case: str) -> None:
    for line in filter(is_json, output(name, case)):
        document = json.loads(line)
        for path in places(document):
            parser = new_parser(name)
            for value in WRONG:
                changed = json.dumps(replaced(document, path, value)).encode()
                check_sane(parser, parser.feed(changed))


@st.composite
def wrong_fields(draw: st.DrawFn, name: str) -> bytes:
    """A real line with a value of another type or size somewhere."""
    document = json.loads(draw(st.sampled_from([line for line in REAL[name] if is_json(line)] or [b"{}"])))
    path = draw(st.sampled_from(places(document)))
    return json.dumps(replaced(document, path, draw(VALUES))).encode()


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """A real line, cut off or with other text in its middle."""
    line = draw(st.sampled_from(REAL[name])).decode()
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, min(len(line), start + 40)))
    tail = "" if draw(st.booleans()) else line[end:]
    return (line[:start] + draw(st.text(max_size=8)) + tail).encode()


def any_lines(name: str) -> st.SearchStrategy[list[bytes]]:
    real = st.sampled_from(REAL[name])
    noise = st.binary(max_size=60) | st.text(max_size=40).map(str.encode) | DEEP
    return st.lists(real | noise | wrong_fields(name) | damaged(name), max_size=12)


@every_runtime
@given(data=st.data())
def test_no_input_makes_a_parser_raise(name: str, data: st.DataObject) -> None:
    parser = new_parser(name)
    updates = []
    for line in data.draw(any_lines(name)):
        updates += list(parser.feed(line))
        parser.hear(line)
    parser.finish(data.draw(st.none() | st.binary(max_size=60) | wrong_fields(name)))
    check_sane(parser, updates)


@every_runtime
def test_bytes_that_are_no_text_do_not_spoil_the_events(name: str) -> None:
    for line in output(name, "tool"):
        for text in (b"written", b"f.txt"):
            parser = new_parser(name)
            check_sane(parser, parser.feed(line.replace(text, b"\xff\x80")))


@pytest.mark.parametrize("name", TELL_BY_LINE)
@given(noise=st.lists(st.binary(max_size=80) | st.text(max_size=40).map(str.encode) | DEEP, max_size=6))
def test_garbage_never_loses_the_lines_that_follow(name: str, noise: list[bytes]) -> None:
    expected, clean = play(name, "tool")
    parser = new_parser(name)
    assert [update for line in noise for update in parser.feed(line)] == []
    updates, _ = play(name, "tool", parser)
    assert [msgspec.json.encode(update) for update in updates] == [msgspec.json.encode(u) for u in expected]
    assert conclude(parser.state, 0, "") == conclude(clean.state, 0, "")


@every_runtime
@pytest.mark.parametrize(
    "leftover", [b"", b"{}", b"[]", b"null", b'{"modelMetrics":3}', b"\xff\xfe", b"{" * 9999]
)
def test_an_odd_leftover_costs_no_more_than_the_usage(name: str, leftover: bytes) -> None:
    parser = new_parser(name)
    feed(parser, fixture(name, "text"))
    parser.finish(leftover)
    assert parser.state.text == "The answer is 42 🐎."
    check_sane(parser, ())
