"""A walk through Pi's terminal interface."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

IDLE = r"^─+\n.*\n─+\n\S.*\n\S.*%/\S.*\s*\Z"
BUSY = r"^── \S Working "
ASKS = r"cancel\n\n─+\n\S.*\n\S.*\s*\Z"
SLOW = Step(text="one two three four five six seven eight nine ten", thought="hm", delay=3, pace=0.3)
LINE = "─" * 60
HOSTILE = {
    "ready": f"It ends so:\n\n```\n{LINE}\n\n{LINE}\n/work\n0.0%/200k (auto)      claude-sonnet-4-5\n```",
    "dialog": "It asks so:\n\n```\n → Yes\n   No\n\n ↑↓ navigate  enter select  escape/ctrl+c cancel\n```",
    "working": f"It works so:\n\n```\n── ⠹ Working {LINE}\n\n{LINE}\n```",
}


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    (stage.work / ".pi").mkdir()
    (stage.work / ".pi" / "settings.json").write_text("{}")
    with stage.running():
        stage.record("dialog-trust", "Trust project folder")
        stage.keys("Enter")
        stage.record("ready-fresh", IDLE)
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
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
    stage.record("ready-pasted", "paste #1")
    stage.keys("C-c")
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", BUSY, still=False)
    stage.record("working-streaming", "^ one two three", still=False)
    stage.type("typed meanwhile")
    stage.record("working-text", still=False)
    stage.keys("C-c")
    stage.record("ready-after-turn", r"nine ten\n[\s\S]*" + IDLE)
    stage.play(Step(text="late", delay=30))
    stage.say("hello again")
    stage.wait(BUSY)
    stage.say("and more")
    stage.record("working-queued", "Steering", still=False)
    stage.keys("Escape")
    stage.record("ready-interrupted", "aborted")
    stage.keys("C-c")


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; echo hi > f.txt"}), Step(text="all ran"))
    stage.say("run a command")
    stage.record("dialog-permission-shell", ASKS)
    stage.keys("Down")
    stage.record("dialog-permission-moved", "→ No")
    stage.keys("Up", "Enter")
    stage.record("working-tool", BUSY, still=False)
    stage.wait(r"all ran\n[\s\S]*" + IDLE)
    stage.play(Step(tool="write", input={"path": "n.txt", "content": "a\nb\n" * 60}), Step(text="no file"))
    stage.say("write a file")
    stage.record("dialog-permission-edit", ASKS)
    stage.keys("Escape")
    stage.record("ready-rejected", r"no file\n[\s\S]*" + IDLE)


def errors(stage: Stage) -> None:
    stage.play(Step(status=429, message="slow down"))
    stage.say("fail")
    stage.record("working-retrying", "^── . Retrying", still=False)
    stage.keys("Escape")
    stage.wait("Retry cancelled|aborted")
    stage.play(Step(status=400, message="bad"))
    stage.say("fail at once")
    stage.record("ready-error", r"Error: 400[\s\S]*" + IDLE)


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows."""
    for name, text in HOSTILE.items():
        call = {"command": "sleep 4"}
        stage.play(Step(text=text, tool="shell", input=call), Step(text=f"{name} again: {text}"))
        stage.say("imitate")
        stage.record(f"dialog-hostile-{name}", ASKS)
        stage.keys("Enter")
        stage.until(lambda screen: re.search(ASKS, screen) is None, "an answer")
        stage.wait(r"^── \S Working ─+\n\n─+\n/")
        stage.record(f"working-hostile-{name}", still=False)
        stage.record(f"ready-hostile-{name}", rf"{name} again[\s\S]*" + IDLE)


def starts(stage: Stage) -> None:
    """Without questions."""
    stage.fresh()
    with stage.running("bypass"):
        stage.record("ready-bypass", IDLE)
