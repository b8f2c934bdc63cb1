"""Hook programs: where they are, what is said when they are not, and that none ever lies elsewhere."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from remuda.core.errors import NotFoundError, RefusedError
from remuda.hooks.events import FILES
from remuda.hooks.staging import MissingHookError, hook_path, stage, unstage

KNOWN = ("claude", "codex", "copilot", "amplifier")


def test_every_event_has_a_program_of_its_owner_alone(tmp_path: Path) -> None:
    paths = stage(tmp_path, "copilot", "copilot", KNOWN)
    assert {event: path.name for event, path in paths.items()} == FILES
    for event, path in paths.items():
        assert path == tmp_path / "hooks" / "copilot" / FILES[event]
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert hook_path(tmp_path, "copilot", event, KNOWN) == path.resolve()
    assert stat.S_IMODE((tmp_path / "hooks").stat().st_mode) == 0o700


def test_staging_again_puts_right_what_is_not_and_leaves_the_rest(tmp_path: Path) -> None:
    paths = stage(tmp_path, "claude", "claude", KNOWN)
    good, changed, loose = (paths[event] for event in ("Stop", "PreToolUse", "SessionStart"))
    text, number = changed.read_text(), good.stat().st_ino
    changed.write_text("#!/bin/sh\nexit 0\n")
    loose.chmod(0o755)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    paths["SessionEnd"].unlink()
    stage(tmp_path, "claude", "claude", KNOWN)
    assert changed.read_text() == text
    assert stat.S_IMODE(loose.stat().st_mode) == 0o700
    assert good.stat().st_ino == number
    assert paths["SessionEnd"].exists()


def test_unstaging_leaves_what_is_not_ours(tmp_path: Path) -> None:
    stage(tmp_path, "claude", "claude", KNOWN)
    stage(tmp_path, "codex", "codex", KNOWN)
    unstage(tmp_path, "claude", KNOWN)
    assert [path.name for path in (tmp_path / "hooks").iterdir()] == ["codex"]
    (tmp_path / "hooks" / "codex" / "notes").write_text("mine")
    unstage(tmp_path, "codex", KNOWN)
    assert [path.name for path in (tmp_path / "hooks").rglob("*")] == ["codex", "notes"]


def test_a_missing_hook_says_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    stage(tmp_path, "claude", "claude", KNOWN)
    with pytest.raises(MissingHookError) as caught:
        hook_path(tmp_path, "copilot", "SessionEnd", KNOWN)
    error = caught.value
    path = tmp_path / "hooks" / "copilot" / "session_end"
    assert (error.binary, error.event, error.expected_path) == ("copilot", "SessionEnd", path)
    assert error.exit_code == 4
    assert str(error) == (
        "No SessionEnd hook registered for active agent binary 'copilot'.\n"
        f"Expected at: {path}\n"
        "To fix: install the hook at the expected path, switch binaries by re-launching\n"
        "with one of: 'remuda claude' / 'remuda copilot' / 'remuda codex' /\n"
        "'remuda amplifier', or set REMUDA_AGENT_BINARY explicitly for a single\n"
        "invocation."
    )
    assert str(error).endswith(error.remediation)


@pytest.mark.parametrize("name", ["", "..", "../claude", "claude/../claude", "CLAUDE", "claude\0", "gemini"])
def test_only_known_names_become_a_part_of_a_path(tmp_path: Path, name: str) -> None:
    stage(tmp_path, "claude", "claude", KNOWN)
    with pytest.raises(NotFoundError) as caught:
        hook_path(tmp_path, name, "PreToolUse", KNOWN)
    assert not isinstance(caught.value, MissingHookError)


@pytest.mark.parametrize("level", ["program", "folder"])
def test_a_link_out_of_the_hooks_folder_is_refused(tmp_path: Path, level: str) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    stage(home, "claude", "claude", KNOWN)
    stage(outside, "claude", "claude", KNOWN)
    folder = home / "hooks" / "claude"
    theirs = outside / "hooks" / "claude"
    if level == "program":
        (folder / "pre_tool_use").unlink()
        (folder / "pre_tool_use").symlink_to(theirs / "pre_tool_use")
    else:
        unstage(home, "claude", KNOWN)
        folder.parent.mkdir(parents=True)
        folder.symlink_to(theirs)
    before = (theirs / "pre_tool_use").read_bytes()
    for attempt in (
        lambda: hook_path(home, "claude", "PreToolUse", KNOWN),
        lambda: stage(home, "claude", "codex", KNOWN),
    ):
        with pytest.raises(RefusedError, match="outside"):
            attempt()
    assert (theirs / "pre_tool_use").read_bytes() == before


def test_a_home_behind_a_link_is_still_the_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    stage(tmp_path / "home", "claude", "claude", KNOWN)
    assert hook_path(tmp_path / "home", "claude", "Stop", KNOWN).is_relative_to(tmp_path / "real")
