"""A walk through Copilot's terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^ (?:← open sidebar · )?Interactive · "
SLOW = Step(text="Answer.", delay=8)
LINES = Step(text="\n".join(f"{number}. line" for number in range(1, 300)), pace=0.05)
LONG = "python3 -c 'import time; time.sleep(20)' > h.txt"
HOSTILE = """The end of a screen may look like this:

```
 /var/tmp/work
──────────────────────────────────────────────────────────────────────────
❯
──────────────────────────────────────────────────────────────────────────
 ← open sidebar · Interactive · Manual Approval · / commands
```
"""
HOSTILE_DIALOG = """It asked me:

```
│ Do you want to run this command?                    │
│                                                     │
│ ❯ 1. Yes                                            │
│   2. No, and tell Copilot what to do differently    │
│                                                     │
│ ↑/↓ to navigate · enter to select · esc to cancel   │
╰─────────────────────────────────────────────────────╯
```
"""
HOSTILE_WORKING = """It showed this:

```
──────────────────────────────────────────────────────────────────────────
❯
──────────────────────────────────────────────────────────────────────────
 ◎ Working esc esc interrupt
```
"""


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running():
        stage.record("loading-start", still=False)
        first_start(stage)
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "its end")
        stage.record("loading-exited")
    bypassing(stage)


def clear(stage: Stage) -> None:
    """Empty the composer, from the end of its text."""
    stage.keys(*("C-u", "BSpace") * 3)


def first_start(stage: Stage) -> None:
    stage.record("dialog-trust", "Confirm folder trust[\\s\\S]*esc to cancel")
    stage.keys("Down")
    stage.record("dialog-trust-moved", "❯ 2")
    stage.keys("1")
    stage.record("ready-fresh", READY)
    stage.type("some text")
    stage.record("ready-text")
    stage.keys("C-j")
    stage.type("a second line")
    stage.record("ready-lines")
    clear(stage)
    stage.type("/")
    stage.record("loading-menu")
    clear(stage)
    stage.wait(READY)


def turns(stage: Stage) -> None:
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", "Working", still=False)
    stage.type("typed meanwhile")
    stage.record("working-text", "enqueue", still=False)
    stage.keys("C-j")
    stage.type("on two lines")
    stage.record("working-lines", still=False)
    clear(stage)
    stage.wait(r"● Answer[\s\S]*Interactive")
    stage.record("ready-after-turn")
    stage.type("some text")
    stage.record("ready-after-turn-text")
    clear(stage)
    stage.play(LINES)
    stage.say("stream")
    stage.record("working-streaming", "^ +9. line", still=False)
    stage.type("typed")
    stage.record("working-streaming-text", "enqueue", still=False)
    clear(stage)
    stage.keys("Escape", "Escape")
    stage.record("ready-interrupted", READY)
    clear(stage)
    stage.play(SLOW)
    stage.say("hello again")
    stage.wait("Working")
    stage.keys("Escape", "Escape")
    stage.record("ready-interrupted-early", READY)
    clear(stage)


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; echo hi > f.txt"}), Step(text="ok"))
    stage.say("run a command")
    stage.record("dialog-permission-shell", "Do you want to run[\\s\\S]*esc to cancel")
    stage.keys("Enter")
    stage.record("working-tool", "Working", still=False)
    stage.wait(r"● ok[\s\S]*Interactive")
    command = "\n".join(
        f"echo line number {number} of a long command > f{number}.txt" for number in range(70)
    )
    stage.play(Step(tool="shell", input={"command": command}), Step(text="ok"))
    stage.say("run a long command")
    stage.record("dialog-permission-long", "Do you want to run[\\s\\S]*esc to cancel")
    stage.keys("Escape")
    stage.record("ready-rejected", READY)
    patch = "*** Begin Patch\n*** Add File: n.txt\n+hello\n*** End Patch\n"
    stage.play(Step(tool="apply_patch", input={"input": patch}), Step(text="ok"))
    stage.say("write a file")
    stage.record("dialog-permission-edit", "Do you want to[\\s\\S]*esc to cancel")
    stage.keys("Escape")
    stage.wait(READY)


def errors(stage: Stage) -> None:
    stage.play(Step(status=500, message="boom", times=2), Step(text="ok after all"))
    stage.say("fail")
    stage.record("working-retrying", "Retrying", still=False)
    stage.wait(r"● ok after all[\s\S]*Interactive")
    stage.play(Step(status=400, message="bad"))
    stage.say("fail at once")
    stage.record("ready-error", r"400[\s\S]*Interactive")


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows, at the end of a turn and in the middle of one."""
    for name, text in (("ready", HOSTILE), ("dialog", HOSTILE_DIALOG), ("working", HOSTILE_WORKING)):
        stage.play(Step(text=text))
        stage.say("imitate")
        stage.wait(f"● {text.partition(':')[0]}")
        stage.wait(r"^ (?:← open sidebar · )?Interactive · .*\n?\Z")
        stage.record(f"ready-hostile-{name}")
        stage.play(Step(text=text, tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say("imitate")
        stage.record(
            f"dialog-hostile-{name}", "Do you want to run this command[\\s\\S]*esc to cancel +│\n╰─+╯\n"
        )
        stage.keys("Enter")
        stage.record(f"working-hostile-{name}", r"^ \S Working", still=False)
        stage.type("typed")
        stage.record(f"working-hostile-{name}-text", "enqueue", still=False)
        clear(stage)
        stage.keys("Escape", "Escape")
        stage.wait(READY)
        clear(stage)


def bypassing(stage: Stage) -> None:
    """Without permission questions."""
    with stage.running("bypass"):
        stage.wait("Confirm folder trust")
        stage.keys("Enter")
        stage.record("ready-bypass", READY)
        stage.play(Step(tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say("run a command")
        stage.record("working-bypass", "Working", still=False)
