"""Screens of Gemini, OpenCode and Pi that try to pass for ready: cut, stale, quoted, resized."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from remuda.runtimes import screens
from remuda.runtimes.screens import Manifest, Screen

FIXTURES = Path(__file__).parents[1] / "fixtures" / "screens"
NAMES = ("gemini", "opencode", "pi")
NOWHERE = Path("/nonexistent")


def manifest(name: str) -> Manifest:
    return screens.load(name, NOWHERE)


def look(name: str, text: str) -> Screen:
    return screens.classify(manifest(name), text)


def recorded(name: str, what: str) -> str:
    return (FIXTURES / name / f"{what}.txt").read_text(encoding="utf-8")


def stripped(text: str) -> list[str]:
    return text.rstrip().split("\n")


def fixtures(*states: str) -> list[tuple[str, str]]:
    return [
        (name, file.stem)
        for name in NAMES
        for file in sorted((FIXTURES / name).glob("*.txt"))
        if file.name.startswith(states)
    ]


def sizes(*needed: str) -> list[tuple[str, str]]:
    """The runtimes and the sizes in which these screens of theirs were recorded."""
    return [
        (name, size)
        for name in NAMES
        for size in ("80x24", "110x36", "160x48", "200x60")
        if all((FIXTURES / name / f"{what}-{size}.txt").exists() for what in needed)
    ]


def of(name: str, *needed: str) -> list[str]:
    """The sizes in which one runtime's screens were recorded."""
    return [size for each, size in sizes(*needed) if each == name]


@pytest.mark.parametrize(("name", "what"), fixtures("working", "dialog"))
def test_a_half_drawn_frame_of_work_or_a_question_is_never_ready(name: str, what: str) -> None:
    lines = stripped(recorded(name, what))
    for count in range(1, len(lines)):
        assert look(name, "\n".join(lines[:count])).state != "ready", count


@pytest.mark.parametrize(("name", "what"), fixtures("working", "dialog"))
def test_one_line_that_is_missing_at_the_bottom_does_not_make_it_ready(name: str, what: str) -> None:
    lines = stripped(recorded(name, what))
    for gone in range(max(0, len(lines) - 14), len(lines)):
        kept = [*lines[:gone], "", *lines[gone + 1 :]]
        if _told(name, lines[gone]):
            continue
        assert look(name, "\n".join(kept)).state != "ready", lines[gone]


def _told(name: str, line: str) -> bool:
    """Whether a line alone tells of work, or of a menu over the composer: without it the program is idle."""
    return {
        "gemini": "esc to cancel" in line,
        "opencode": bool(re.search(r" {3,}(?:Search|\S.* {6,}esc)$", line)),
        "pi": bool(re.match(r"── [⠀-⣿] ", line)),
    }[name]


@pytest.mark.parametrize(("name", "what"), fixtures("ready"))
def test_a_ready_screen_that_lost_its_last_lines_is_not_ready(name: str, what: str) -> None:
    lines = stripped(recorded(name, what))
    for count in range(1, len(lines) - 1):
        found = look(name, "\n".join(lines[:count]))
        assert found.state != "ready", count


@pytest.mark.parametrize(("name", "what"), fixtures("ready", "working", "dialog", "loading"))
def test_colours_and_blank_lines_below_change_nothing(name: str, what: str) -> None:
    text = recorded(name, what)
    coloured = "\n".join(f"\x1b[38;5;12m{line}\x1b[0m   " for line in text.split("\n"))
    assert look(name, coloured) == look(name, text)
    assert look(name, f"{text}\n\n\n\n") == look(name, text)


OLD = ("ready-after-turn", "working-thinking", "dialog-permission-shell")


@pytest.mark.parametrize(("name", "size"), sizes(*OLD))
def test_an_old_screen_in_the_scrollback_says_nothing(name: str, size: str) -> None:
    ready = recorded(name, f"ready-after-turn-{size}")
    for what in ("working-thinking", "dialog-permission-shell"):
        now = recorded(name, f"{what}-{size}")
        if name != "opencode":
            assert look(name, f"{ready.rstrip()}\n{now}") == look(name, now)


