"""The command of Aider's terminal interface."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import NotFoundError
from remuda.runtimes.aider.runtime import spawn_command
from remuda.runtimes.base import Turn


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    return Turn(cwd=tmp_path, scratch=tmp_path / "scratch", keep=tmp_path / "keep", session="s")


def test_its_conversation_stays_with_the_session(turn: Turn) -> None:
    invocation = spawn_command(turn)
    assert invocation.keeps
    assert f"--chat-history-file={turn.keep / 'chat.history.md'}" in invocation.arguments
    assert "--restore-chat-history" not in invocation.arguments
    again = msgspec.structs.replace(turn, resume=True)
    with pytest.raises(NotFoundError):
        spawn_command(again)
    turn.keep.mkdir()
    (turn.keep / "chat.history.md").touch()
    assert "--restore-chat-history" in spawn_command(again).arguments


def test_only_a_bypass_answers_its_questions(turn: Turn) -> None:
    assert "--yes-always" not in spawn_command(turn).arguments
    bypass = msgspec.structs.replace(turn, permission="bypass")
    assert "--yes-always" in spawn_command(bypass).arguments
    assert "--no-stream" in spawn_command(turn).arguments
