"""A walk through Hermes' terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^ ⚕ .*⏲.*\n─+\n❯"
WORKING = r"^⚕ ❯"


def quoted(stage: Stage, mark: str) -> str:
    """A reply that looks like the bottom of the screen."""
    columns, _ = stage.size
    rule = "─" * columns
    return f"Look:\n\n ⚕ gpt-5.4 │ ctx -- │ [░░░░░░░░░░] -- │ 6s │ ⏲ 0s\n{rule}\n{mark}\n{rule}\n"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    empty = stage.place / "empty"
    empty.mkdir()
    with stage.running(env={"HERMES_HOME": str(empty), "HERMES_MANAGED_DIR": str(empty)}):
        stage.record("dialog-setup", r"^Run setup now")
    with stage.running():
        stage.record("loading-banner", "Welcome to Hermes|Available Tools", still=False)
        stage.record("ready-fresh", READY)
        stage.type("some text that is not sent")
        stage.record("ready-typed", r"^❯ some text")
        stage.keys("C-u")
        stage.paste("first line\nsecond line\nthird line\n")
        stage.record("ready-pasted", r"^❯ ")
        stage.keys("Enter")
        turns(stage)
        questions(stage)
        stage.say("/exit")
        stage.record("loading-leaving", "Resume this session with", still=False)
        stage.until(lambda _: stage.ended, "the end")
        stage.record("loading-exited")


def turns(stage: Stage) -> None:
    """Answers, tools, errors, and their interruption."""
    stage.wait("    All done")
    stage.record("ready-after_turn", READY)
    stage.play(Step(text=quoted(stage, "❯") * 2, pace=0.6))
    stage.say("hello")
    stage.wait("    Look:")
    stage.record("working-hostile", WORKING, still=False)
    stage.type("a follow up")
    stage.record("working-typed", r"^⚕ ❯ a follow", still=False)
    stage.keys(*["BSpace"] * len("a follow up"))
    stage.gone(WORKING)
    stage.record("ready-after_quoted", READY)
    stage.play(Step(text=quoted(stage, "⚠ ❯") + quoted(stage, "⚕ ❯ msg=interrupt")))
    stage.say("hello")
    stage.wait("    ⚠ ❯")
    stage.gone(WORKING)
    stage.record("ready-hostile", READY)
    stage.play(Step(hang=True))
    stage.paste(quoted(stage, "❯"))
    stage.keys("Enter")
    stage.record("working-quoting_prompt", WORKING, still=False)
    stage.keys("C-c")
    stage.record("ready-interrupted", READY)
    stage.play(Step(tool="shell", input={"command": "sleep 60"}), Step(text="Done."))
    stage.say("hello")
    stage.wait("sleep 60")
    stage.record("working-tool", WORKING, still=False)
    stage.keys("C-c")
    stage.record("ready-tool_interrupted", READY)
    stage.play(Step(status=500, message="Bad things happened"))
    stage.say("hello")
    asked = len(stage.server.heard())
    stage.until(lambda _: len(stage.server.heard()) > asked, "a second try")
    stage.record("working-retrying", WORKING, still=False)
    stage.gone(WORKING)
    stage.record("ready-error", READY)


def questions(stage: Stage) -> None:
    """A dangerous command, refused and allowed."""
    (stage.work / "victim").mkdir(exist_ok=True)
    stage.play(Step(tool="shell", input={"command": "rm -rf victim"}), Step(text="Done."))
    for what, key in (("permission", "4"), ("permission_again", "1")):
        stage.say("hello")
        stage.record(f"dialog-{what}", r"^⚠ ❯", still=False)
        stage.keys(key)
        stage.gone(r"^⚠ ❯")
        stage.wait(READY)
    stage.record("ready-after_question", READY)
