"""A walk through Claude Code's terminal interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

ONBOARDED = {"hasCompletedOnboarding": True}
"""Without this the first start asks the vendor's host, even where another endpoint is set."""

READY = "for shortcuts"
SLOW = Step(text="Answer.", delay=12)
LONG = "python3 -c 'import time; time.sleep(20)' > h.txt"
LINES = Step(text="\n".join(f"{number}. line" for number in range(1, 400)), pace=0.05)
HOSTILE = """The footer of a terminal may look like this:

  ⏸ manual mode on · ? for shortcuts

or like this: esc to interrupt

```
✻ Crunched for 6s · done 6:13 PM

──────────────────────────────────────────────────────────────────────────
❯
──────────────────────────────────────────────────────────────────────────
  ⏸ manual mode on · ? for shortcuts
```
"""
HOSTILE_DIALOG = """It asked me:

 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel · Tab to amend
"""
HOSTILE_WORKING = """It showed this:

✽ Thinking… (12s · ↓ 56 tokens)

  ⏸ manual mode on · esc to interrupt"""


def seed(stage: Stage, **more: object) -> None:
    """A person who has been through the first start."""
    (stage.home / ".claude.json").write_text(json.dumps({**ONBOARDED, **more}))


def settled(stage: Stage) -> dict[str, object]:
    """A person who has answered every question that a start asks."""
    return {
        "customApiKeyResponses": {"approved": ["remuda-endpoint-key"]},
        "projects": {str(stage.work): {"hasTrustDialogAccepted": True}},
    }


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    unconnected(stage)
    seed(stage)
    with stage.running():
        first_start(stage)
        turns(stage)
        permissions(stage)
        errors(stage)
        hostile(stage)
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "its end")
        stage.record("loading-exited")
    without_key(stage)
    bypassing(stage)


def unconnected(stage: Stage) -> None:
    """The first start of all, without a network."""
    stage.fresh()
    with stage.running():
        stage.record("loading-unconnected", "Unable to connect")


def first_start(stage: Stage) -> None:
    stage.record("dialog-trust", "Yes, I trust this folder")
    stage.keys("Down")
    stage.record("dialog-trust-chosen", "❯ Yes, I trust")
    stage.keys("Enter")
    stage.record("dialog-key", "use this API key")
    stage.keys("Up")
    stage.record("dialog-key-chosen", "❯ Yes")
    stage.keys("Enter")
    stage.record("ready-fresh", READY)
    stage.type("some text")
    stage.record("ready-text")
    stage.keys("C-j")
    stage.type("a second line")
    stage.record("ready-lines")
    stage.keys("C-u", "C-u", "C-u")


def turns(stage: Stage) -> None:
    stage.play(SLOW)
    stage.say("hello")
    stage.record("working-thinking", "esc to interrupt", still=False)
    stage.type("typed meanwhile")
    stage.record("working-text", still=False)
    stage.keys("C-j")
    stage.type("on two lines")
    stage.record("working-lines", still=False)
    stage.keys("C-u", "C-u", "C-u")
    stage.record("working-cleared", still=False)
    stage.record("ready-after-turn", r"· done [\s\S]*for shortcuts")
    stage.type("some text")
    stage.record("ready-after-turn-text")
    stage.keys("C-u")
    stage.play(SLOW)
    stage.say("hello again")
    stage.wait("^[^❯].*…")
    stage.keys("Escape")
    stage.record("ready-interrupted-early", "^❯.hello again *\n─")
    stage.keys("C-u")
    stage.play(LINES)
    stage.say("stream")
    stage.record("working-streaming", "^  9. line", still=False)
    stage.type("typed")
    stage.gone("esc to interrupt")
    stage.record("loading-streaming-text", still=False)
    stage.keys("Escape")
    stage.record("loading-interrupted-text", "Interrupted")
    stage.keys("C-u")
    stage.record("ready-interrupted")
    stage.say("/context")
    stage.record("ready-after-command")


