"""The interactive launcher: hands over, remembers, and returns what the program said."""

from __future__ import annotations

import json

import pytest
from tests.agents.lab import REMUDA, Ended, Lab

from remuda.runtimes.base import UNVERIFIED


def launch(lab: Lab, *arguments: str) -> Ended:
    return lab.call([str(REMUDA), lab.runtime.name, *arguments])


def install_fake(lab: Lab, *lines: str) -> None:
    """Put a program of the runtime's name in front of the real one."""
    program = lab.cwd / lab.runtime.binary
    program.write_text("\n".join(("#!/bin/sh", *lines, "")))
    program.chmod(0o755)
    lab.env["PATH"] = f"{lab.cwd}:{lab.env['PATH']}"


def test_the_program_answers_and_the_choice_is_remembered(installed: Lab) -> None:
    ended = launch(installed, "--version")
    assert ended.code == 0, ended.stderr
    if installed.runtime.verified_version != UNVERIFIED:
        assert installed.runtime.verified_version in ended.stdout.decode()
    context = installed.cwd / ".claude" / "runtime" / "launcher_context.json"
    assert context.stat().st_mode & 0o777 == 0o600
    assert json.loads(context.read_text())["launcher"] == installed.runtime.name


def test_traces_of_an_outer_session_are_not_handed_on(installed: Lab) -> None:
    traces = {marker.replace("*", "OUTER") for marker in installed.runtime.nested_markers}
    assert traces or installed.runtime.verified_version == UNVERIFIED
    install_fake(installed, "env")
    installed.env.update(dict.fromkeys((*traces, "CLAUDECODE", "KEPT"), "1"))
    ended = launch(installed)
    seen = dict(line.partition("=")[::2] for line in ended.stdout.decode().splitlines())
    assert not traces & set(seen)
    assert "CLAUDECODE" not in seen
    assert seen["KEPT"] == "1"
    assert seen["REMUDA_AGENT_BINARY"] == installed.runtime.name
    assert installed.runtime.quiet.items() <= seen.items()


@pytest.mark.parametrize(("last", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_exit_code_is_the_programs(installed: Lab, last: str, code: int) -> None:
    install_fake(installed, 'printf "<%s>" "$@"', last)
    ended = launch(installed, "-x", "--help", "two words")
    assert (ended.code, ended.stdout) == (code, b"<-x><--help><two words>")


def test_what_it_leaves_behind_is_ended(installed: Lab) -> None:
    install_fake(installed, "setsid nohup sleep 300 >/dev/null 2>&1 &")
    assert launch(installed).code == 0
    assert installed.processes() == []


def test_a_program_that_is_not_there(installed: Lab) -> None:
    installed.env["PATH"] = "/usr/bin:/bin"
    ended = launch(installed)
    assert ended.code == 6
    assert installed.runtime.install in ended.stderr
