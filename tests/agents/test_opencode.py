"""OpenCode's own traps: quoted arguments, standard input, an end without a word, calls nobody asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import Lab

from remuda.core.events import Usage
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry


@pytest.fixture
def opencode(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("opencode"))


def test_the_command_line_would_put_a_prompt_in_quotes(opencode: Lab) -> None:
    prompt = 'say "hello" to me'
    ended = opencode.run(prompt, env={"REMUDA_PROMPT_DELIVERY": "argv"})
    assert ended.code == 0, ended.stderr
    assert opencode.prompts() == [prompt]
    assert "requested argv is unsupported; degrading to stdin" in ended.stderr


def test_it_does_not_wait_for_the_callers_standard_input(opencode: Lab) -> None:
    """OpenCode reads its own to the end. A pipe that is open for writing, too, has none."""
    command = opencode.command(prompt="Hello.")
    ended = opencode.call(["sh", "-c", 'mkfifo open && exec "$@" <>open', "sh", *command])
    assert ended.code == 0, ended.stderr
    assert opencode.prompts() == ["Hello."]


def test_the_model_is_asked_for_nothing_but_the_task(opencode: Lab) -> None:
    """By itself OpenCode also has the model think of a title, in the first turn of a session."""
    opencode.play(Step(text="An answer.", usage=exchange.Usage(301, 17, 11, 3)))
    first = opencode.run("Question one.")
    second = opencode.run("Question two.", "--session", first.session)
    for ended in (first, second):
        assert ended.code == 0, ended.stderr
        assert ended.result.usage == Usage(301, 17, 11, 3)
    assert opencode.prompts() == ["Question one.", "Question two."]


def test_an_end_before_the_last_step_is_no_success(opencode: Lab, agents_bin: Path) -> None:
    """OpenCode prints no result at its end; this copy exits with 0 after its first line."""
    program = opencode.cwd / "opencode"
    program.write_text(f'#!/bin/sh\n{agents_bin}/opencode "$@" | head -n 1\n')
    program.chmod(0o755)
    ended = opencode.run("Hello.", env={"PATH": f"{opencode.cwd}:{opencode.env['PATH']}"})
    assert (ended.code, ended.result.exit_code) == (1, 0)
    assert ended.result.error is not None
    assert ended.result.error.kind == "protocol"
