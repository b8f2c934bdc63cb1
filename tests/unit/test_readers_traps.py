"""What is easily counted twice or not at all: forks, continued sessions, changing rows; where files lie."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.unit.transcript_world import FIRST, WORK, build, lay_out, read_all, statements, total, transcripts

from remuda.core.events import Usage
from remuda.runtimes.openclaw.compressed import LARGEST, expand
from remuda.runtimes.transcripts import Mark, Places, Source, Wanted


def the_source(name: str, places: Places) -> Source:
    """The one transcript of a recording that has answers in it."""
    known = transcripts(name)
    (source,) = (each for each in known.sources(places) if read_all(known, each)[0] or not known.tokens)
    return source


def database(name: str, folder: Path) -> Path:
    return the_source(name, lay_out(name, folder)).path


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_fork_of_a_pi_session_repeats_its_answers(tmp_path: Path) -> None:
    places, known = lay_out("pi", tmp_path), transcripts("pi")
    source = the_source("pi", places)
    header, *rest = source.path.read_text().splitlines(keepends=True)
    forked = json.loads(header) | {
        "id": "11111111-aaaa-4aaa-8aaa-111111111111",
        "parentSession": str(source.path),
    }
    fork = source.path.with_name(f"2026-11-19T00-00-00-000Z_{forked['id']}.jsonl")
    fork.write_text("".join((json.dumps(forked) + "\n", *rest)))
    assert read_all(known, Source(fork))[0].keys() == read_all(known, source)[0].keys()
    assert len(list(known.sources(places))) == 2


def test_pi_sessions_lie_where_settings_say(tmp_path: Path) -> None:
    known = transcripts("pi")
    line = '{"type":"session","id":"one","cwd":"/work"}\n'
    elsewhere, agent = tmp_path / "elsewhere", tmp_path / "agent"
    for folder in (elsewhere, agent / "sessions" / "--work--"):
        folder.mkdir(parents=True)
        (folder / "2026_one.jsonl").write_text(line)
    named = Places(environ={"HOME": "/", "PI_CODING_AGENT_SESSION_DIR": str(elsewhere)})
    moved = Places(environ={"HOME": "/", "PI_CODING_AGENT_DIR": str(agent)})
    assert [source.path.parent for source in known.sources(named)] == [elsewhere]
    assert known.find(named, Wanted(cwd=Path("/work"))) is not None
    assert [source.path.parent.name for source in known.sources(moved)] == ["--work--"]
    (agent / "settings.json").write_text(json.dumps({"sessionDir": str(elsewhere)}))
    assert [source.path.parent for source in known.sources(moved)] == [elsewhere]


def test_a_gemini_answer_is_one_however_often_it_is_written(tmp_path: Path) -> None:
    """It is written again when its tools have run, and all of it when a session is continued."""
    known, path = transcripts("gemini"), tmp_path / "tmp" / "slug" / "chats" / "session-1-aaaaaaaa.jsonl"
    path.parent.mkdir(parents=True)
    (path.parent.parent / ".project_root").write_text("/work\n")
    said = {"id": "q", "type": "user", "content": [{"text": "Read @it"}, {"text": "--- a file's text ---"}]}
    said["displayContent"] = [{"text": "Read @it"}]
    answered = {"id": "r", "type": "user", "content": [{"functionResponse": {"id": "call"}}]}
    plain = {"id": "p", "type": "user", "content": [{"text": "A note. "}, {"text": "And more"}]}
    answer = {
        "id": "a",
        "type": "gemini",
        "model": "m",
        "timestamp": "2026-01-01T00:00:00Z",
        "tokens": {"input": 100, "output": 20, "cached": 30, "thoughts": 5, "tool": 7},
    }
    lines = (
        {"sessionId": "aaaaaaaa-1", "kind": "main"},
        said,
        answer,
        answer | {"toolCalls": []},
        answered,
        plain,
        {"sessionId": "aaaaaaaa-1", "kind": "main"},
        {"$set": {"messages": [said, answer]}},
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers, _ = read_all(known, Source(path))
    (told,) = answers.values()
    assert told.usage == Usage(77, 25, 30, 0, 5)
    assert (told.project, told.session) == ("/work", "aaaaaaaa-1")
    assert known.prompts(Source(path), Mark()).texts == ("Read @it", "A note. And more")


def test_an_opencode_fork_repeats_its_answers(tmp_path: Path) -> None:
    """Under other ids, in another session, with the same times."""
    path, known = database("opencode", tmp_path), transcripts("opencode")
    before, _ = read_all(known, Source(path))
    change(
        path,
        "INSERT INTO message SELECT 'f' || id, 'fork', time_created, time_updated + 9, data FROM message",
    )
    assert read_all(known, Source(path))[0].keys() == before.keys()


def test_an_opencode_answer_is_told_when_it_is_complete(tmp_path: Path) -> None:
    path, known = database("opencode", tmp_path), transcripts("opencode")
    before, mark = read_all(known, Source(path))
    now = mark.position + 500
    data = {
        "role": "assistant",
        "modelID": "m",
        "cost": 0.25,
        "time": {"created": now},
        "tokens": {"input": 0},
    }
    change(path, "INSERT INTO message VALUES ('new', 's', ?, ?, ?)", now, now, json.dumps(data))
    begun, mark = read_all(known, Source(path), mark)
    assert not begun.keys() - before.keys()
    data |= {"time": {"created": now, "completed": now + 90}}
    data |= {"tokens": {"input": 5, "output": 6, "reasoning": 2, "cache": {"read": 3, "write": 4}}}
    change(path, "UPDATE message SET data = ?, time_updated = ? WHERE id = 'new'", json.dumps(data), now + 90)
    ended, _ = read_all(known, Source(path), mark)
    (key,) = ended.keys() - before.keys()
    assert (ended[key].usage, ended[key].cost) == (Usage(5, 8, 3, 4, 2), 0.25)


def test_opencode_rows_that_are_no_json_are_counted(tmp_path: Path) -> None:
    path, known = database("opencode", tmp_path), transcripts("opencode")
    change(path, "INSERT INTO message VALUES ('bad', 's', 1, 1, 'not json')")
    batch = known.read(Source(path), Mark())
    assert (batch.skipped, len(batch.answers), batch.trouble) == (1, 3, "")


def test_opencode_files_lie_where_variables_say(tmp_path: Path) -> None:
    known = transcripts("opencode")
    data = tmp_path / "data" / "opencode"
    data.mkdir(parents=True)
    for name in ("opencode.db", "opencode-dev.db", "mine.db"):
        (data / name).touch()
    environ = {"HOME": "/", "XDG_DATA_HOME": str(tmp_path / "data")}
    names = [source.path.name for source in known.sources(Places(environ=environ))]
    assert names == ["opencode-dev.db", "opencode.db"]
    environ |= {"OPENCODE_DB": "mine.db"}
    assert [source.path.name for source in known.sources(Places(environ=environ))] == ["mine.db"]


def test_a_hermes_counter_that_grows_is_one_answer(tmp_path: Path) -> None:
    path, known = database("hermes", tmp_path), transcripts("hermes")
    before, mark = read_all(known, Source(path))
    grow = "UPDATE session_model_usage SET input_tokens = input_tokens + 10, last_seen = last_seen + 5"
    change(path, grow)
    after, _ = read_all(known, Source(path), mark)
    assert after.keys() == before.keys()
    assert total(after).input_tokens == total(before).input_tokens + 10


def test_hermes_prompts_that_are_stored_anew_are_not_new(tmp_path: Path) -> None:
    """A session that is continued gets new rows for its old messages, with the old times."""
    places, known = lay_out("hermes", tmp_path), transcripts("hermes")
    found = known.find(places, Wanted(cwd=WORK))
    assert found is not None
    mark = known.prompts(found, Mark()).mark
    change(found.path, "UPDATE messages SET id = id + 1000")
    assert known.prompts(found, mark).texts == ()
    later = (
        "INSERT INTO messages (id, session_id, role, content, timestamp) SELECT 9999, id, 'user', 'More', ? "
    )
    change(found.path, later + "FROM sessions", mark.position / 1e6 + 60)
    assert known.prompts(found, mark).texts == ("More",)


def test_hermes_homes_have_profiles(tmp_path: Path) -> None:
    known = transcripts("hermes")
    for folder in (tmp_path, tmp_path / "profiles" / "coder", tmp_path / "kept" / "one"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.db").touch()
    for home in (tmp_path, tmp_path / "profiles" / "coder"):
        places = Places(environ={"HERMES_HOME": str(home)}, kept=tmp_path / "kept")
        found = [source.path.parent.name for source in known.sources(places)]
        assert found == [tmp_path.name, "coder", "one"]


def test_openclaw_row_numbers_that_are_used_again_are_noticed(tmp_path: Path) -> None:
    path, known = database("openclaw", tmp_path), transcripts("openclaw")
    before, mark = read_all(known, Source(path))
    event = {
        "type": "message",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {
            "role": "assistant",
            "model": "m",
            "responseId": "new",
            "usage": {"input": 1, "output": 2},
        },
    }
    change(path, "DELETE FROM transcript_events WHERE rowid >= ?", mark.position)
    compact = json.dumps(event, separators=(",", ":"))
    insert = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES ('s', ?, ?, 5)"
    change(path, insert, 1, compact)
    after, mark = read_all(known, Source(path), mark)
    assert after["new"].usage == Usage(1, 2)
    assert len(before) == 2
    assert known.read(Source(path), mark).answers == []


def test_openclaw_events_are_read_in_portions(tmp_path: Path) -> None:
    path, known = database("openclaw", tmp_path), transcripts("openclaw")
    many = """
        WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4500)
        INSERT INTO transcript_events (session_id, seq, created_at, event_json) SELECT 's', n, n,
        '{"type":"message","message":{"role":"assistant","responseId":"r' || n || '","usage":{"input":1}}}'
        FROM c
    """
    change(path, many)
    first = known.read(Source(path), Mark())
    assert first.more
    assert len(first.answers) < 4500
    assert len(read_all(known, Source(path))[0]) == 4502


def test_openclaw_long_events_that_cannot_be_expanded_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database("openclaw", tmp_path)
    monkeypatch.setattr("remuda.runtimes.openclaw.usage.expand", lambda data: None)
    batch = transcripts("openclaw").read(Source(path), Mark())
    assert (batch.skipped, len(batch.answers)) == (1, 1)


def test_damaged_compressed_bytes_are_nothing() -> None:
    assert not expand(b"")
    assert expand(b"\x28\xb5\x2f\xfd\x00\x01") is None
    assert expand(b"x" * (LARGEST + 1)) is None


def test_openclaw_state_lies_where_variables_say(tmp_path: Path) -> None:
    known = transcripts("openclaw")
    below = Path("agents", "main", "agent", "openclaw-agent.sqlite")
    for folder in (".openclaw", ".openclaw-work", "state"):
        (tmp_path / folder / below).parent.mkdir(parents=True)
        (tmp_path / folder / below).touch()
    home = {"HOME": str(tmp_path)}
    for environ, folder in (
        (home, ".openclaw"),
        (home | {"OPENCLAW_PROFILE": "work"}, ".openclaw-work"),
        (home | {"OPENCLAW_STATE_DIR": str(tmp_path / "state")}, "state"),
    ):
        assert [source.path for source in known.sources(Places(environ=environ))] == [
            tmp_path / folder / below
        ]


HISTORY = """
# aider chat started at 2026-01-02 03:04:05

