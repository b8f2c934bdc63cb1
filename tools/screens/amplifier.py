"""A walk through the terminal of the stand-in for Amplifier, which is not Amplifier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

STANDINS = Path(__file__).parents[2] / "tests" / "standins"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running(env={"PATH": f"{STANDINS}:{os.environ['PATH']}"}):
        stage.record("ready-fresh", r"^>")
        stage.play(Step(text="All done."))
        stage.say("hello")
        stage.wait("^All done")
        stage.record("ready-after_turn", r"^\n>")
        stage.play(Step(hang=True))
        stage.say("hello")
        stage.record("working-waiting", r"^Processing[^>]*\Z")
        stage.keys("C-c")
        stage.wait("^Cancelled")
        stage.say("/exit")
        stage.until(lambda _: stage.ended, "the end")
