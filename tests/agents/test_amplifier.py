"""Amplifier's own traps, on the real program where it is installed and on the stand-in everywhere else."""

from __future__ import annotations

import json

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import REMUDA, Json, Lab

from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry


@pytest.fixture
def amplifier(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("amplifier"))


def test_the_words_before_the_answer_are_no_part_of_it(amplifier: Lab) -> None:
    """It prints lines of its own to standard output first, and more of them in a session that goes on."""
    text = "An object:\n{\n}\nError: none."
    amplifier.play(Step(text=text))
    first = amplifier.run("Question one.")
    second = amplifier.run("Question two.", "--session", first.session)
    for ended in (first, second):
        assert ended.code == 0, ended.stderr
        assert ended.result.text == ended.joined("agent_message_chunk") == text


def test_what_it_does_not_tell_is_not_made_up(amplifier: Lab) -> None:
    result = amplifier.run("Hello.").result
    assert (result.usage, result.cost_usd) == (None, None)


@pytest.mark.parametrize("options", [("--permission", "ask"), ("--capability", "scout")])
def test_it_runs_with_a_bypass_or_not_at_all(amplifier: Lab, options: tuple[str, ...]) -> None:
    ended = amplifier.run("Hello.", *options)
    assert ended.code == 5
    assert ended.result.error is not None
    assert "Use" in ended.result.error.message
    assert amplifier.server.heard() == ()


def told(lab: Lab, verb: str) -> Json:
    """What a verb tells of Amplifier."""
    document = json.loads(lab.call([str(REMUDA), verb, "--json"]).stdout)
    (told,) = (runtime for runtime in document["runtimes"] if runtime["name"] == "amplifier")
    assert isinstance(told, dict)
    return told


def test_nobody_is_told_that_it_was_verified(amplifier: Lab) -> None:
    """The pinned agents are off the PATH, as asking them all takes its time."""
    amplifier.env["PATH"] = amplifier.env["PATH"].partition(":")[2]
    report = told(amplifier, "runtimes")
    assert (report["verified_version"], report["stability"]) == ("unverified", "experimental")
    assert not [channel for channel in report["channels"] if channel["verified"]]
    assert not [one for one in report["features"].values() if one["state"] == "verified"]
    assert "no version of amplifier has been verified" in told(amplifier, "doctor")["warnings"][0]
