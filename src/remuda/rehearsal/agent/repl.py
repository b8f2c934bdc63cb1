"""The interactive mode: a plain prompt, one turn a line."""

from __future__ import annotations

import signal
import sys

from remuda import __version__
from remuda.rehearsal.agent.loop import Agent
from remuda.rehearsal.agent.messages import ToolUse
from remuda.rehearsal.agent.process import Interrupted


def ask_person(call: ToolUse) -> str | None:
    """Ask the person at the terminal whether a tool call may run."""
    try:
        answer = input(f"Allow {call.name}? [y/N] ")
    except (EOFError, UnicodeDecodeError):
        answer = ""
    return None if answer.strip().lower() in ("y", "yes") else f"The user did not allow {call.name}."


def converse(agent: Agent, first: str | None) -> None:
    """Read prompts until /exit or the end of input; `first` is answered before any is read."""
    _say(f"rehearsal {__version__} ready")
    if first is not None:
        _answer(agent, first)
    while True:
        try:
            prompt = input("> ")
        except EOFError:
            _say("")
            return
        except UnicodeDecodeError:
            _say("That is not UTF-8 text.")
            continue
        if prompt.strip() == "/exit":
            return
        if prompt.strip():
            _answer(agent, prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _answer(agent: Agent, prompt: str) -> None:
    """One turn; Ctrl-C ends the turn and not the session."""
    try:
        agent.turn(prompt)
    except Interrupted as interruption:
        if interruption.number != signal.SIGINT:
            raise
        _say("\nInterrupted.")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
