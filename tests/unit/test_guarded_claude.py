"""What a guarded run of Claude Code is started with, and what stands in its way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from remuda.runtimes.base import Turn
from remuda.runtimes.claude.guarded import GUARDING, command, objection


@pytest.fixture
def turn(tmp_path: Path) -> Turn:
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    return Turn(
        cwd=tmp_path / "work",
        scratch=tmp_path / "scratch",
        keep=tmp_path / "keep",
        session="s-1",
        permission="bypass",
        model="m-1",
        append_system_prompt="More.",
        endpoint="http://127.0.0.1:1",
        environ={"HOME": str(tmp_path / "home")},
    )


def with_environ(turn: Turn, **environ: str) -> Turn:
    return Turn(
        cwd=turn.cwd, scratch=turn.scratch, keep=turn.keep, session="s-1", environ={**turn.environ, **environ}
    )


def test_it_asks_whatever_the_permission(turn: Turn) -> None:
    invocation = command(turn)
    arguments = invocation.arguments
    assert arguments[arguments.index("--permission-mode") + 1] == "default"
    assert "bypassPermissions" not in arguments
    assert arguments[arguments.index("--setting-sources") + 1] == "user"
    settings = json.loads(arguments[arguments.index("--settings") + 1])
    assert settings["permissions"] == {"ask": ["*"]}
    assert {"--strict-mcp-config", "--append-system-prompt-file", "m-1", "s-1"} <= set(arguments)
    assert invocation.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert "More." not in " ".join(arguments)


def test_a_usual_home_is_fine(turn: Turn) -> None:
    assert GUARDING.objection(turn) is None


def test_settings_in_the_folder_are_not_the_users(turn: Turn) -> None:
    assert "lie in the folder" in (objection(with_environ(turn, HOME=str(turn.cwd))) or "")
    assert "lie in the folder" in (objection(with_environ(turn, CLAUDE_CONFIG_DIR=f"{turn.cwd}/c")) or "")


def test_settings_that_are_a_link_into_the_folder_are_not_the_users(turn: Turn) -> None:
    (turn.cwd / "theirs.json").write_text("{}")
    (Path(turn.environ["HOME"]) / ".claude" / "settings.json").symlink_to(turn.cwd / "theirs.json")
    assert "lie in the folder" in (objection(turn) or "")


@pytest.mark.parametrize(("value", "refused"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_what_keeps_hooks_from_loading_is_refused(turn: Turn, value: str, refused: bool) -> None:
    assert (objection(with_environ(turn, CLAUDE_CODE_SIMPLE=value)) is not None) == refused
    settings = Path(turn.environ["HOME"]) / ".claude" / "settings.json"
    settings.write_text(json.dumps({"env": {"CLAUDE_CODE_SIMPLE": value}}))
    assert (objection(turn) is not None) == refused


@pytest.mark.parametrize("text", ["", "{", "[]", '{"env": 7}', "\ufeff{}"])
def test_settings_that_cannot_be_read_are_passed_over(turn: Turn, text: str) -> None:
    (Path(turn.environ["HOME"]) / ".claude" / "settings.json").write_text(text)
    assert objection(turn) is None
