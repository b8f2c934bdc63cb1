"""A prompt reaches the model byte for byte, and nobody else on the machine."""

from __future__ import annotations

import json
import os
import time

import pytest
from tests.agents.lab import Lab
from tests.agents.processes import everyone, wait_until

from remuda.rehearsal.scenario import Step

KIB = 1024
MARKER = f"marker-{os.getpid():x}-7f3a"
HARD = (
    ' leading space, "quotes", apostrophe\'s, $(id) `id` ${HOME} %s %% \\n \\\\ \\\n\ttab, newline,\n'
    f"漢字 かな 한글, 🐎🏇🏽, e\u0301 é, {MARKER}, <tag> {{prompt}} --flag ; | & > /dev/null # !$ ~ *\n\n"
)
TRAPS = {
    "dash": "-dash",
    "lone dash": "-",
    "slash": "/help me",
    "bang": "!ls",
    "at": "@nofile",
    "hash": "#memo",
    "space": " space",
    "unicode": "naïve 漢字 🐎",
}


def long_prompt(size: int) -> str:
    """A hard text of exactly ``size`` bytes, with no white space at its end."""
    block = HARD.encode()
    text = (block * (size // len(block))).decode()
    return text + "x" * (size - len(text.encode()))


def on_a_command_line() -> bool:
    """Whether the marker is on any command line of the machine."""
    return any(MARKER.encode() in process.argv for process in everyone())


def seen_on_command_lines(lab: Lab) -> bool:
    """Whether it is there while the agent waits for the model."""
    assert wait_until(lambda: any(MARKER in prompt for prompt in lab.prompts()), lab.within(15))
    time.sleep(0.1)
    return on_a_command_line()


@pytest.mark.parametrize("size", [64 * KIB, 200 * KIB], ids=["64KiB", "200KiB"])
def test_a_long_prompt_arrives_exactly_and_in_private(lab: Lab, size: int) -> None:
    prompt = long_prompt(size)
    lab.play(Step(text="Heard.", delay=1))
    with lab.running(prompt) as process:
        assert not seen_on_command_lines(lab)
        ended = lab.finish(process)
    assert ended.code == 0, ended.stderr
    assert MARKER not in ended.stderr
    assert lab.arrived(prompt)


def test_a_prompt_file_arrives_exactly_and_in_private(lab: Lab) -> None:
    prompt = long_prompt(64 * KIB)
    (lab.cwd / "task.md").write_bytes(prompt.encode())
    ended = lab.call(lab.command(prompt="@task.md"))
    assert ended.code == 0, ended.stderr
    assert lab.arrived(prompt)


@pytest.mark.parametrize("prompt", TRAPS.values(), ids=TRAPS.keys())
def test_a_prompt_is_never_taken_for_anything_else(lab: Lab, prompt: str) -> None:
    ended = lab.run(prompt)
    assert ended.code == 0, ended.stderr
    assert lab.arrived(prompt), lab.prompts()


@pytest.mark.parametrize("prompt", ["-dash", "/help me", " space"])
def test_the_command_line_is_exact_too(argv_lab: Lab, prompt: str) -> None:
    ended = argv_lab.run(prompt, env={"REMUDA_PROMPT_DELIVERY": "argv"})
    assert ended.code == 0, ended.stderr
    assert argv_lab.arrived(prompt, "argv"), argv_lab.prompts()


def test_on_request_a_long_prompt_goes_on_the_command_line(argv_lab: Lab) -> None:
    lab = argv_lab
    prompt = long_prompt(64 * KIB)
    lab.env["REMUDA_PROMPT_DELIVERY"] = "argv"
    lab.play(Step(text="Heard.", delay=1))
    with lab.running(prompt) as process:
        assert wait_until(on_a_command_line, lab.within(15))
        ended = lab.finish(process)
    assert ended.code == 0, ended.stderr
    assert lab.arrived(prompt, "argv")


def test_what_no_command_line_holds_takes_another_way(lab: Lab) -> None:
    prompt = long_prompt(200 * KIB)
    ended = lab.run(prompt, env={"REMUDA_PROMPT_DELIVERY": "argv"})
    assert ended.code == 0, ended.stderr
    assert lab.arrived(prompt, "argv")
    (warning,) = map(json.loads, ended.stderr.splitlines())
    declared = any(channel.mode == "argv" for channel in lab.runtime.channels)
    why = "cannot hold a prompt this long" if declared else "is unsupported"
    assert warning["message"].startswith(f"requested argv {why}; degrading to ")
    assert MARKER not in ended.stderr
