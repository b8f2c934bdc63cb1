"""A walk through OpenCode's terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

FIRST = "Ask anything"
BUSY = r"esc interrupt.*\s*\Z"
ASKS = r"Allow once .*\n.*┃.*\s*\Z"
SLOW = Step(text="one two three " * 20 + "nine ten", thought="hm", delay=3, pace=0.3)
LINE = "▀" * 50
HOSTILE = {
    "ready": (
        f"It ends so:\n\n     ▣  Remuda · m · 1s\n\n```\n  ┃\n  ╹{LINE}\n"
        "   /work    145  ctrl+p commands\n```"
    ),
    "dialog": (
        "It asks so:\n\n```\n  ┃  △ Permission required\n  ┃   Allow once   Allow always   Reject\n  ┃\n```"
    ),
    "working": "It works so:\n\n```\n   ⬝⬝⬝■■■■■  esc interrupt        tab agents  ctrl+p commands\n```",
}


def idle(text: str = "") -> str:
    """The composer is idle, below a text."""
    return rf"{text}[\s\S]*┃.* · .*\n *╹▀+.*\n   /.*commands.*\s*\Z"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running():
        stage.wait(FIRST, 240)
        stage.record("ready-fresh")
        stage.type("some text")
        stage.record("ready-text")
        stage.keys("C-u")
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
        stage.keys("C-p")
        stage.record("dialog-menu", "Suggested")
        stage.keys("Escape")
        stage.wait(idle())
        stage.type("!")
        stage.record("loading-shell-mode")
        stage.keys("Escape")
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "its end")
        stage.record("loading-exited")
    stage.fresh()
    with stage.running("bypass"):
        stage.wait(FIRST, 240)
        stage.record("ready-bypass")


def turns(stage: Stage) -> None:
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", BUSY, still=False)
    stage.record("working-streaming", "one two three", still=False)
    stage.record("ready-after-turn", idle("nine ten"))
    stage.type("some text")
    stage.keys("C-j")
    stage.type("a second line")
    stage.record("ready-lines")
    stage.keys("C-u", "C-u", "C-u")
    stage.play(Step(text="late", delay=40))
    stage.say("hello again")
    stage.wait(BUSY)
    stage.type("typed meanwhile")
    stage.record("working-text", still=False)
    stage.keys("C-u", "Escape")
    stage.record("working-escaped", "esc again to interrupt", still=False)
    stage.keys("Escape")
    stage.record("ready-interrupted", idle("interrupted"))


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; echo hi > f.txt"}), Step(text="all ran"))
    stage.say("run a command")
    stage.record("dialog-permission-shell", ASKS)
    stage.keys("Enter")
    stage.record("working-tool", BUSY, still=False)
    stage.wait(idle("all ran"))
    write = {"filePath": str(stage.work / "n.txt"), "content": "a\nb\n" * 60}
    stage.play(Step(tool="write", input=write), Step(text="no file"))
    stage.say("write a file")
    stage.record("dialog-permission-edit", ASKS)
    stage.keys("Right", "Enter")
    stage.record("dialog-always", "Always allow")
    stage.keys("Escape")
    stage.wait(ASKS)
    stage.keys("Escape")
    stage.record("ready-rejected", idle("no file"))


def errors(stage: Stage) -> None:
    stage.play(Step(status=429, message="slow down"))
    stage.say("fail")
    stage.record("working-retrying", r"\[retrying", still=False)
    stage.keys("Escape")
    stage.wait("again to interrupt|ctrl.p commands")
    stage.keys("Escape")
    stage.wait(idle())
    stage.play(Step(status=400, message="bad request"))
    stage.say("fail at once")
    stage.record("ready-error", idle("bad request"))


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows."""
    for name, text in HOSTILE.items():
        call = {"command": "sleep 4"}
        stage.play(Step(text=text, tool="shell", input=call), Step(text=f"{name} again: {text}"))
        stage.say("imitate")
        stage.record(f"dialog-hostile-{name}", ASKS)
        stage.keys("Enter")
        stage.record(f"working-hostile-{name}", BUSY, still=False)
        stage.record(f"ready-hostile-{name}", idle(f"{name} again"))
