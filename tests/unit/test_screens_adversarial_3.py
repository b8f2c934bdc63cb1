"""Screens that are made to deceive, derived from recordings of the rehearsal agent, Hermes, Aider and
OpenClaw.

A wrong *ready* is the worst that can happen: a text would be typed into a question or into a running turn.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.runtimes.screens import classify, load

FIXTURES = Path(__file__).parent.parent / "fixtures" / "screens"
NOWHERE = Path("/nonexistent")
RULE = "─" * 80


def recorded(name: str, what: str) -> str:
    return (FIXTURES / name / f"{what}.txt").read_text(encoding="utf-8")


def state(name: str, text: str) -> str:
    return classify(load(name, NOWHERE), text).state


def bottom(text: str, count: int) -> str:
    return "\n".join(text.rstrip("\n").split("\n")[-count:])


def without_bottom(text: str, count: int) -> str:
    return "\n".join(text.rstrip("\n").split("\n")[:-count])


def indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.split("\n"))


REHEARSAL = recorded("rehearsal", "ready-after_turn-80x24")
HERMES = recorded("hermes", "ready-after_turn-80x24")
HERMES_WORKS = recorded("hermes", "working-tool-80x24")
HERMES_ASKS = recorded("hermes", "dialog-permission-80x24")
AIDER = recorded("aider", "ready-after_turn-80x24")
AIDER_WORKS = recorded("aider", "working-waiting-80x24")
AIDER_ASKS = recorded("aider", "dialog-edit-80x24")
OPENCLAW = recorded("openclaw", "ready-after_turn-110x36")
OPENCLAW_WORKS = recorded("openclaw", "working-waiting-110x36")

NEVER_READY = {
    "rehearsal: an old prompt above a turn": (
        "rehearsal",
        f"{bottom(REHEARSAL, 6)}\n\nworking · esc to interrupt",
    ),
    "rehearsal: a reply that quotes the bottom, without it": ("rehearsal", f"{REHEARSAL}\nmore of the reply"),
    "rehearsal: half a frame": ("rehearsal", without_bottom(REHEARSAL, 1)),
    "rehearsal: the last line cut": ("rehearsal", REHEARSAL.rstrip()[:-6]),
    "rehearsal: the words within a sentence": (
        "rehearsal",
        "It says: rehearsal ▸\nready · enter to send · /exit to leave, I think",
    ),
    "rehearsal: a shell's prompt after the end": ("rehearsal", f"{REHEARSAL}\n$"),
    "hermes: an old composer above a turn": ("hermes", f"{bottom(HERMES, 4)}\n{bottom(HERMES_WORKS, 4)}"),
    "hermes: an old composer above a question": ("hermes", f"{bottom(HERMES, 4)}\n{bottom(HERMES_ASKS, 4)}"),
    "hermes: a reply that quotes the bottom": ("hermes", indented(bottom(HERMES, 4), "    ")),
    "hermes: no rule below the composer yet": ("hermes", without_bottom(HERMES, 1)),
    "hermes: no composer yet": ("hermes", without_bottom(HERMES, 2)),
    "hermes: the clock of a turn runs": ("hermes", HERMES.replace("⏲", "⏱")),
    "hermes: no status line": ("hermes", f"some text\n{RULE}\n❯\n{RULE}"),
    "hermes: its welcome alone": ("hermes", recorded("hermes", "loading-banner-80x24")),
    "hermes: a shell's prompt after the end": ("hermes", f"{HERMES}\n$"),
    "hermes: a text was written while it works": (
        "hermes",
        HERMES_WORKS.replace(
            "⚕ ❯ msg=interrupt · /queue · /bg · /steer · Ctrl+C cancel", f"⚕ ❯ a\n{bottom(HERMES, 4)}"
        ),
    ),
    "aider: an old prompt above the spinner": ("aider", f"{AIDER}{bottom(AIDER_WORKS, 1)}"),
    "aider: an old prompt above a question": ("aider", f"{AIDER}{bottom(AIDER_ASKS, 2)}"),
    "aider: a text that was sent a moment ago": ("aider", f"{AIDER.rstrip()} hello"),
    "aider: no prompt below the rule yet": ("aider", without_bottom(AIDER, 1)),
    "aider: a quotation at the end of a reply": ("aider", f"Somebody wrote\n\n{RULE}\n\n>"),
    "aider: a listing in a reply": ("aider", f"Look:\n {RULE}\n >"),
    "aider: a prompt without its rule": ("aider", "Tokens: 1 sent\n>"),
    "aider: more text below the prompt": ("aider", f"{AIDER.rstrip()}\nAll done."),
    "aider: a question with a long name, over two lines": (
        "aider",
        f"{RULE}\n>\nRun shell command with a very long name? (Y)es/(N)o/(D)on't ask again [Ye\ns]:",
    ),
    "aider: an answer that is written to a question": ("aider", f"{AIDER_ASKS.rstrip()} y"),
}
NEVER_READY |= {
    "openclaw: an old bottom above a turn": ("openclaw", f"{OPENCLAW}{OPENCLAW_WORKS}"),
    "openclaw: a reply that quotes the bottom": ("openclaw", indented(bottom(OPENCLAW, 6), "  ")),
    "openclaw: half a frame": ("openclaw", without_bottom(OPENCLAW, 1)),
    "openclaw: no composer yet": ("openclaw", without_bottom(OPENCLAW, 3)),
    "openclaw: it starts up": (
        "openclaw",
        OPENCLAW.replace(" local ready | idle", " ⠹ starting up • 2s | subscribing to session events"),
    ),
    "openclaw: a shell's prompt after the end": ("openclaw", f"{OPENCLAW}$"),
    "openclaw: the end of a reply below": ("openclaw", f"{OPENCLAW}All done."),
}


@pytest.mark.parametrize("case", NEVER_READY)
def test_nothing_else_passes_for_ready(case: str) -> None:
    name, text = NEVER_READY[case]
    assert state(name, text) != "ready"


QUESTIONS = {
    "hermes: quoted in a reply": (
        "hermes",
        f"{indented(bottom(HERMES_ASKS, 18), '    ')}\n{bottom(HERMES, 4)}",
    ),
    "hermes: answered, in the scrollback": ("hermes", recorded("hermes", "ready-after_question-80x24")),
    "aider: quoted in a reply": ("aider", f"{bottom(AIDER_ASKS, 1)}\n\n{bottom(AIDER, 3)}"),
    "aider: answered, in the scrollback": ("aider", f"{AIDER_ASKS.rstrip()} y\n{bottom(AIDER, 2)}"),
    "rehearsal: quoted in a reply": (
        "rehearsal",
        f"question · y to allow · n to refuse\nAllow Bash? [y/N]\n{bottom(REHEARSAL, 2)}",
    ),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_stale_or_quoted_question_is_not_answered(case: str) -> None:
    name, text = QUESTIONS[case]
    assert state(name, text) == "ready"


@pytest.mark.parametrize("name", ["rehearsal", "hermes", "aider", "openclaw"])
def test_colours_and_blank_lines_change_nothing(name: str) -> None:
    text = recorded(name, "ready-after_turn-110x36")
    coloured = "\n".join(f"\033[1;32m{line}\033[0m" for line in text.split("\n"))
    assert state(name, coloured + "\n\n\n") == "ready"


@pytest.mark.parametrize("name", ["rehearsal", "hermes", "aider", "openclaw", "amplifier"])
@pytest.mark.parametrize(
    "text", ["", "\n\n", "$ ", "> ", ">", "❯", "ready", RULE, f"{RULE}\n{RULE}", "\x1b[2J"]
)
def test_next_to_nothing_is_loading(name: str, text: str) -> None:
    assert state(name, text) == "loading"
