"""``remuda usage`` from the outside, after real turns of the rehearsal agent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.claude_history import answer
from tests.support import Ended, Site, Terminal

import remuda
from remuda.rehearsal.exchange import Usage
from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer

SCRIPT = Scenario("test", (Rule((Step(text="Done.", usage=Usage(100, 20, 30, 40)),)),))


@pytest.fixture
def used(site: Site) -> Iterator[Site]:
    """A site on which the rehearsal agent has answered twice, in two sessions."""
    with RehearsalServer(SCRIPT) as server:
        site.env["REMUDA_ENDPOINT"] = server.url
        for _ in range(2):
            assert site.remuda("run", "--agent", "rehearsal", "hello").code == 0
        yield site


def claude(site: Site, *lines: str) -> Path:
    path = site.folder / ".claude" / "projects" / "-work" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(lines))
    return path


def rows(ended: Ended) -> dict[str, tuple[object, ...]]:
    assert ended.code == 0, ended.stderr
    found = ended.json["rows"]
    assert isinstance(found, list)
    return {row["name"]: (row["answers"], row["input_tokens"], row["output_tokens"]) for row in found}


def test_nothing_is_no_error(site: Site) -> None:
    ended = site.remuda("usage")
    assert (ended.code, ended.stdout) == (0, "")
    assert "No transcripts" in ended.stderr
    assert rows(site.remuda("usage", "--json")) == {}


def test_turns_are_in_the_ledger(used: Site) -> None:
    assert rows(used.remuda("usage", "--json", "--by", "runtime")) == {"rehearsal": (2, 200, 40)}
    assert rows(used.remuda("usage", "--json", "--by", "agent")) == {"rehearsal": (2, 200, 40)}
    assert rows(used.remuda("usage", "--json", "--by", "project")) == {str(used.cwd): (2, 200, 40)}
    assert len(rows(used.remuda("usage", "--json", "--by", "session"))) == 2
    assert used.remuda("run", "--agent", "rehearsal", "once more").code == 0
    assert rows(used.remuda("usage", "--json", "--by", "runtime", "--no-refresh")) == {
        "rehearsal": (2, 200, 40)
    }
    assert rows(used.remuda("usage", "--json", "--by", "runtime")) == {"rehearsal": (3, 300, 60)}


def test_an_unknown_model_is_said_plainly(used: Site) -> None:
    ended = used.remuda("usage", "--by", "model")
    assert "no price for model rehearsal: its cost is not in the total (380 tokens)" in ended.stderr
    assert "unknown" in ended.stdout
    document = used.remuda("usage", "--json").json
    assert document["unpriced"] == [{"model": "rehearsal", "answers": 2, "tokens": 380}]
    total = document["total"]
    assert isinstance(total, dict)
    assert (total["cost_usd"], total["cost_source"]) == (None, "none")


def test_prices_of_ones_own(used: Site) -> None:
    file = used.home / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[usage.prices."rehears*"]\ninput = 1000\noutput = 10_000\ncached_read = 0\n')
    total = used.remuda("usage", "--json").json["total"]
    assert isinstance(total, dict)
    assert total["cost_usd"] == pytest.approx(0.2 + 0.4 + 0.08)
    assert total["cost_source"] == "prices"
    file.write_text('[usage.prices."rehears*"]\ninput = -1\noutput = 1\n')
    ended = used.remuda("usage")
    assert (ended.code, ended.stdout) == (2, "")


def test_a_project_sets_no_prices(site: Site) -> None:
    site.write(".remuda/config.toml", "[usage.prices.x]\ninput = 1\noutput = 1\n")
    assert site.remuda("usage").code == 2


def test_a_time_can_be_chosen(site: Site) -> None:
    claude(site, answer("a", day=1), answer("b", day=2), answer("c", day=3))
    env = {"TZ": "UTC"}
    assert list(rows(site.remuda("usage", "--json", **env))) == ["2026-11-01", "2026-11-02", "2026-11-03"]
    chosen = site.remuda("usage", "--json", "--since", "2026-11-02", "--until", "2026-11-02", **env)
    assert list(rows(chosen)) == ["2026-11-02"]
    far = site.remuda("usage", "--json", TZ="Pacific/Kiritimati")
    assert list(rows(far)) == ["2026-11-02", "2026-11-03", "2026-11-04"]
    wrong = site.remuda("usage", "--since", "yesteryear")
    assert (wrong.code, wrong.stdout) == (2, "")


def test_one_runtime_can_be_chosen(used: Site) -> None:
    claude(used, answer("a", (1, 2, 3, 4)))
    assert rows(used.remuda("usage", "--json", "--by", "runtime", "--runtime", "claude")) == {
        "claude": (1, 1, 2)
    }
    assert set(rows(used.remuda("usage", "--json", "--by", "runtime"))) == {"claude", "rehearsal"}
    assert used.remuda("usage", "--runtime", "nobody").code == 4


def test_only_named_homes_are_read(site: Site) -> None:
    claude(site, answer("a"))
    elsewhere = {"CLAUDE_CONFIG_DIR": str(site.folder / "elsewhere")}
    assert rows(site.remuda("usage", "--json", **elsewhere)) == {}


def test_a_table_for_other_programs(site: Site) -> None:
    claude(site, answer("a", (1, 2, 3, 4), cost=0.125), answer("b", (10, 20, 30, 40), model="mystery"))
    ended = site.remuda("usage", "--csv", "--by", "model")
    table = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [
        (line["model"], line["input_tokens"], line["cost_usd"], line["cost_source"]) for line in table
    ] == [
        ("claude-sonnet-4-5", "1", "0.125", "runtime"),
        ("mystery", "10", "", "none"),
    ]
    assert site.remuda("usage", "--csv", "--json").code == 2


def test_damage_is_counted_and_stops_nothing(site: Site) -> None:
    claude(site, answer("a"), "{broken\n", "\x00\n", answer("b"))
    ended = site.remuda("usage")
    assert ended.code == 0
    assert "skipped 2 damaged lines in 1 file" in ended.stderr


def test_it_is_drawn_in_plain_characters_for_programs(site: Site) -> None:
    claude(site, answer("a"))
    ended = site.remuda("usage")
    assert "\x1b" not in ended.stdout
    assert "█" in ended.stdout


def test_no_color_on_a_terminal(site: Site) -> None:
    claude(site, answer("a"))
    for env, bold in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Terminal(["remuda", "usage"], site.cwd, {**site.env, **env}) as terminal:
            terminal.expect("total")
            terminal.expect("list prices")
            assert ("\x1b[1m" in terminal.shown) == bold


def test_programs_can_ask(used: Site) -> None:
    path = claude(used, answer("a", (1, 2, 3, 4)))
    ours = remuda.Remuda(cwd=used.cwd, environ=used.env)
    report = ours.usage(by="runtime")
    assert {row.name: row.output_tokens for row in report.rows} == {"claude": 2, "rehearsal": 40}
    summary = ours.parse_transcript("claude", path)
    assert summary is not None
    assert (summary.input_tokens, summary.output_tokens, summary.model) == (1, 2, "claude-sonnet-4-5")
    assert ours.parse_transcript("claude", path.with_name("none.jsonl")) is None
