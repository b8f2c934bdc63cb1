"""Pi's own traps: its Node.js, its predecessor, its standard input, an exit code that tells nothing."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import REMUDA, Ended, Lab

from remuda.runtimes import registry

CRASH = """\
SyntaxError: The requested module 'node:module' does not provide an export named 'enableCompileCache'
    at async asyncRunEntryPointWithESMLoader (node:internal/modules/run_main:117:5)

Node.js v20.20.2
"""
"""How Node.js 20 ends when it is to run Pi."""


@pytest.fixture
def pi(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("pi"))


def install(lab: Lab, **programs: str) -> None:
    """Make these scripts the only programs beside the bare system."""
    folder = lab.home / "bin"
    folder.mkdir()
    for name, script in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    lab.env["PATH"] = f"{folder}:/usr/bin:/bin"


def problems(lab: Lab) -> str:
    """What the doctor finds wrong with Pi."""
    report = json.loads(lab.call([str(REMUDA), "doctor", "--json"]).stdout)
    (examined,) = (runtime for runtime in report["runtimes"] if runtime["name"] == "pi")
    return "\n".join(examined["problems"])


def test_a_node_that_is_too_old_is_named(pi: Lab, agents_bin: Path) -> None:
    install(pi, node=f"cat >&2 <<'END'\n{CRASH}END\nexit 1", pi=f'exec {agents_bin / "pi"} "$@"')
    needed = "it needs Node.js 22.19 or newer, not 20.20.2"
    ended = pi.run("Hello.")
    assert ended.code == 6
    assert ended.result.error is not None
    assert (ended.result.error.kind, ended.result.error.message) == (
        "start_failed",
        f"Pi did not start: {needed}",
    )
    assert problems(pi) == f"'pi --version' gives no version: {needed}"


def test_the_dead_predecessor_is_told_from_the_living_package(pi: Lab) -> None:
    install(pi, pi="echo 0.73.1")
    assert "version 0.73.1 is older than" in problems(pi)
    assert "@earendil-works/pi-coding-agent" in problems(pi)


def test_it_does_not_wait_for_the_callers_standard_input(pi: Lab) -> None:
    """Pi reads its own to the end. A pipe that is open for writing, too, has none."""
    ended = pi.call(["sh", "-c", 'mkfifo open && exec "$@" <>open', "sh", *pi.command(prompt="Hello.")])
    assert ended.code == 0, ended.stderr
    assert pi.arrived("Hello.")


def run_unanswered(lab: Lab) -> Ended:
    """Run with no model anywhere, and nothing repeated: Pi itself ends the run."""
    settings = lab.home / ".pi" / "agent" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"retry": {"enabled": false}}')
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        lab.env["REMUDA_ENDPOINT"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
        return lab.run("Hello.")


def test_an_exit_code_of_0_is_no_success(pi: Lab) -> None:
    ended = run_unanswered(pi)
    assert (ended.code, ended.result.exit_code) == (1, 0)
    assert ended.result.error is not None
    assert ended.result.error.kind == "model"


def test_the_command_line_would_take_a_prompt_for_a_file(pi: Lab) -> None:
    ended = pi.run("@notes.md is what I mean.", env={"REMUDA_PROMPT_DELIVERY": "argv"})
    assert ended.code == 0, ended.stderr
    assert pi.prompts() == ["@notes.md is what I mean."]
    assert "requested argv is unsupported; degrading to stdin" in ended.stderr
