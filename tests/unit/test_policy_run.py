"""The policy of a guarded run: loaded before it starts, and held whatever becomes of the files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import RefusedError
from remuda.dispatch.agents import Agent
from remuda.dispatch.installation import Installation
from remuda.guard.tools import ToolCall
from remuda.operations.guarding import bounded
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World, open_world
from remuda.runtimes import registry
from remuda.runtimes.base import Guarding, Turn


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "work").mkdir()
    environ = {"HOME": str(tmp_path), "REMUDA_HOME": str(tmp_path / "remuda"), "PATH": "/bin"}
    return open_world(environ, tmp_path / "work")


def guarded(world: World, **request: object) -> Turn:
    """A turn of a runtime that is held by approvals."""
    runtime = msgspec.structs.replace(registry.get("rehearsal"), guarding=Guarding(by="approval"))
    plan = Plan(
        Agent(name=runtime.name, runtime=runtime.name), runtime, world.cwd, "session", "session", False
    )
    turn = Turn(cwd=world.cwd, scratch=world.cwd, keep=world.cwd, session="session", environ=world.environ)
    asked = RunRequest(prompt="hi", unproven=True, **{"capability": "builder", **request})  # type: ignore[arg-type]
    return bounded(world, asked, plan, Installation(("/bin/true",)), turn)


def say(folder: Path, text: str) -> Path:
    file = folder / ".remuda" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def rule(turn: Turn, command: str) -> str:
    assert turn.guard is not None
    return turn.guard.judge(ToolCall("Bash", {"command": command}, str(turn.cwd))).rule


def test_a_run_obeys_and_keeps_the_policy_that_it_started_with(world: World) -> None:
    file = say(world.cwd, "[guard]\nprotect = ['db']\n")
    turn = guarded(world)
    assert rule(turn, "touch db/x") == "policy.protect"
    assert rule(turn, "touch x") == "allow"
    file.unlink()
    assert rule(turn, "touch db/x") == "policy.protect"
    file.write_text("[guard\n")
    assert rule(turn, "touch x") == "allow"


def test_a_run_with_a_policy_that_cannot_be_read_does_not_start(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    file = say(other, "[guard]\nprotect = 1\n")
    with pytest.raises(RefusedError) as caught:
        guarded(world, worktree=other)
    assert f"{file}, line 2 (guard.policy)" in caught.value.message


def test_the_prefix_comes_from_the_request_or_else_from_the_policy(world: World) -> None:
    say(world.cwd, '[guard]\nbranch_prefix = "agents/{agent}/"\n')
    turn = guarded(world)
    assert turn.guard is not None
    assert "agents/rehearsal/" in turn.guard.note
    assert rule(turn, "git switch -c topic") == "git.prefix"
    assert rule(turn, "git switch -c agents/rehearsal/x") == "allow"
    assert rule(guarded(world, branch_prefix="mine/"), "git switch -c mine/x") == "allow"
