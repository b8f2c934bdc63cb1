"""The real programs, one after the other: a rate limit sends the prompt on; accounts of one runtime keep to
their own homes and take turns."""

from __future__ import annotations

import json

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Lab, shell

from remuda.core import clock
from remuda.core.errors import ErrorKind
from remuda.rehearsal.journal import Heard
from remuda.rehearsal.scenario import Rule, Scenario, Step, When
from remuda.runtimes import registry

SECRET = "keep-this-out-of-errors"
SOON, OURS = 5.0, 2.0
"""Seconds from the first word of a limit to the next agent's first request; and how much of that may be ours,
where the machine is so busy that the program itself needs longer to start."""

LIMITED = Step(status=429, message="Rate limit reached. Try again later.", headers={"retry-after": "30"})


def fleet(make_lab: MakeLab, *rules: Rule) -> Lab:
    """A model that treats each agent's own model in its own way."""
    lab = make_lab(registry.get("claude"))
    lab.server.set_scenario(Scenario("fleet", (*rules, Rule((DONE,)))))
    return lab


def limited(model: str, *before: Step) -> Rule:
    return Rule((*before, LIMITED), When(model=model))


def heard_of(lab: Lab, model: str) -> list[Heard]:
    return [heard for heard in lab.server.heard() if heard.api and heard.model == model]


def pause(lab: Lab, first: str, then: str) -> float:
    """Seconds from the first refusal of one model to the first request for another."""
    refused = next(heard for heard in heard_of(lab, first) if heard.status == 429)
    return clock.seconds(heard_of(lab, then)[0].time) - clock.seconds(refused.time)


def startup(lab: Lab, agent: str, model: str) -> float:
    """Seconds that an agent needs here before it first calls its model."""
    before = clock.now()
    assert lab.run("Hello.", "--agent", agent).code == 0
    return clock.seconds(heard_of(lab, model)[-1].time) - before


CHAIN = """
[agents.first]
runtime = "claude"
model = "limited-a"
failover_to = ["second"]
[agents.second]
runtime = "codex"
model = "limited-b"
failover_to = ["third"]
[agents.third]
runtime = "copilot"
model = "free-c"
"""


def test_a_rate_limit_on_claude_goes_to_codex_and_then_to_copilot(make_lab: MakeLab) -> None:
    lab = fleet(make_lab, limited("limited-a"), limited("limited-b"))
    lab.configure(CHAIN)
    ended = lab.run(f"Say that you are done. {SECRET}", "--agent", "first")
    assert ended.code == 0, (ended.stderr, ended.result)
    assert ended.result.text == "All done."
    assert [(each.agent, each.error.kind) for each in ended.result.tried] == [
        ("first", "rate_limit"),
        ("second", "rate_limit"),
    ]
    assert ended.lines[-1]["agent"] == "third"
    assert [line["seq"] for line in ended.lines] == [*range(1, len(ended.lines) + 1)]
    pauses = pause(lab, "limited-a", "limited-b"), pause(lab, "limited-b", "free-c")
    alone = startup(lab, "third", "free-c")
    print(f"seconds from the first 429 to the next request: {pauses}; Copilot alone: {alone}")
    assert max(pauses) < max(SOON, alone + OURS)
    assert SECRET not in ended.stderr
    assert all(SECRET in heard_of(lab, model)[0].prompt for model in ("limited-a", "limited-b", "free-c"))


def test_in_the_middle_of_the_work_the_next_one_takes_it_up(make_lab: MakeLab) -> None:
    lab = fleet(make_lab, limited("limited-a", shell("echo once >> done.txt")))
    lab.configure(CHAIN.replace("limited-b", "free-b"))
    ended = lab.run("Do it.", "--agent", "first", "--resume-elsewhere", *lab.bypass)
    assert ended.code == 0, (ended.stderr, ended.result)
    assert [each.agent for each in ended.result.tried] == ["first"]
    assert (lab.cwd / "done.txt").read_text() == "once\n"
    prompt = heard_of(lab, "free-b")[0].prompt
    assert "Do it." in prompt
    assert "echo once >> done.txt" in prompt