@pytest.mark.parametrize("size", of("gemini", "dialog-trust"))
def test_the_trust_dialog_that_stays_above_after_the_restart_is_not_answered_again(size: str) -> None:
    dialog = stripped(recorded("gemini", f"dialog-trust-{size}"))
    assert look("gemini", "\n".join(dialog)).kind == "trust"
    for below in ("", "\n Gemini CLI is restarting to apply the trust changes..."):
        found = look("gemini", "\n".join(dialog) + f"\n\n{below or ' x'}\n")
        assert (found.state, found.keys) == ("loading", ())


@pytest.mark.parametrize("size", of("gemini", "ready-after-turn"))
def test_geminis_composer_before_the_trust_dialog_is_not_ready(size: str) -> None:
    """It is drawn a moment before the question is; Enter would answer that."""
    after = stripped(recorded("gemini", f"ready-after-turn-{size}"))
    start = max(number for number, line in enumerate(after) if re.fullmatch("─{20,}", line))
    composer = "\n".join(after[start - 1 :])
    warning = "⚠  Warning: True color (24-bit) support not detected.\n   a better visual experience.\n"
    for above in ("\n", "\n\n\n", f"\n{warning}\n\n"):
        assert look("gemini", above + composer).rule == "first frame"
    restart = "\n Gemini CLI is restarting to apply the trust changes...\n\n"
    for above in ("old text\n" + restart, "old text\n" + restart + warning + "\n"):
        assert look("gemini", above + composer).rule == "restarting"
    assert look("gemini", "✦ All done.\n\n" + composer).state == "ready"


def test_a_folder_that_stays_untrusted_is_no_reason_to_wait() -> None:
    """The composer that the first process leaves behind looks ready but for one column of its footer."""
    frame = recorded("gemini", "loading-between-processes")
    assert look("gemini", frame).rule == "between processes"
    assert look("gemini", frame.replace("[SessionSummary] No session files found", "")).state == "loading"
    assert look("gemini", frame.replace(" no sandbox", " untrusted ")).state == "ready"


def test_geminis_shell_mode_takes_no_text() -> None:
    ready = recorded("gemini", "ready-after-turn-110x36")
    assert look("gemini", ready).state == "ready"
    assert look("gemini", re.sub(r"^ >  ", " !  ", ready, flags=re.MULTILINE)).state == "loading"


def test_what_a_resize_leaves_below_geminis_footer_does_not_hide_it() -> None:
    ready = recorded("gemini", "ready-after-turn-80x24").rstrip()
    assert look("gemini", f"{ready}\n\n                       /model\n").state == "ready"
    assert look("gemini", f"{ready}\n│ ● 1. Allow once │\n").state == "loading"


@pytest.mark.parametrize("size", of("opencode", "ready-after-turn"))
def test_opencodes_footer_is_late(size: str) -> None:
    """For seconds after a text was sent, nothing but the text itself tells that it was."""
    ready = stripped(recorded("opencode", f"ready-after-turn-{size}"))
    mark = max(number for number, line in enumerate(ready) if line.startswith("     ▣"))
    sent = [*ready[: mark + 1], "", "  ┃", "  ┃  another text", "  ┃", "", *ready[mark + 1 :]]
    assert look("opencode", "\n".join(ready)).state == "ready"
    assert look("opencode", "\n".join(sent)).state == "loading"


@pytest.mark.parametrize(
    "footer",
    [
        "   ⬝⬝⬝■■■■■  esc interrupt      tab agents  ctrl+p commands",
        "   ■■■■■■■■  esc again to interrupt     145  ctrl+p commands",
        "   ■■■⬝⬝⬝⬝⬝ a very long message of the server [retrying in 2s attempt #2] ctrl+p commands",
        "   ⬝■■■■■■⬝ ctrl+p commands",
        "   145  esc interrupt",
    ],
)
def test_every_footer_of_opencode_that_tells_of_work(footer: str) -> None:
    lines = stripped(recorded("opencode", "ready-after-turn-110x36"))
    assert look("opencode", "\n".join([*lines[:-1], footer])).state == "working"


