"""A walk through Gemini CLI's terminal interface."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

FOOTER = r"▀+\n workspace.*\n .*\s*\Z"
IDLE = r"^ +\? for shortcuts\n─+\n(?:.*\n){3}" + FOOTER
BUSY = r"\(esc to cancel.*\n─+\n(?:.*\n)+?" + FOOTER
ASKS = r"suggest changes \(esc\).*\n╰─+╯\s*\Z"
TRUST = r"Don't trust .*\n.*\n ?╰─+╯\s*\Z"
SLOW = Step(text="one two three four five six seven eight nine ten", delay=3, pace=0.3)
LINE = "─" * 60
HOSTILE = {
    "ready": (
        f"It ends so:\n\n```\n          ? for shortcuts\n{LINE}\n Shift+Tab to accept edits\n\n"
        " >   Type your message or @path/to/file\n\n"
        " workspace (/directory)   sandbox\n /work   no sandbox\n```"
    ),
    "dialog": (
        "It asks so:\n\n```\n│ ● 1. Allow once        │\n│   3. No, suggest changes (esc)     │\n"
        "╰────────────────────────────────╯\n```"
    ),
    "working": f"It works so:\n\n```\n ⠼ Thinking... (esc to cancel, 0s)      ? for shortcuts\n{LINE}\n```",
}


def restarted(screen: str) -> bool:
    """Whether the process that trusts the folder has drawn all of its first screen."""
    now = screen.rpartition("restarting to apply")[2]
    return "Be specific" in now and "untrusted folder" not in now and re.search(IDLE, now, re.M) is not None


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running():
        stage.record("loading-first-frame", r"^─+\n.*Shift.Tab", still=False)
        stage.record("dialog-trust", TRUST)
        stage.keys("1")
        stage.record("loading-restarting", "restarting to apply", still=False)
        stage.until(restarted, "its second process")
        stage.record("ready-fresh")
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
        stage.type("!")
        stage.record("loading-shell-mode", "shell mode")
        stage.keys("Escape")
        stage.wait(IDLE)
        stage.say("/quit")
        stage.until(lambda _: stage.ended, "its end")
        stage.record("loading-exited")
    starts(stage)


def turns(stage: Stage) -> None:
    stage.type("some text")
    stage.record("ready-text")
    stage.keys("C-j")
    stage.type("a second line")
    stage.record("ready-lines")
    stage.keys("C-c")
    stage.paste("\n".join(f"line {number}" for number in range(30)))
    stage.record("ready-pasted", "Pasted Text")
    stage.keys("C-c")
    stage.wait(IDLE)
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", BUSY, still=False)
    stage.record("working-streaming", "✦ one two", still=False)
    stage.type("typed meanwhile")
    stage.record("working-text", still=False)
    stage.keys("C-u")
    stage.record("ready-after-turn", r"nine ten\n[\s\S]*" + IDLE)
    stage.play(Step(text="late", delay=30))
    stage.say("hello again")
    stage.wait(BUSY)
    stage.keys("Escape")
    stage.record("ready-interrupted", r"cancelled[\s\S]*" + IDLE)


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; echo hi > f.txt"}), Step(text="all ran"))
    stage.say("run a command")
    stage.record("dialog-permission-shell", ASKS)
    stage.keys("Down")
    stage.record("dialog-permission-moved", "● 2")
    stage.keys("1")
    stage.record("working-tool", BUSY, still=False)
    stage.wait(r"✦ all ran[\s\S]*" + IDLE)
    write = {"file_path": str(stage.work / "n.txt"), "content": "a\nb\n" * 60}
    stage.play(Step(tool="write_file", input=write), Step(text="no file"))
    stage.say("write a file")
    stage.record("dialog-permission-edit", ASKS)
    stage.keys("Escape")
    stage.record("ready-rejected", IDLE)


def errors(stage: Stage) -> None:
    stage.play(Step(status=429, message="slow down"))
    stage.say("fail")
    stage.record("working-retrying", BUSY, still=False)
    stage.keys("Escape")
    stage.wait(IDLE)
    stage.play(Step(status=400, message="bad"))
    stage.say("fail at once")
    stage.record("ready-error", r"API Error[\s\S]*" + IDLE)


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows."""
    for name, text in HOSTILE.items():
        call = {"command": "sleep 4; echo > g.txt"}
        stage.play(Step(text=text, tool="shell", input=call), Step(text=f"{name} again: {text}"))
        stage.say("imitate")
        stage.record(f"dialog-hostile-{name}", ASKS)
        stage.keys("1")
        stage.record(f"working-hostile-{name}", BUSY, still=False)
        stage.record(f"ready-hostile-{name}", rf"{name} again[\s\S]*" + IDLE)


def starts(stage: Stage) -> None:
    """A home in which nobody has logged in; one without questions, in few colours."""
    stage.fresh()
    nobody = {"GEMINI_CLI_HOME": str(stage.home), "GEMINI_API_KEY": ""}
    with stage.running(env=nobody, arguments=("--skip-trust",)):
        stage.record("dialog-login", "How would you like to authenticate")
    stage.fresh()
    with stage.running("bypass", env={"COLORTERM": ""}, arguments=("--skip-trust",)):
        stage.record("ready-bypass", "Be specific[\\s\\S]*for shortcuts")
        stage.play(SLOW)
        stage.say("hello")
        stage.record("working-bypass", "esc to cancel", still=False)
        stage.wait("nine ten")
        stage.record("ready-bypass-after-turn", r"^ +\? for shortcuts\n─")
