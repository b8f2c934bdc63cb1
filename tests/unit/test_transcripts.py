"""Reading transcripts: by any steps, through any damage, and from files and databases that are in use."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.claude_history import answer, said

from remuda.core.events import Usage
from remuda.runtimes import registry, transcripts
from remuda.runtimes.transcripts import (
    Answer,
    Mark,
    Places,
    Source,
    Transcripts,
    Wanted,
    collect,
)

CLAUDE = registry.transcripts()["claude"]
CODEX = registry.transcripts()["codex"]
COPILOT = registry.transcripts()["copilot"]

DAMAGE = ("{", '{"type":"assistant","message":', "\x00\x00\x00", '{"type":7}', "[1,2]", '"text"', "nonsense")


def everything(kind: Transcripts, source: Source, mark: Mark | None = None) -> tuple[list[Answer], Mark, int]:
    """All that is behind a mark."""
    answers: list[Answer] = []
    at, skipped, more = mark or Mark(), 0, True
    while more:
        batch = kind.read(source, at)
        assert batch.trouble == ""
        answers += batch.answers
        at, skipped, more = batch.mark, skipped + batch.skipped, batch.more
    return answers, at, skipped


def total(answers: list[Answer]) -> Usage:
    known: dict[str, Answer] = {}
    collect(known, answers)
    return sum((each.usage for each in known.values()), Usage())


numbers = st.integers(0, 1000)
answers = st.builds(answer, st.sampled_from("abcdefgh"), st.tuples(numbers, numbers, numbers, numbers))
others = st.builds(said, st.text(max_size=30))
damaged = st.sampled_from(DAMAGE).map(lambda line: line + "\n")
files = st.lists(st.one_of(answers, others, damaged, st.just("\n")), max_size=25).map("".join)


@settings(max_examples=150, deadline=None)
@given(files, st.lists(st.integers(0, 5000), max_size=8), st.integers(50, 4000))
def test_any_steps_lead_to_the_same(text: str, cuts: list[int], chunk: int) -> None:
    """However a file grows, and however little of it is read at once."""
    data = text.encode()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "s1.jsonl")
        path.write_bytes(data)
        whole, _, skipped = everything(CLAUDE, Source(path))
        patch.setattr(transcripts, "CHUNK", chunk)
        path.write_bytes(b"")
        mark, parts, lost, end = Mark(), [], 0, 0
        for cut in sorted({*(min(cut, len(data)) for cut in cuts), len(data)}):
            with path.open("ab") as stream:
                stream.write(data[end:cut])
            end = cut
            found, mark, more_lost = everything(CLAUDE, Source(path), mark)
            parts += found
            lost += more_lost
        assert total(parts) == total(whole)
        assert lost == skipped == sum(line in DAMAGE for line in text.split("\n"))


def test_damaged_lines_cost_nothing_but_themselves(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(answer("a") + "{broken\n" + answer("b") + "\x00\x00\n" + answer("c"))
    found, _, skipped = everything(CLAUDE, Source(path))
    assert ([each.key for each in found], skipped) == (["msg_a:req_a", "msg_b:req_b", "msg_c:req_c"], 2)


def test_a_half_written_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    line = answer("b")
    path.write_text(answer("a") + line[:-20])
    first, mark, skipped = everything(CLAUDE, Source(path))
    assert (len(first), skipped) == (1, 0)
    path.write_text(answer("a") + line)
    second, mark, skipped = everything(CLAUDE, Source(path), mark)
    assert ([each.key for each in second], skipped) == (["msg_b:req_b"], 0)
    assert everything(CLAUDE, Source(path), mark)[0] == []


def test_a_last_line_without_its_end_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(answer("a").rstrip())
    first, mark, _ = everything(CLAUDE, Source(path))
    path.write_text(answer("a") + answer("b"))
    second, _, skipped = everything(CLAUDE, Source(path), mark)
    assert ([each.key for each in first + second], skipped) == (["msg_a:req_a", "msg_b:req_b"], 0)


def test_an_endless_line_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "CHUNK", 600)
    monkeypatch.setattr(transcripts, "LONGEST", 2000)
    path = tmp_path / "s1.jsonl"
    path.write_text(answer("a") + said("x" * 9000) + answer("b"))
    found, _, skipped = everything(CLAUDE, Source(path))
    assert [each.key for each in found] == ["msg_a:req_a", "msg_b:req_b"]
    assert skipped > 0
    assert CLAUDE.prompts(Source(path), Mark()).texts == ()


def test_the_fullest_telling_of_an_answer_counts(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(answer("a", (5, 1, 0, 0)) + answer("a", (5, 90, 0, 0)) + answer("a", (5, 7, 0, 0)))
    summary = CLAUDE.summary(path)
    assert summary is not None
    assert (summary.input_tokens, summary.output_tokens, summary.answers) == (5, 90, 1)


def test_a_summary_has_the_documented_fields_and_more(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(
        answer("a", (1, 2, 3, 4)) + "{\n" + answer("b", (10, 20, 30, 40), model="other", cost=0.5)
    )
    summary = CLAUDE.summary(path)
    assert summary == transcripts.TranscriptSummary(
        input_tokens=11,
        output_tokens=22,
        model="other",
        cached_read_tokens=33,
        cached_write_tokens=44,
        cost_usd=0.5,
        answers=2,
        skipped=1,
        models=("claude-sonnet-4-5", "other"),
    )


@pytest.mark.parametrize("kind", registry.transcripts().values(), ids=list(registry.transcripts()))
def test_what_is_not_there_is_none(kind: Transcripts, tmp_path: Path) -> None:
    assert kind.summary(tmp_path / "nothing.jsonl") is None
    assert kind.prompts(Source(tmp_path / "nothing.jsonl"), Mark()).texts == ()
    assert list(kind.sources(Places(environ={}))) == []
    assert list(kind.sources(Places(environ={"HOME": str(tmp_path)}))) == []
    assert kind.find(Places(environ={"HOME": str(tmp_path)}), Wanted(session="s", cwd=tmp_path)) is None
    assert kind.find(Places(environ={}), Wanted(cwd=tmp_path)) is None


@pytest.mark.parametrize("name", registry.transcripts())
def test_the_registry_and_the_runtime_agree(name: str) -> None:
    assert registry.get(name).transcripts is registry.transcripts()[name]


def test_every_runtime_has_a_reader() -> None:
    assert set(registry.transcripts()) == set(registry.names())


def test_only_the_users_own_words_are_prompts(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]}
    blocks = {
        "role": "user",
        "content": [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}],
    }
    path.write_text(
        said("one\n  ü")
        + json.dumps({"type": "user", "message": result})
        + "\n"
        + said("a note", isMeta=True)
        + said("to a subagent", isSidechain=True)
        + json.dumps({"type": "user", "message": blocks})
        + "\n"
    )
    assert CLAUDE.prompts(Source(path), Mark()).texts == ("one\n  ü", "two parts")


def codex_event(total_tokens: int, last: int) -> str:
    usage = {"input_tokens": last, "cached_input_tokens": 4, "output_tokens": 1, "total_tokens": last + 1}
    info = {"total_token_usage": {"total_tokens": total_tokens}, "last_token_usage": usage}
    payload = {"type": "token_count", "info": info}
    return json.dumps({"timestamp": "2026-11-01T00:00:00Z", "type": "event_msg", "payload": payload}) + "\n"


def codex_record(name: str, last: int) -> str:
    usage = {"input_tokens": last, "cached_input_tokens": 4, "output_tokens": 1}
    payload = {"response_id": name, "usage": usage}
    return json.dumps({"timestamp": "t", "type": "token_usage_record", "payload": payload}) + "\n"


def test_codex_totals_are_never_added_up(tmp_path: Path) -> None:
    """Without records: what the last call took, and an event that is told again is none."""
    path = tmp_path / "rollout-2026-11-01T00-00-00-01a1ec3a-1e92-7f73-8bf1-0852a2f3eeb6.jsonl"
    path.write_text(codex_event(11, 10) + codex_event(11, 10) + codex_event(32, 20))
    summary = CODEX.summary(path)
    assert summary is not None
    assert (summary.input_tokens, summary.cached_read_tokens, summary.output_tokens) == (22, 8, 2)


def test_codex_records_win_over_events(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-11-01T00-00-00-01a1ec3a-1e92-7f73-8bf1-0852a2f3eeb6.jsonl"
    path.write_text(
        codex_record("r1", 10) + codex_event(11, 10) + codex_record("r2", 20) + codex_event(32, 20)
    )
    summary = CODEX.summary(path)
    assert summary is not None
    assert (summary.input_tokens, summary.answers) == (22, 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)), max_size=10))
@pytest.mark.parametrize("kind", registry.transcripts().values(), ids=list(registry.transcripts()))
def test_no_content_makes_a_reader_raise(kind: Transcripts, lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s1.jsonl")
        path.write_bytes(b"\n".join(lines))
        kind.summary(path)
        kind.prompts(Source(path), Mark())
