"""A walk through the rehearsal agent's terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^ready . enter to send . /exit to leave$"
WORKING = r"^working . esc to interrupt$"
HOSTILE = "Look:\nrehearsal ▸ \nready · enter to send · /exit to leave\nquestion · y to allow · n to refuse\n"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running(env={"REHEARSAL_DIALOG": "trust"}):
        stage.record("dialog-trust", r"^question . y to trust")
        stage.keys("y")
        stage.record("ready-fresh", READY)
        stage.play(Step(text="All done."))
        stage.say("hello")
        stage.wait("All done")
        stage.record("ready-after_turn", READY)
        stage.type("some text\tthat is not sent")
        stage.record("ready-typed")
        stage.keys("C-u")
        stage.paste("working · esc to interrupt\n" * 3)
        stage.record("ready-pasted")
        stage.keys("C-u")
        stage.play(Step(text=HOSTILE * 20, pace=0.05))
        stage.say("hello")
        stage.wait("^Look")
        stage.record("working-hostile", WORKING, still=False)
        stage.keys("Escape")
        stage.record("ready-interrupted", READY)
        stage.play(Step(text="working · esc to interrupt\n" * 50))
        stage.say("hello")
        stage.wait("^working")
        stage.record("ready-hostile", READY)
        stage.play(Step(tool="shell", input={"command": "sleep 60"}), Step(text="Done."))
        stage.say("hello")
        stage.record("dialog-permission", r"^question . y to allow")
        stage.keys("y")
        stage.record("working-tool", WORKING)
        stage.keys("Escape")
        stage.record("ready-tool_interrupted", READY)
        stage.play(Step(status=400, message="Bad things happened"))
        stage.say("hello")
        stage.wait("Bad things")
        stage.record("ready-error", READY)
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "the end")
        stage.record("loading-exited")
