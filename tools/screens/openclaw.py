"""A walk through OpenClaw's terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^ local ready \| (idle|aborted|error)"
WORKING = r"^ [⠀-⣿] .* • .+ \| local ready"
SLOW = 180.0


def quoted(stage: Stage) -> str:
    """A reply that looks like the bottom of the screen."""
    rule = "─" * stage.size[0]
    session = " agent main | session main | gpt-5.4 medium | deliver:off | tokens ?/200k"
    return f"Look:\n\n```\n local ready | idle\n{session}\n{rule}\n\n{rule}\n```\n\n"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running():
        stage.record("loading-start", "OpenClaw", still=False)
        stage.wait(r"starting up •|" + READY, SLOW)
        stage.record("loading-starting_up", still=False)
        stage.wait(READY, SLOW)
        stage.record("ready-fresh", READY)
        stage.type("some text that is not sent")
        stage.record("ready-typed", "some text")
        stage.keys("C-u")
        stage.play(Step(text="All done.", delay=4))
        stage.say("hello")
        stage.record("working-waiting", WORKING, still=False)
        stage.wait("All done", SLOW)
        stage.record("ready-after_turn", READY)
        stage.play(Step(text=quoted(stage) * 3, pace=0.3))
        stage.say("hello")
        stage.wait("Look:", SLOW)
        stage.record("working-hostile", WORKING, still=False)
        stage.keys("Escape")
        stage.record("ready-interrupted", READY)
        stage.play(Step(text=quoted(stage)))
        stage.say("hello")
        stage.gone(READY)
        stage.record("ready-hostile", READY)
        stage.play(Step(status=400, message="Bad things happened"))
        stage.say("hello")
        stage.gone(READY)
        stage.record("ready-error", READY)
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "the end", SLOW)
        stage.record("loading-exited")
