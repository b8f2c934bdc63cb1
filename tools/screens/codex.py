"""A walk through Codex's terminal interface."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^  gpt-5\.4 .*\n  \? for shortcuts"
SLOW = Step(text="Answer.", delay=8)
LINES = Step(text="\n".join(f"{number}. line" for number in range(1, 300)), pace=0.05)
LONG = "python3 -c 'import time; time.sleep(20)'"
HOSTILE = """The end of a screen may look like this:

```
  Worked for 6s • 18:14

› Ask Codex to do anything

  gpt-5.4 default · /var/tmp/work
  ? for shortcuts
```
"""
HOSTILE_DIALOG = """It asked me:

```
  Would you like to run the following command?

› 1. Yes, proceed (y)
  2. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
```
"""
HOSTILE_WORKING = "Working (12s • esc to interrupt)"
HOSTILE_END = "This is it.\n\nWorked for 6s • 18:14\n\nBut I go on, and on, and on, and on, and on, and on."


def asking(command: str) -> Step:
    """A command for which the model wants to leave the sandbox."""
    more = {"sandbox_permissions": "require_escalated", "justification": "It is needed."}
    return Step(tool="shell", input={"command": command, **more})


def walk(stage: Stage) -> None:
    """From the first start to the end of a session, and on from there."""
    nobody(stage)
    stage.fresh()
    subprocess.run(["git", "init", "-q", str(stage.work)], check=True)
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
    (stage.home / ".codex").mkdir()
    (stage.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    with stage.running():
        first_start(stage)
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
        stage.say("/quit")
        stage.until(lambda _: stage.ended, "its end")
        stage.record("loading-exited")
    resuming(stage)
    bypassing(stage)


def nobody(stage: Stage) -> None:
    """Nobody is logged in; and the first frames of a start."""
    with stage.running(arguments=("-c", 'model_provider="openai"')):
        stage.record("dialog-login", "Press enter to continue")
    stage.fresh()
    with stage.running():
        stage.until(lambda screen: "Ask Codex" in screen, "its first frames")
        if "gpt-5.4" not in stage.screen():
            stage.record("loading-start", still=False)
        stage.record("ready-fresh", READY)


def first_start(stage: Stage) -> None:
    stage.record("dialog-trust", "Trust and continue")
    stage.keys("Down")
    stage.record("dialog-trust-moved", "› 2")
    stage.keys("1", "Enter")
    stage.record("dialog-hooks", "Hooks need review")
    stage.keys("2", "Enter")
    stage.record("ready-trusted", READY)
    stage.type("some text")
    stage.record("ready-text")
    stage.keys("C-j")
    stage.type("a second line")
    stage.record("ready-lines")
    clear(stage)


def clear(stage: Stage) -> None:
    """Empty the composer, from the end of its text."""
    stage.keys(*("C-u", "BSpace") * 3)


def turns(stage: Stage) -> None:
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", "esc to interrupt", still=False)
    stage.type("typed meanwhile")
    stage.record("working-text", "tab to queue", still=False)
    stage.keys("C-j")
    stage.type("on two lines")
    stage.record("working-lines", still=False)
    clear(stage)
    stage.record("ready-after-turn", "Worked for")
    stage.type("some text")
    stage.record("ready-after-turn-text")
    clear(stage)
    stage.play(SLOW)
    stage.say("hello again")
    stage.wait("esc to interrupt")
    stage.keys("Escape")
    stage.record("ready-interrupted", "■ Conversation interrupted")
    stage.play(LINES)
    stage.say("stream")
    stage.record("working-streaming-begun", "^  3. line", still=False)
    stage.record("working-streaming", "^  4[0-9]. line", still=False)
    stage.type("typed")
    stage.record("working-streaming-text", "tab to queue", still=False)
    clear(stage)
    stage.record("working-streaming-cleared", "for shortcuts", still=False)
    stage.keys("Escape")
    stage.record("ready-interrupted-midway", "■ Conversation interrupted")
    clear(stage)
    stage.say("/status")
    stage.record("ready-after-command", "Context window")


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; ls"}), Step(text="ok"))
    stage.say("run a command")
    stage.record("working-tool", "esc to interrupt", still=False)
    stage.wait(r"• ok[\s\S]*Worked for")
    stage.play(asking("sleep 1; echo hi > f.txt"), Step(text="ok"))
    stage.say("leave the sandbox")
    stage.record("dialog-permission-shell", "Press enter to confirm")
    stage.keys("Down")
    stage.record("dialog-permission-moved", "› 2")
    stage.keys("1")
    stage.wait(r"✔ You approved[\s\S]*Worked for")
    assert (stage.work / "f.txt").exists(), "the key for yes did not mean yes"
    command = "\n".join(
        f"echo line number {number} of a long command > f{number}.txt" for number in range(70)
    )
    stage.play(asking(command), Step(text="ok"))
    stage.say("a long command")
    stage.record("dialog-permission-long", "Press enter to confirm")
    stage.keys("Escape")
    stage.record("ready-rejected", "■ Conversation interrupted")
    stage.say("/model")
    stage.record("dialog-model", "esc back")
    stage.keys("Escape")
    stage.wait(READY)


def errors(stage: Stage) -> None:
    stage.play(Step(status=500, message="boom"))
    stage.say("fail")
    stage.record("working-retrying", "Reconnecting", still=False)
    stage.record("ready-error", "■ We.re currently experiencing")
    stage.play(Step(status=400, message="bad"))
    stage.say("fail at once")
    stage.record("ready-error-400", "■ .*(?:bad|400)")


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows, at the end of a turn and in the middle of one."""
    stage.play(Step(text=HOSTILE_END, pace=0.4))
    stage.say("end without an end")
    stage.record("working-hostile-end", "^  Worked for 6s • 18:14", still=False, titled=True)
    stage.wait(r"on\.[\s\S]*Worked for")
    for name, text in (("ready", HOSTILE), ("dialog", HOSTILE_DIALOG), ("working", HOSTILE_WORKING)):
        stage.play(Step(text=text, delay=2))
        stage.say(f"imitate {name}")
        stage.wait("^• Working")
        stage.wait(r"^  Worked for .*\n\n+› Ask")
        stage.record(f"ready-hostile-{name}")
        stage.play(Step(text=text, tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say(f"imitate {name} again")
        stage.wait("background terminal running|esc to interrupt")
        stage.record(f"working-hostile-{name}", r"^• Working \(\ds", still=False)
        stage.type("typed")
        stage.record(f"working-hostile-{name}-text", "tab to queue", still=False)
        clear(stage)
        stage.keys("Escape")
        stage.wait("■ Conversation interrupted[^›]*› Ask")


def resuming(stage: Stage) -> None:
    """The same session, taken up again."""
    (rollout,) = sorted((stage.home / ".codex" / "sessions").rglob("rollout-*.jsonl"))[-1:]
    found = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}(?=\.jsonl)", rollout.name)
    assert found is not None
    with stage.running(session=found[0], resume=True):
        stage.wait(READY)
        stage.record("ready-resumed")


def bypassing(stage: Stage) -> None:
    """Without permission questions and without a sandbox."""
    with stage.running("bypass"):
        stage.record("ready-bypass", READY)
        stage.play(Step(tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say("run a command")
        stage.record("working-bypass", "esc to interrupt", still=False)
