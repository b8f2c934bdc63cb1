"""The real programs are what they are declared to be, and doctored copies of one are found out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.agents.lab import LOAD, REMUDA, Ended, Json, Lab

HANG = "no result within 15 s: the program hangs"
LIES: dict[str, tuple[str, dict[str, str]]] = {
    "drops stdin": (
        'exec {real} "$@" </dev/null',
        {
            "channel.stdin": "a prompt of 204800 bytes by stdin never reached the model: the run failed",
            "guard.run": "the run failed",
        },
    ),
    "answers rubbish": (
        "{real} \"$@\" | tr '{{' '<'",
        {"events": "the run failed (protocol)", "usage": "the run failed (protocol)", "error.auth": HANG},
    ),
    "hangs": ("sleep 1000", {"channel.stdin": HANG}),
}
"""For each lie: the rest of a script in front of the real program, and the claims that fail because of it."""


def verify(lab: Lab, timeout: float, **env: str) -> tuple[Ended, dict[str, Json]]:
    command = [str(REMUDA), "doctor", "--verify", "--json", lab.runtime.name]
    ended = lab.call(command, env=env, timeout=timeout)
    (report,) = json.loads(ended.stdout)["runtimes"]
    return ended, {finding["what"]: finding for finding in report["findings"]}


@pytest.mark.timeout(600)
def test_every_runtime_is_what_it_is_declared_to_be(lab: Lab) -> None:
    ended, found = verify(lab, 180 + 12 * LOAD * lab.runtime.conduct.startup)
    assert {what: one["how"] for what, one in found.items() if one["verdict"] != "holds"} == {}
    assert ended.code == 0, ended.stderr


@pytest.mark.timeout(200)
@pytest.mark.parametrize("lie", LIES)
def test_a_program_that_lies(claude: Lab, agents_bin: Path, lie: str) -> None:
    script, expected = LIES[lie]
    real = agents_bin / "claude"
    program = claude.cwd / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {real} --version\n{script.format(real=real)}\n'
    )
    program.chmod(0o755)
    claude.configure("run.timeout = 15")
    ended, found = verify(claude, 120, PATH=f"{program.parent}:{claude.env['PATH']}")
    failing = {what: one["how"] for what, one in found.items() if one["verdict"] == "fails"}
    assert failing.keys() == expected.keys()
    assert all(failing[what].startswith(how) for what, how in expected.items()), failing
    assert ended.code == 1
    if HANG in expected.values():
        assert found["quiet"]["how"] == "not checked: the program hangs"