def test_a_menu_over_opencodes_composer_takes_the_text_instead() -> None:
    found = look("opencode", recorded("opencode", "dialog-menu-110x36"))
    assert (found.state, found.kind, found.keys) == ("dialog", "menu", ())


@pytest.mark.parametrize("status", ["Working", "Retrying (1/3) in 2s... (escape to cancel)", "Compacting"])
def test_every_border_of_pi_that_tells_of_work(status: str) -> None:
    lines = stripped(recorded("pi", "ready-after-turn-110x36"))
    borders = [number for number, line in enumerate(lines) if re.fullmatch("─{20,}", line)]
    lines[borders[-2]] = f"── ⠹ {status} " + "─" * (len(lines[borders[-1]]) - len(status) - 6)
    assert look("pi", "\n".join(lines)).state == "working"
    lines[borders[-1] : borders[-1]] = ["a text", "─" * 110, "in the composer"]
    assert look("pi", "\n".join(lines)).state == "working"


@pytest.mark.parametrize("below", ["To resume this session: pi --session 1", "Pane is dead (status 0)"])
def test_what_pi_leaves_behind_is_not_ready(below: str) -> None:
    ready = recorded("pi", "ready-after-turn-110x36").rstrip()
    assert look("pi", f"{ready}\n{below}\n").state == "loading"
    assert look("pi", f"{ready}\n\n{below}\n").state == "loading"


def test_pi_without_a_model_asks_for_a_login() -> None:
    ready = recorded("pi", "ready-fresh-110x36").rstrip()
    figures = "0.0%/0 (auto)".ljust(103) + "unknown"
    found = look("pi", "\n".join([*ready.split("\n")[:-1], figures]))
    assert (found.state, found.kind) == ("dialog", "login")


@pytest.mark.parametrize(("name", "size"), sizes("dialog-permission-shell", "dialog-permission-edit"))
def test_a_permission_is_never_answered_without_consent(name: str, size: str) -> None:
    for what in ("shell", "edit"):
        found = look(name, recorded(name, f"dialog-permission-{what}-{size}"))
        assert (found.kind, found.consent, found.reject) == ("permission", True, ("Escape",))
        assert found.keys


@pytest.mark.parametrize(
    ("name", "text", "misread"),
    [
        ("gemini", "/quit", True),
        ("gemini", "  /quit now", True),
        ("gemini", "a path like /etc", False),
        ("gemini", "ends with \\", True),
        ("gemini", "!echo", False),
        ("opencode", "/tmp", True),
        ("opencode", " /tmp", False),
        ("opencode", "exit", True),
        ("opencode", "exit the loop", False),
        ("pi", "!echo hi", True),
        ("pi", " !echo hi", True),
        ("pi", "hi!", False),
        ("pi", "ends with \\", True),
    ],
)
def test_texts_that_are_taken_for_something_else(name: str, text: str, misread: bool) -> None:
    terminal = manifest(name).terminal
    found = text[:1] in terminal.disarmed or re.search(terminal.misread, text) is not None
    assert found == misread


@pytest.mark.parametrize(("name", "what"), fixtures("ready", "working", "dialog", "loading"))
def test_no_screen_takes_long_to_read(name: str, what: str) -> None:
    """A rule that can match a line in two ways takes twice as long with every line."""
    lines = stripped(recorded(name, what))
    padding = [" " * 150 + "text"] * 40
    for place in (0, len(lines) // 2, max(0, len(lines) - 8), len(lines) - 1):
        screen = "\n".join([*lines[:place], *padding, *lines[place:]])
        started = time.process_time()
        look(name, screen)
        assert time.process_time() - started < 1.0, place