PAIR = """
[agents.first]
runtime = "{runtime}"
model = "limited-a"
failover_to = ["second"]
[agents.second]
runtime = "rehearsal"
model = "free"
"""


def paired(make_lab: MakeLab, runtime: str, *steps: Step) -> Lab:
    """A runtime whose model goes through these steps, and somebody to turn to."""
    lab = make_lab(registry.get(runtime))
    lab.server.set_scenario(Scenario("pair", (Rule((DONE,), When(model="free")), Rule(steps))))
    lab.configure(PAIR.format(runtime=runtime))
    return lab


@pytest.mark.parametrize(
    ("runtime", "status", "message", "kind"),
    [
        ("claude", 403, "Forbidden", "auth"),
        ("claude", 400, "Your credit balance is too low.", "quota"),
        ("hermes", 401, "invalid x-api-key", "auth"),
        ("codex", 402, "Payment required", "quota"),
    ],
)
def test_words_about_a_failure_are_no_answer(
    make_lab: MakeLab, runtime: str, status: int, message: str, kind: ErrorKind
) -> None:
    """Some programs give the failure of their model as its answer."""
    lab = paired(make_lab, runtime, Step(status=status, message=message))
    ended = lab.run("Hello.", "--agent", "first")
    assert [(each.agent, each.error.kind) for each in ended.result.tried] == [("first", kind)], ended.result
    assert ended.result.text == "All done."


def test_a_long_limit_is_told_at_once_and_kept_to(make_lab: MakeLab) -> None:
    lab = paired(make_lab, "claude", Step(status=429, message="Slow down.", headers={"retry-after": "40"}))
    before = clock.now()
    assert [each.agent for each in lab.run("Hello.", "--agent", "first").result.tried] == ["first"]
    [row] = [each for each in agents_of(lab) if each["name"] == "first"]
    assert 38 < clock.seconds(row["until"]) - before < 55


def agents_of(lab: Lab) -> list[dict[str, str]]:
    told = lab.call([str(REMUDA), "agents", "--json"])
    return [row for row in json.loads(told.stdout)["agents"] if isinstance(row, dict)]


def test_work_that_nobody_told_of_is_not_begun_again(make_lab: MakeLab) -> None:
    """OpenClaw tells nothing before its end: that its model has answered is known from its log."""
    lab = paired(make_lab, "openclaw", shell("echo once >> done.txt"), LIMITED)
    ended = lab.run("Do it.", "--agent", "first", *lab.bypass)
    assert ended.result.error is not None
    assert (ended.result.error.kind, ended.result.tried) == ("rate_limit", ())
    assert (lab.cwd / "done.txt").read_text() == "once\n"


def test_one_limit_that_passes_is_waited_for_where_there_is_nobody_else(make_lab: MakeLab) -> None:
    lab = fleet(make_lab, Rule((Step(status=429, message="Rate limit reached.", times=1), DONE)))
    ended = lab.run("Hello.")
    assert ended.code == 0, (ended.stderr, ended.result)
    assert ended.result.tried == ()


ACCOUNTS = """
[agents.home]
runtime = "claude"
tags = ["Fast"]
home = "{home}/accounts/home"
[agents.work]
runtime = "claude"
tags = ["fast", "paid"]
home = "{home}/accounts/work"
"""


def test_two_accounts_of_one_runtime_take_turns_and_keep_apart(make_lab: MakeLab) -> None:
    lab = fleet(make_lab)
    lab.configure(ACCOUNTS.format(home=lab.home))
    asked = [("--agent", "claude"), ("--agent", "claude"), ("--tag", "FAST"), ("--tag", "fast")]
    agents = [lab.call([*lab.command()[:3], *way, "Hello."]).lines[-1]["agent"] for way in asked]
    assert agents == ["home", "work", "home", "work"]
    assert lab.call([*lab.command()[:3], "--tag", "paid", "Hello."]).lines[-1]["agent"] == "work"
    kept = {
        name: len(list((lab.home / "accounts" / name / "projects").rglob("*.jsonl")))
        for name in ("home", "work")
    }
    assert kept == {"home": 2, "work": 3}
    assert not (lab.home / ".claude" / "projects").exists()