> Aider v0.86.2  
> Main model: gpt-5.4 with diff edit format  
> Weak model: gpt-5.4-mini  

#### one  
####   two  

#### A heading of the reply
> Tokens: 5 sent, 5 received.
> quoted: Tokens: 9 sent, 9 received.  

> Tokens: 12k sent, 1.5k cache write, 2.0k cache hit, 999 received.  
> Cost: $0.05 message, $0.15 session.  

#### three  

> Tokens: 1.2k sent, 7 received. Cost: $0.0012 message, $0.15 session.  
"""  # noqa: W291


def test_aider_tells_rounded_numbers_and_its_own_cost(tmp_path: Path) -> None:
    known, top = transcripts("aider"), tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "below").mkdir()
    (top / ".aider.chat.history.md").write_text(HISTORY)
    places = Places(environ={}, folders=(top / "below", top))
    (source,) = known.sources(places)
    first, second = read_all(known, source)[0].values()
    assert (first.usage, first.cost) == (Usage(8500, 999, 2000, 1500), 0.05)
    assert (second.usage, second.cost) == (Usage(1200, 7), 0.0012)
    assert (first.model, first.project) == ("gpt-5.4", str(top))
    found = known.find(Places(environ={}), Wanted(cwd=top / "below"))
    assert found == source
    assert known.prompts(source, Mark()).texts == ("one\n  two", "three")


def test_an_aider_history_whose_first_line_is_cut_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text("#### the end of a li\n#### ne  \n\n#### whole  \n#### prompt  \n")
    assert transcripts("aider").prompts(Source(path), Mark()).texts == ("whole\nprompt",)


def test_an_aider_history_that_is_named_is_found(tmp_path: Path) -> None:
    path = tmp_path / "history.md"
    path.write_text(HISTORY)
    places = Places(environ={"AIDER_CHAT_HISTORY_FILE": str(path)})
    assert [source.path for source in transcripts("aider").sources(places)] == [path]


def test_amplifier_tells_prompts_and_no_tokens(tmp_path: Path) -> None:
    places, known = lay_out("amplifier", tmp_path), transcripts("amplifier")
    source = the_source("amplifier", places)
    mark = known.prompts(source, Mark()).mark
    with source.path.open("a") as file:
        file.write('{"role":"assistant","content":[]}\n{"role":"tool","content":"x"}\n')
        file.write('{"role":"user","content":[{"type":"text","text":"More"}]}\n{"role":"us')
    assert known.prompts(source, mark).texts == ("More",)
    assert not known.tokens
    assert known.read(source, Mark()).answers == []


def test_statements_hold_line_ends_within_texts() -> None:
    """The recordings are cut into statements, not lines."""
    script = f"INSERT INTO t VALUES ('{FIRST}');\nCREATE TABLE t (n);\n"
    assert [statement[:6] for statement in statements(script)] == ["CREATE", "INSERT"]
    build("".join(statements(script)), Path(":memory:"))