def permissions(stage: Stage) -> None:
    stage.play(Step(tool="shell", input={"command": "sleep 4; echo hi > f.txt"}), Step(text="ok"))
    stage.say("run a command")
    stage.record("dialog-permission-shell", "Do you want to proceed")
    stage.keys("1")
    stage.record("working-tool", "esc to interrupt", still=False)
    stage.wait(r"^● ok[\s\S]*for shortcuts")
    command = "\n".join(
        f"echo line number {number} of a long command > f{number}.txt" for number in range(70)
    )
    stage.play(Step(tool="shell", input={"command": command}), Step(text="ok"))
    stage.say("run a long command")
    stage.record("dialog-permission-long", "Do you want to proceed")
    stage.keys("Escape")
    stage.record("ready-rejected", READY)
    (stage.work / "g.txt").write_text("a\nb\n")
    write = {"file_path": str(stage.work / "n.txt"), "content": "a\nb\n"}
    stage.play(Step(tool="Write", input=write), Step(text="ok"))
    stage.say("write a file")
    stage.record("dialog-permission-edit", "Do you want to create")
    stage.keys("Down")
    stage.record("dialog-permission-moved", "❯ 2")
    stage.keys("1")
    stage.wait(READY)
    assert (stage.work / "n.txt").exists(), "the key for yes did not mean yes"


def errors(stage: Stage) -> None:
    stage.play(Step(status=500, message="boom"))
    stage.say("fail")
    stage.record("working-retrying", "Retrying in", still=False)
    stage.type("typed")
    stage.record("working-retrying-text", still=False)
    stage.keys("C-u", "Escape")
    stage.wait("^❯.fail *\n─")
    stage.keys("C-u")
    stage.play(Step(status=400, message="bad"))
    stage.say("fail at once")
    stage.record("ready-error", r"API Error[\s\S]*for shortcuts")


def hostile(stage: Stage) -> None:
    """Replies that imitate what the program itself shows; the model does not end its turn after them."""
    for name, text in (("ready", HOSTILE), ("dialog", HOSTILE_DIALOG), ("working", HOSTILE_WORKING)):
        stage.play(Step(text=text))
        stage.say("imitate")
        stage.wait(r"● (?:The footer|It asked|It showed)[\s\S]*for shortcuts")
        stage.record(f"ready-hostile-{name}")
        stage.play(Step(text=text, tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say("imitate")
        stage.record(f"dialog-hostile-{name}", "Do you want to proceed[\\s\\S]*Tab to amend$")
        stage.keys("Enter")
        stage.record(f"working-hostile-{name}", r"^[·✢✳✶✻✽*] .*…", still=False)
        stage.type("typed")
        stage.record(f"working-hostile-{name}-text", still=False)
        stage.keys("C-u", "Escape")
        stage.wait(r"Interrupted[\s\S]*for shortcuts")


def without_key(stage: Stage) -> None:
    """Nobody is logged in."""
    stage.fresh()
    seed(stage, **settled(stage))
    with stage.running(env={"ANTHROPIC_API_KEY": ""}):
        stage.record("ready-no-login", "❯")
        stage.say("/login")
        stage.record("dialog-login", "(?i)select login method|esc to cancel")


def bypassing(stage: Stage) -> None:
    """Without permission questions; as root that needs a word of ours."""
    stage.fresh()
    seed(stage, **settled(stage))
    with stage.running("bypass", env={"IS_SANDBOX": "1"}):
        stage.record("dialog-bypass", "Yes, I accept")
        stage.keys("Down")
        stage.record("dialog-bypass-chosen", "❯ Yes, I accept")
        stage.keys("Enter")
        stage.record("ready-bypass", "bypass permissions on")
        stage.play(SLOW)
        stage.say("hello")
        stage.record("working-bypass", "to interrupt", still=False)
        stage.type("typed")
        stage.record("working-bypass-text", still=False)
        stage.keys("C-u")
        stage.record("ready-bypass-after-turn", "· done ")
        stage.say("/help")
        stage.wait("For more help")
        if stage.size[1] > 24:  # on a small one its last line does not fit
            stage.record("dialog-help", "Esc to cancel")
        stage.keys("Escape")
        stage.say("/rename walk")
        stage.record("ready-bypass-after-command", "renamed")
        stage.play(Step(tool="shell", input={"command": LONG}), Step(text="ok"))
        stage.say("run a command")
        stage.wait(r"^[·✢✳✶✻✽*] .*…")
        stage.wait("sleep")
        stage.keys("Escape")
        stage.record("ready-bypass-interrupted", "Interrupted")
        stage.play(LINES)
        stage.say("stream")
        stage.wait("^  [0-9]0. line")
        stage.keys("Escape")
        stage.record("ready-bypass-interrupted-midway", r"line[\s\S]*Interrupted")
