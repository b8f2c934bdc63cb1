"""The recorded transcripts of real programs: what they tell, and that reading goes on where it stopped."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.transcript_world import (
    DATABASES,
    FIRST,
    FIXTURES,
    LINES,
    RUNTIMES,
    SECOND,
    TOLD,
    WORK,
    build,
    lay_out,
    read_all,
    statements,
    total,
    transcripts,
)

from remuda.runtimes.transcripts import Answer, Mark, Source, Wanted


@pytest.fixture(params=RUNTIMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def main_file(name: str) -> Path:
    """The largest file of a recording: the conversation itself."""
    return max(
        (path for path in (FIXTURES / name).rglob("*") if path.is_file()), key=lambda p: p.stat().st_size
    )


def test_every_token_of_the_server_is_told_once(name: str, tmp_path: Path) -> None:
    places, known = lay_out(name, tmp_path), transcripts(name)
    answers: dict[str, Answer] = {}
    for source in known.sources(places):
        answers |= read_all(known, source)[0]
    assert (len(answers), total(answers)) == (TOLD[name].answers, TOLD[name].usage)
    assert {answer.model for answer in answers.values()} <= {TOLD[name].model}
    assert len({answer.session for answer in answers.values()}) <= 1
    assert all(answer.session for answer in answers.values())
    assert all(1_790_000_000_000 < answer.time < 2_500_000_000_000 for answer in answers.values())
    folder = Path("/var/tmp/remuda-transcript/home/.openclaw/workspace") if name == "openclaw" else WORK
    assert {answer.project for answer in answers.values()} <= {str(folder)}


def test_a_summary_of_one_file_says_the_same(name: str, tmp_path: Path) -> None:
    places, known = lay_out(name, tmp_path), transcripts(name)
    sums = [known.summary(source.path) for source in known.sources(places)]
    told = [each for each in sums if each and each.answers]
    assert sum(each.answers for each in told) == TOLD[name].answers
    assert sum(each.input_tokens for each in told) == TOLD[name].usage.input_tokens
    assert known.summary(tmp_path / "nowhere") is None


def test_the_prompts_are_told_as_they_were_given(name: str, tmp_path: Path) -> None:
    places, known = lay_out(name, tmp_path), transcripts(name)
    found = known.find(places, Wanted(cwd=WORK))
    assert found is not None
    prompts = known.prompts(found, Mark())
    assert prompts.texts == (FIRST, SECOND)
    assert known.prompts(found, prompts.mark).texts == ()


def test_a_session_is_found_by_its_id(name: str, tmp_path: Path) -> None:
    places, known = lay_out(name, tmp_path), transcripts(name)
    found = known.find(places, Wanted(cwd=WORK))
    assert found is not None
    assert found.session
    again = known.find(places, Wanted(session=found.session))
    assert again is not None
    assert (again.path, again.session) == (found.path, found.session)
    assert known.find(places, Wanted(session="another-one")) is None
    assert known.find(places, Wanted(cwd=WORK, since=4_000_000_000.0)) is None


def test_another_folder_has_no_session(name: str, tmp_path: Path) -> None:
    places, known = lay_out(name, tmp_path), transcripts(name)
    if name != "openclaw":
        assert known.find(places, Wanted(cwd=tmp_path)) is None


def test_what_is_not_there_is_an_empty_answer(name: str, tmp_path: Path) -> None:
    known, nowhere = transcripts(name), Source(tmp_path / "nowhere", "some-session")
    assert known.read(nowhere, Mark()).trouble
    assert known.prompts(nowhere, Mark()).texts == ()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("lines", LINES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_that_grows_is_read_to_the_same_end(lines: str, place: Path, data: st.DataObject) -> None:
    """Wherever the first look ended, in the middle of a line and of a character, too."""
    known, whole = transcripts(lines), main_file(lines).read_bytes()
    source = Source(place / f"{lines}.part", "session", "/project")
    source.path.write_bytes(whole)
    expected, _ = read_all(known, source)
    source.path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    first, mark = read_all(known, source)
    source.path.write_bytes(whole)
    rest, _ = read_all(known, source, mark if known.kind == "lines" else Mark())
    assert first | rest == expected


@pytest.mark.parametrize("database", DATABASES)
def test_a_database_that_grows_is_read_to_the_same_end(database: str, tmp_path: Path) -> None:
    known, script = transcripts(database), statements(main_file(database).read_text())
    build("".join(script), tmp_path / "whole.db")
    expected, _ = read_all(known, Source(tmp_path / "whole.db"))
    tables = sum(statement.startswith("CREATE") for statement in script)
    for cut in range(tables, len(script) + 1):
        source = Source(tmp_path / f"{cut}.db")
        build("".join(script[:cut]), source.path)
        first, mark = read_all(known, source)
        build("".join(script[cut:]), source.path)
        rest, _ = read_all(known, source, mark)
        assert {key: answer.usage for key, answer in (first | rest).items()} == {
            key: answer.usage for key, answer in expected.items()
        }


@pytest.mark.parametrize("lines", LINES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_bytes_make_a_reader_raise(lines: str, place: Path, data: st.DataObject) -> None:
    known, whole = transcripts(lines), main_file(lines).read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    damage = data.draw(st.binary(max_size=40))
    path = place / f"{lines}.damaged"
    path.write_bytes(whole[:at] + damage + whole[at + data.draw(st.integers(0, 40)) :])
    assert known.read(Source(path), Mark()).trouble == ""
    known.prompts(Source(path, "session"), Mark())


@pytest.mark.parametrize("lines", LINES)
@settings(max_examples=40, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), st.lists
    )
)
def test_no_shape_of_a_field_makes_a_reader_raise(lines: str, place: Path, value: object) -> None:
    """Lines whose fields are of other kinds than they were ever seen."""
    path = place / f"{lines}.shape"
    fields = ("type", "role", "id", "timestamp", "sessionId", "cwd", "model", "tokens", "content", "usage")
    whole = {"type": "message", "message": {"role": "assistant"}}
    rows = [{**whole, field: value} for field in fields]
    rows += [{"type": kind, "tokens": {"input": value}, "content": value} for kind in ("gemini", "user")]
    rows += [
        {"type": "message", "message": {"role": role, "usage": value, "content": value}}
        for role in ("user", "assistant")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    transcripts(lines).read(Source(path), Mark())
    transcripts(lines).prompts(Source(path, "session"), Mark())


@pytest.mark.parametrize("database", DATABASES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_damage_to_a_database_makes_a_reader_raise(
    database: str, place: Path, data: st.DataObject
) -> None:
    known, path = transcripts(database), place / f"{database}.damaged"
    if not path.with_suffix(".whole").exists():
        build(main_file(database).read_text(), path.with_suffix(".whole"))
    whole = path.with_suffix(".whole").read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    path.write_bytes(
        whole[:at] + data.draw(st.binary(max_size=200)) + whole[at + data.draw(st.integers(0, 300)) :]
    )
    known.read(Source(path), Mark())
    known.prompts(Source(path, "session"), Mark())
