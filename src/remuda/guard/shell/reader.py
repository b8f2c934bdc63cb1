"""A place in a text, and moving about in it within bounds."""

from __future__ import annotations

import re

import msgspec

NODES, DEPTH, SIZE = 10_000, 24, 1 << 20

_SPACE = re.compile(r"[ \t\n]*")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")


class UnreadableError(Exception):
    """Carries the reason for a refusal out of the recursion."""


class Limits(msgspec.Struct):
    """What is left of the bounds that a text and all texts inside it share."""

    nodes: int = NODES
    depth: int = DEPTH


class Reader:
    """A place in a text."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source = source
        self.at = 0
        self.limits = limits

    def spend(self) -> None:
        """Counts a node."""
        self.limits.nodes -= 1
        if self.limits.nodes < 0:
            raise UnreadableError("it is too long")

    def enter(self) -> None:
        """Goes one level down."""
        self.spend()
        self.limits.depth -= 1
        if self.limits.depth < 0:
            raise UnreadableError("it is nested too deeply")

    def leave(self) -> None:
        """Comes back up."""
        self.limits.depth += 1

    def char(self, ahead: int = 0) -> str:
        """The character here, or nothing at the end."""
        return self.source[self.at + ahead : self.at + ahead + 1]

    def starts(self, text: str | tuple[str, ...]) -> bool:
        """Whether one of these texts comes next."""
        return self.source.startswith(text, self.at)

    def expect(self, text: str) -> None:
        """Steps over a text that must come next."""
        if not self.starts(text):
            raise UnreadableError(f"a {text} is missing")
        self.at += len(text)

    def join(self) -> None:
        """Steps over line continuations."""
        while self.starts("\\\n"):
            self.at += 2

    def space(self) -> None:
        """Steps over spaces and empty lines."""
        if match := _SPACE.match(self.source, self.at):
            self.at = match.end()

    def blanks(self) -> None:
        """Steps over spaces, line continuations and a comment."""
        if match := _BLANKS.match(self.source, self.at):
            self.at = match.end()

    def until(self, end: str) -> str:
        """The text between a character and its twin."""
        found = self.source.find(end, self.at + 1)
        if found < 0:
            raise UnreadableError(f"a closing {end} is missing")
        text = self.source[self.at + 1 : found]
        self.at = found + 1
        return text
