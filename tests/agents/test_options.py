"""What a caller asks for reaches the agent, and what is none of its business does not."""

from __future__ import annotations

import os

import pytest
from tests.agents.lab import DONE, Ended, Lab, shell
from tests.agents.processes import everyone, wait_until

from remuda.rehearsal.scenario import Step

MARKER = f"house-rule-{os.getpid():x}-5d1e"
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "not-for-agents-1",
    "FOO_TOKEN": "not-for-agents-2",
    "ANTHROPIC_API_KEY": "not-for-a-stand-in-1",
    "OPENAI_API_KEY": "not-for-a-stand-in-2",
    "GH_TOKEN": "not-for-a-stand-in-3",
    "DATABASE_URL": "not-for-agents-3",
}


def run_with_instructions(lab: Lab, option: str) -> Ended:
    """Run with a marker in a file of instructions, and look at every command line meanwhile."""
    (lab.cwd / "rules.md").write_text(f'Obey the "{MARKER}".\nAlways.\n')
    lab.play(Step(text="Yes.", delay=1))
    with lab.running("Hello.", option, "rules.md") as process:
        assert wait_until(lambda: process.poll() is not None or lab.prompts(), lab.within(15))
        assert not any(MARKER.encode() in other.argv for other in everyone())
        return lab.finish(process)


def check_told_or_refused(lab: Lab, ended: Ended, told: bool) -> None:
    """The model was told, or the wish was refused with a hint."""
    if told:
        assert ended.code == 0, ended.stderr
        assert MARKER in lab.texts()
    else:
        assert ended.code == 2
        assert len(ended.stderr.splitlines()) == 2
        assert MARKER not in ended.stderr


def test_additional_instructions_reach_the_model(lab: Lab) -> None:
    ended = run_with_instructions(lab, "--append-system-prompt-file")
    check_told_or_refused(lab, ended, told=lab.runtime.conduct.append_system_prompt)


def test_the_system_prompt_is_replaced(lab: Lab) -> None:
    ended = run_with_instructions(lab, "--system-prompt-file")
    check_told_or_refused(lab, ended, told=lab.runtime.conduct.system_prompt)


def test_the_environment_is_what_the_agent_needs(shell_lab: Lab) -> None:
    lab = shell_lab
    lab.play(shell("env > seen.txt"), DONE)
    ended = lab.run("Hello.", "--env", "GREETING=hello = there", *lab.bypass, env=SECRETS)
    assert ended.code == 0, ended.stderr
    seen = (lab.cwd / "seen.txt").read_text()
    assert "GREETING=hello = there\n" in seen
    assert f"HOME={lab.home}\n" in seen
    assert f"REMUDA_AGENT_BINARY={lab.runtime.name}\n" in seen
    assert not [value for value in SECRETS.values() if value in seen]
    assert not {"AWS_SECRET_ACCESS_KEY", "FOO_TOKEN", "DATABASE_URL"} & {
        line.partition("=")[0] for line in seen.splitlines()
    }


def test_more_arguments_reach_the_program(lab: Lab) -> None:
    argument = lab.runtime.conduct.model_argument
    ended = lab.run("Hello.", extra=(argument or "--model", "asked-for-by-hand"))
    if argument is None:
        assert ended.result.error is not None
        assert ended.result.error.kind == "start_failed"
        return
    assert ended.code == 0, ended.stderr
    assert {heard.model for heard in lab.server.heard() if heard.api} == {"asked-for-by-hand"}


def test_an_argument_the_program_does_not_know_is_a_failed_start(lab: Lab) -> None:
    ended = lab.run("Hello.", extra=("--unheard-of-option",))
    assert ended.code == 6
    assert ended.result.error is not None
    assert ended.result.error.kind == "start_failed"
    assert "unheard-of-option" in ended.result.error.message


@pytest.mark.parametrize("prompt", ["", " \n\t", "nul \0 byte"], ids=["empty", "blank", "NUL"])
def test_a_prompt_that_cannot_be_delivered_starts_nothing(lab: Lab, prompt: str) -> None:
    ended = lab.run(prompt)
    assert ended.code == 2
    assert ended.stdout == b""
    assert ended.stderr.startswith("remuda: the prompt ")
    assert lab.server.heard() == ()
