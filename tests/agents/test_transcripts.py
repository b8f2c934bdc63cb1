"""What the real programs' transcripts tell: every token that the model's server counted, once, and every
prompt as it was given."""

from __future__ import annotations

import json

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import REMUDA, Json, Lab, arrives

from remuda.core.paths import folders
from remuda.prompts import selection
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry
from remuda.runtimes.transcripts import Mark, Places, Source, Transcripts, Wanted

PROMPT = 'Write a file: "ü" \\ and\n\n  two more lines\t— 🐎.'
AGAIN = "And what does it say?"
CALLS = (exchange.Usage(1000, 50, 600, 100), exchange.Usage(1100, 30, 1000, 20))
LATER = exchange.Usage(901, 31, 11, 3)
FIELDS = ("answers", "input_tokens", "output_tokens", "cached_read_tokens", "cached_write_tokens")


@pytest.fixture(params=[name for name, known in registry.transcripts().items() if known.headless])
def told(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A clean home for each runtime whose transcripts are known."""
    return make_lab(registry.get(request.param))


def transcripts(lab: Lab) -> Transcripts:
    assert lab.runtime.transcripts is not None
    return lab.runtime.transcripts


def usage(lab: Lab, *options: str) -> Json:
    ended = lab.call([str(REMUDA), "usage", "--json", *options])
    assert ended.code == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert isinstance(report, dict)
    assert (report["skipped_lines"], report["damaged"]) == (0, [])
    return report


def counted(lab: Lab, *said: exchange.Usage) -> dict[str, int]:
    """What the server said, as the ledger counts: input that came from no cache. Only one dialect tells it
    like that; and not every runtime's way to the model carries all of it."""
    conduct = lab.runtime.conduct
    (api,) = {heard.api for heard in lab.server.heard() if heard.api}
    reads = sum(each.cache_read for each in said) if conduct.cache_reads else 0
    writes = sum(each.cache_write for each in said) if conduct.cache_writes else 0
    whole = sum(each.input for each in said)
    plain = whole if api == "anthropic-messages" else whole - reads - writes
    answers = 1 if transcripts(lab).counters else len(said)
    return dict(zip(FIELDS, (answers, plain, sum(each.output for each in said), reads, writes), strict=True))


def part(row: Json) -> dict[str, int]:
    return {field: row[field] for field in FIELDS}


def play(lab: Lab) -> tuple[exchange.Usage, ...]:
    """Let the model have a file written; what its server will count."""
    if reply := lab.runtime.conduct.edit_reply:
        lab.play(Step(text=reply.format(path="f.txt", content="written\n"), usage=CALLS[0]))
        return CALLS[:1]
    command = "echo written > f.txt && cat f.txt"
    lab.play(
        Step(thought="Hm.", tool="shell", input={"command": command}, usage=CALLS[0]),
        Step(text="It says: written", usage=CALLS[1]),
    )
    return CALLS


def found(lab: Lab, session: str | None) -> Source:
    kept = folders(lab.env).data / "sessions"
    places = Places(environ=lab.env, kept=kept, folders=(lab.cwd,))
    source = transcripts(lab).find(places, Wanted(session=session, cwd=lab.cwd))
    assert source is not None
    return source


def test_the_ledger_has_what_the_server_counted(told: Lab) -> None:
    """Two turns of one session: tokens, session, folder and model; and reading again adds nothing."""
    lab = told
    said = play(lab)
    first = lab.run(PROMPT, *lab.bypass)
    assert first.result.error is None
    if not transcripts(lab).tokens:
        assert usage(lab)["total"]["total_tokens"] == 0
        return
    assert part(usage(lab)["total"]) == counted(lab, *said)
    if lab.runtime.conduct.resume:
        lab.play(Step(text="It still says: written", usage=LATER))
        assert lab.run(AGAIN, "--session", first.session, *lab.bypass).result.error is None
        said = (*said, LATER)
    report = usage(lab, "--by", "session")
    assert part(report["total"]) == counted(lab, *said)
    (row,) = report["rows"]
    assert (row["name"], row["runtimes"]) == (first.result.runtime_session, [lab.runtime.name])
    assert usage(lab, "--by", "session") == report
    assert [each["name"] for each in usage(lab, "--by", "project")["rows"]] == [str(lab.cwd)]
    (model,) = usage(lab, "--by", "model")["rows"]
    assert lab.server.heard()[-1].model in model["name"] or not lab.runtime.conduct.tells_model


def test_prompts_are_told_as_they_were_given(told: Lab) -> None:
    """The proof that a text has arrived; what was there before a mark is not told again."""
    lab = told
    sent = lab.runtime.disarm(PROMPT)
    mode = selection.select(lab.runtime, "auto", len(sent.encode())).mode
    how = lab.runtime.channel(mode).arrives
    first = lab.run(PROMPT, *lab.bypass)
    assert first.result.error is None
    source = found(lab, first.result.runtime_session)
    prompts = transcripts(lab).prompts(source, Mark())
    (text,) = prompts.texts
    assert arrives(how, text, sent)
    assert transcripts(lab).prompts(source, prompts.mark).texts == ()
    if lab.runtime.conduct.resume:
        assert lab.run(AGAIN, "--session", first.session, *lab.bypass).result.error is None
        (text,) = transcripts(lab).prompts(source, prompts.mark).texts
        assert arrives(how, text, AGAIN)
    assert found(lab, None).path == source.path


def test_a_fork_of_a_session_counts_once(claude: Lab) -> None:
    """Claude Code copies what was said before into the new session's file, under the new session's id."""
    claude.play(Step(text="One.", usage=CALLS[0]))
    first = claude.run("Question one.")
    claude.play(Step(text="Two.", usage=LATER))
    forked = claude.run("Question two.", "--session", first.session, extra=("--fork-session",))
    copy = found(claude, forked.result.runtime_session)
    assert transcripts(claude).prompts(copy, Mark()).texts == ("Question one.", "Question two.")
    report = usage(claude, "--by", "session")
    assert part(report["total"]) == counted(claude, CALLS[0], LATER)
    assert {row["name"]: row["output_tokens"] for row in report["rows"]} == {
        first.result.runtime_session: CALLS[0].output,
        forked.result.runtime_session: LATER.output,
    }
