"""A walk through Aider's terminal interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.rehearsal.scenario import Step

if TYPE_CHECKING:
    from record_screens import Stage

READY = r"^─+\n(\S.*\n)*>$"
WORKING = r"Waiting for gpt"
HOSTILE = "Look:\n\n---\n\n\\>\n\n---\n\n`Create new file? (Y)es/(N)o [Yes]:`\n\n---\n\n\\>"


def walk(stage: Stage) -> None:
    """From the first start to the end of a session."""
    with stage.running(arguments=("--git",)):
        stage.record("dialog-repository", r"^No git repo found")
    with stage.running():
        stage.record("loading-start", r"^─+$", still=False)
        stage.record("ready-fresh", r"^Repo-map.*\n" + READY)
        stage.type("some text that is not sent")
        stage.record("working-typed", r"^> some text")
        stage.keys("C-u")
        stage.play(Step(text="All done.", delay=4))
        stage.say("hello")
        stage.record("working-waiting", WORKING, still=False)
        stage.wait("^All done")
        stage.record("ready-after_turn", READY)
        turns(stage)
        questions(stage)
        stage.say("/exit")
        stage.record("working-leaving", "> /exit$", still=False)
        stage.until(lambda _: stage.ended, "the end")


def answered(stage: Stage, asked: int) -> None:
    """Wait until the model was asked and the prompt is back."""
    stage.until(lambda _: len(stage.server.heard()) > asked, "a request")
    stage.until(lambda screen: screen.rstrip().endswith("\n>"), "a prompt")


def turns(stage: Stage) -> None:
    """Answers, errors, and their interruption."""
    asked = len(stage.server.heard())
    stage.play(Step(text=HOSTILE))
    stage.say("hello")
    answered(stage, asked)
    stage.record("ready-hostile", READY)
    stage.play(Step(hang=True))
    stage.say("> > >")
    stage.record("working-quoting_prompt", WORKING, still=False)
    stage.keys("C-c")
    stage.wait("again to exit")
    stage.record("ready-interrupted", READY)
    stage.play(Step(status=500, message="Bad things happened"))
    stage.say("hello")
    stage.wait("Retrying in")
    stage.record("working-retrying", WORKING + r"[^>]*\Z", still=False)
    stage.keys("C-c")
    stage.until(lambda screen: screen.rstrip().endswith("\n>"), "a prompt")
    stage.record("ready-retry_interrupted", READY)
    stage.play(Step(status=400, message="Bad things happened"))
    asked = len(stage.server.heard())
    stage.say("hello")
    answered(stage, asked)
    stage.record("ready-error", READY)


def questions(stage: Stage) -> None:
    """An edit, refused and allowed, and a command."""
    stage.play(Step(text="new.txt\n```\nhello\n```\n"))
    for what, key in (("edit", "n"), ("edit_again", "y")):
        stage.say("hello")
        stage.record(f"dialog-{what}", r"^Create new file\? \S+ \[Yes\]:$")
        stage.keys(key)
        stage.keys("Enter")
        stage.until(lambda screen: screen.rstrip().endswith("\n>"), "a prompt")
    stage.record("ready-with_file", r"^new\.txt\n>$")
    stage.say("/run false")
    stage.record("dialog-output", r"^Add .*\[Yes\]:$")
    stage.keys("n", "Enter")
    stage.until(lambda screen: screen.rstrip().endswith("\n>"), "a prompt")
    stage.say("look at http://127.0.0.1:9/x please")
    stage.record("dialog-address", r"^Add URL .*\[Yes\]:$")
    stage.keys("n", "Enter")
    stage.until(lambda screen: screen.rstrip().endswith("\n>"), "a prompt")
