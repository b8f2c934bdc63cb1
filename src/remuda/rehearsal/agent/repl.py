"""The interactive mode: prompts are written or pasted on a terminal, and a turn can be interrupted."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
from collections.abc import Iterator
from pathlib import Path

from remuda import __version__
from remuda.rehearsal.agent import lines
from remuda.rehearsal.agent.interrupts import Turns
from remuda.rehearsal.agent.keys import Key, Keys
from remuda.rehearsal.agent.loop import Agent
from remuda.rehearsal.agent.messages import ToolUse
from remuda.rehearsal.agent.screen import Screen

READY = "ready · enter to send · /exit to leave"
WORKING = "working · esc to interrupt"
ALLOW = "question · y to allow · n to refuse"
TRUST = "question · y to trust this folder · n to leave"

_ESCAPE_SECONDS = 0.03
"""How long an escape may be the beginning of something longer."""


class Person:
    """Whoever sits at the terminal: writes prompts, answers questions, interrupts."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self.screen = Screen(source, sink)
        self.turns = Turns()
        self._asking = False
        self._written: queue.SimpleQueue[list[Key] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[list[Key] | None] = queue.SimpleQueue()
        self._pending: list[Key] = []
        self._text = bytearray()

    @contextlib.contextmanager
    def present(self) -> Iterator[None]:
        """The terminal is ours as long as this lasts."""
        self.screen.open()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            yield
        finally:
            self.screen.close()

    def _listen(self) -> None:
        """Read all input: keys for a question go to it, an interruption is acted on, all else is written."""
        keys = Keys()
        while True:
            try:
                waited = not keys.open or select.select([self._source], [], [], _ESCAPE_SECONDS)[0]
                data = os.read(self._source, 65536) if waited else None
            except OSError:
                data = b""
            if data == b"":
                self._written.put(None)
                self._answers.put(None)
                return
            self._route(keys.flush() if data is None else keys.feed(data))

    def _route(self, pressed: list[Key]) -> None:
        if self._asking:
            self._answers.put(pressed)
            return
        kept = [key for key in pressed if key.kind not in ("escape", "break") or not self.turns.interrupt()]
        if kept:
            self._written.put(kept)

    def ask(self, question: str, status: str) -> bool:
        """Whether the answer is yes; only keys that are pressed from now on count."""
        self._asking = True
        self.screen.say(question)
        self.screen.work(status)
        try:
            return self._answer()
        finally:
            self._asking = False
            self.screen.work(WORKING)

    def _answer(self) -> bool:
        while (pressed := self._answers.get()) is not None:
            for key in pressed:
                if key.kind == "text" and key.text[:1].lower() in (b"y", b"n"):
                    return key.text[:1].lower() == b"y"
                if key.kind in ("escape", "break", "end"):
                    return False
        return False

    def approve(self, call: ToolUse) -> str | None:
        """Ask whether a tool call may run."""
        allowed = self.ask(f"\nAllow {call.name}? [y/N] \n", ALLOW)
        return None if allowed else f"The user did not allow {call.name}."

    def prompt(self) -> str | None:
        """The next prompt that is sent; None when the person leaves."""
        self._show()
        while True:
            while self._pending:
                key = self._pending.pop(0)
                if key.kind == "end" and not self._text:
                    return None
                if key.kind == "enter" and (prompt := self._take()).strip():
                    return prompt
                self._edit(key)
            self._show()
            pressed = self._written.get()
            if pressed is None:
                return None
            self._pending = pressed

    def _edit(self, key: Key) -> None:
        match key.kind:
            case "text":
                self._text += key.text
            case "erase":
                text = self._text.decode("utf-8", "replace")[:-1]
                self._text[:] = text.encode()
            case "clear" | "break":
                self._text.clear()

    def _take(self) -> str:
        text = bytes(self._text).decode("utf-8", "replace")
        self._text.clear()
        return text

    def _show(self) -> None:
        self.screen.compose(bytes(self._text[-1024:]).decode("utf-8", "replace"), READY)


def trusts(person: Person, folder: Path) -> bool:
    """Ask what other agents ask in a folder that they do not know."""
    question = f"Do you trust the files in this folder?\n  {lines.shown(folder)}\n"
    return person.ask(question, TRUST)


def converse(agent: Agent, person: Person, first: str | None) -> None:
    """Answer prompts until the person leaves; `first` is answered before any is read."""
    person.screen.say(f"rehearsal {__version__} ready\n")
    prompt = first if first is not None else person.prompt()
    while prompt is not None and prompt.strip() != "/exit":
        _answer(agent, person, prompt)
        prompt = person.prompt()


def _answer(agent: Agent, person: Person, prompt: str) -> None:
    """One turn; an interruption ends the turn and not the session."""
    person.screen.work(WORKING)
    size = len(prompt.encode())
    beginning = prompt.strip().partition("\n")[0][:60]
    person.screen.say(f"\n» {beginning}{'' if beginning == prompt else f' … ({size} bytes)'}\n")
    result = person.turns.run(lambda: agent.answer(prompt))
    if result is None:
        person.screen.say("\nInterrupted.\n")
    else:
        agent.conclude(result)
