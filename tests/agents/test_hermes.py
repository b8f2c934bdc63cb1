"""Hermes' own traps: what it does without asking, what it takes for commands, and since when it counts."""

from __future__ import annotations

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, Lab

from remuda.core.events import Usage
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry

DEEDS: tuple[tuple[str, dict[str, object]], ...] = (
    ("terminal", {"command": "touch ran-1"}),
    ("terminal", {"command": "touch ran-2", "background": True}),
    ("execute_code", {"code": "open('ran-3', 'w').close()"}),
    ("write_file", {"path": "ran-4", "content": "written"}),
    ("terminal", {"command": "rm -rf kept"}),
)


@pytest.fixture
def hermes(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("hermes"))


@pytest.mark.parametrize("permission", ["ask", "bypass"])
def test_nothing_runs_without_a_bypass(hermes: Lab, permission: str) -> None:
    """By itself Hermes asks about dangerous commands only, and about none in its one-shot mode."""
    (hermes.cwd / "kept").mkdir()
    hermes.play(*(Step(tool=tool, input=given) for tool, given in DEEDS), DONE)
    ended = hermes.run("Go on.", "--permission", permission, env={"HERMES_YOLO_MODE": "1"})
    assert ended.code == 0, ended.stderr
    assert ended.result.text == DONE.text
    left = ["kept"] if permission == "ask" else ["ran-1", "ran-2", "ran-3", "ran-4"]
    assert sorted(path.name for path in hermes.cwd.iterdir()) == left


@pytest.mark.parametrize("prompt", ["/reset everything", "\n /reset everything"])
def test_a_prompt_is_never_taken_for_a_command(hermes: Lab, prompt: str) -> None:
    ended = hermes.run(prompt)
    assert ended.code == 0, ended.stderr
    assert hermes.arrived(prompt), hermes.prompts()


def test_a_resumed_turn_tells_its_own_tokens(hermes: Lab) -> None:
    """Hermes adds up the tokens of all turns it takes part in."""
    hermes.play(Step(text="One.", usage=exchange.Usage(901, 31, 11)))
    first = hermes.run("Question one.")
    assert first.result.usage == Usage(901, 31, 11)
    hermes.play(Step(text="Two.", usage=exchange.Usage(302, 17, 13)))
    assert hermes.run("Question two.", "--session", first.session).result.usage == Usage(302, 17, 13)
