"""Screens that try to be taken for something else. Whatever happens, nothing is *ready* that is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.test_screens import FIXTURES, MANIFESTS, recordings, title_of

from remuda.runtimes.screens import Screen, classify

SIZES = ("80x24", "110x36", "160x48", "200x60")
OWNED = ("claude", "codex", "copilot")
HAND_MADE = FIXTURES / "adversarial"
"""Files RUNTIME/STATE-what.txt: screens that were put together by hand."""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def of(name: str, state: str) -> list[Path]:
    """The recordings of one state; those whose truth is in the title alone say nothing here."""
    return [path for path in recordings(name) if path.name.startswith(f"{state}-") and not title_of(path)]


def cases(group: tuple[str, str], *states: str) -> Iterator[Path]:
    """The recordings of one program at one size in these states."""
    name, size = group
    return (path for state in states for path in of(name, state) if path.stem.endswith(f"-{size}"))


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def see(path: Path, text: str) -> Screen:
    return classify(MANIFESTS[path.parent.name], text)


def screen_lines(path: Path) -> list[str]:
    return read(path).rstrip().split("\n")


every_group = pytest.mark.parametrize(
    "group", [(name, size) for name in OWNED for size in SIZES], ids="-".join
)
made = sorted(HAND_MADE.glob("*/*.txt"))


@pytest.mark.parametrize("path", made, ids=label)
def test_a_hand_made_screen_is_what_its_name_says(path: Path) -> None:
    assert see(path, read(path)).state == path.name.partition("-")[0]


@every_group
def test_a_half_drawn_screen_is_never_ready(group: tuple[str, str]) -> None:
    for path in cases(group, "working", "dialog", "loading"):
        lines = screen_lines(path)
        for count in range(len(lines) + 1):
            assert see(path, "\n".join(lines[:count])).state != "ready", f"the first {count} lines"


@every_group
def test_a_working_screen_that_lost_its_top_is_never_ready(group: tuple[str, str]) -> None:
    for path in cases(group, "working"):
        lines = screen_lines(path)
        for count in range(len(lines)):
            assert see(path, "\n".join(lines[count:])).state != "ready", f"without the first {count} lines"


@every_group
def test_a_dialog_below_a_quoted_ready_screen_is_a_dialog(group: tuple[str, str]) -> None:
    for path in cases(group, "dialog"):
        for ready in cases(group, "ready"):
            quoted = "\n".join(screen_lines(ready)[-6:])
            assert see(path, f"{quoted}\n{read(path)}").state == "dialog"


@every_group
def test_a_stale_dialog_above_a_working_screen_is_no_dialog(group: tuple[str, str]) -> None:
    for path in cases(group, "working"):
        for dialog in cases(group, "dialog"):
            state = see(path, f"{read(dialog).rstrip()}\n{read(path).lstrip()}").state
            assert state in {"working", "loading"}


@every_group
def test_an_old_ready_screen_above_a_working_one_is_not_ready(group: tuple[str, str]) -> None:
    for path in cases(group, "working"):
        for ready in cases(group, "ready"):
            assert see(path, f"{read(ready).rstrip()}\n{read(path).lstrip()}").state != "ready"


@every_group
def test_an_old_dialog_above_a_ready_screen_is_no_dialog(group: tuple[str, str]) -> None:
    for path in cases(group, "ready"):
        for dialog in cases(group, "dialog"):
            assert see(path, f"{read(dialog).rstrip()}\n{read(path).lstrip()}").state != "dialog"


@every_group
def test_a_shell_prompt_below_what_a_program_left_is_not_ready(group: tuple[str, str]) -> None:
    for path in cases(group, "ready"):
        for after in ("$ ", "user@host:~$ ", "[1]+  Stopped\n$ ", "Killed\n# "):
            assert see(path, f"{read(path).rstrip()}\n{after}").state != "ready"


@pytest.mark.parametrize("name", OWNED)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "$ ",
        "❯ ",
        "› ",
        "› Ask Codex to do anything",
        "❯\n",
        "  ? for shortcuts",
        "  ⏸ manual mode on · ? for shortcuts",
        " Interactive · Manual Approval · / commands",
        "─" * 80,
        "esc to interrupt",
        "Pane is dead (status 0, Wed Nov 18 01:21:18 2026)",
    ],
)
def test_a_scrap_of_a_screen_is_loading(name: str, text: str) -> None:
    assert classify(MANIFESTS[name], text).state == "loading"


@pytest.mark.parametrize("name", OWNED)
def test_the_screens_of_one_runtime_are_not_ready_for_another(name: str) -> None:
    for other in OWNED:
        for path in of(other, "working") if other != name else ():
            assert classify(MANIFESTS[name], read(path)).state != "ready", path.name


@every_group
def test_a_working_screen_without_one_of_its_lines_is_not_ready(group: tuple[str, str]) -> None:
    """A frame may be drawn line by line: what tells of the work may be missing."""
    for path in cases(group, "working"):
        lines = screen_lines(path)
        for gone in range(len(lines)):
            assert see(path, "\n".join(lines[:gone] + lines[gone + 1 :])).state != "ready", lines[gone]
