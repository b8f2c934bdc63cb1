"""Aider's own traps: prompts that it takes for commands, and what it does in a repository unasked."""

from __future__ import annotations

import subprocess

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import Ended, Lab

from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry

RUN = "touch ran.txt"
COMMANDS = {
    "bang": f"!{RUN}\n!{RUN}\n/run {RUN}",
    "slash": f"/run {RUN}\n/run {RUN}\n!{RUN}",
    "white space": f" \n!{RUN}\n\t/run {RUN}",
}


@pytest.fixture
def aider(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("aider"))


@pytest.mark.parametrize("prompt", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_prompt_is_never_executed(aider: Lab, prompt: str) -> None:
    ended = aider.run(prompt, *aider.bypass)
    assert ended.code == 0, ended.stderr
    assert aider.arrived(prompt), aider.prompts()
    assert list(aider.cwd.iterdir()) == []


def test_an_address_in_a_prompt_is_not_visited(aider: Lab) -> None:
    ended = aider.run(f"Read {aider.server.url}/page.html and go on.", *aider.bypass)
    assert ended.code == 0, ended.stderr
    assert "/page.html" not in {heard.path for heard in aider.server.heard()}


def test_a_shell_command_of_the_models_is_never_executed(aider: Lab) -> None:
    """Not even when the caller lets aider suggest one: nobody is there to read the suggestion."""
    aider.play(Step(text=f"Run this:\n\n```bash\n{RUN}\n```\n"))
    extra = ("--edit-format=diff", "--suggest-shell-commands")
    ended = aider.run("Go on.", *aider.bypass, extra=extra)
    assert ended.code == 0, ended.stderr
    assert list(aider.cwd.iterdir()) == []


def test_a_failure_is_told_although_aider_exits_as_if_all_were_well(aider: Lab) -> None:
    aider.rehearse("errors")
    result = aider.run("rehearse-401").result
    assert result.exit_code == 0
    assert result.error is not None
    assert result.error.kind == "auth"


def git(lab: Lab, *arguments: str) -> str:
    author = ("-c", "user.name=Someone", "-c", "user.email=someone@localhost")
    return subprocess.run(
        ["git", *author, *arguments], cwd=lab.cwd, env=lab.env, check=True, capture_output=True, text=True
    ).stdout


def edit_in_a_repository(lab: Lab, *extra: str) -> Ended:
    """Have a committed file edited, beside another that holds changes of its owner's."""
    git(lab, "init", "--quiet")
    for name in ("f.txt", "mine.txt"):
        (lab.cwd / name).write_text("committed\n")
    git(lab, "add", ".")
    git(lab, "commit", "--quiet", "--message=First")
    (lab.cwd / "mine.txt").write_text("not yet committed\n")
    lab.play(*lab.write("f.txt", "written"))
    ended = lab.run("Edit f.txt and mine.txt.", *lab.bypass, extra=extra)
    assert ended.code == 0, ended.stderr
    assert (lab.cwd / "f.txt").read_text() == "written\n"
    return ended


def test_a_repository_gets_the_edit_and_nothing_else(aider: Lab) -> None:
    edit_in_a_repository(aider)
    assert git(aider, "log", "--format=%s") == "First\n"
    assert git(aider, "status", "--short", "--ignored") == " M f.txt\n M mine.txt\n"
    assert "aider" not in (aider.cwd / ".git" / "config").read_text()


def test_aider_commits_when_it_is_asked_to(aider: Lab) -> None:
    edit_in_a_repository(aider, "--auto-commits")
    assert len(git(aider, "log", "--format=%s").splitlines()) == 2
    assert git(aider, "status", "--short", "--ignored") == " M mine.txt\n"
