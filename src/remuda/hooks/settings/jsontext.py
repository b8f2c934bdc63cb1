"""JSON as text: a document with the places of all that is in it, so that it can be changed without being
written anew. Comments are passed over where they are allowed."""

from __future__ import annotations

import json
import re

import msgspec

from remuda.hooks.settings.edits import at

_DEEPEST = 200
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])", re.ASCII)
_WORD = re.compile(r"(?:true|false|null)(?!\w)")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
BOM = "\ufeff"


class Node(msgspec.Struct):
    """A value with its place. ``parts`` are what an object or a list holds."""

    start: int
    end: int
    value: object
    parts: list[Part] = []


class Part(msgspec.Struct):
    """A member of an object (with its key) or an item of a list; ``comma`` is where the one behind it is."""

    start: int
    node: Node
    key: str | None = None
    comma: int | None = None


class Reader:
    """Reads one document."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._place = len(BOM) if text.startswith(BOM) else 0

    def document(self) -> Node | None:
        """The document's value; None if there is nothing but white space."""
        self._skip()
        if self._place == len(self._text):
            return None
        root = self._value(0)
        self._skip()
        if self._place < len(self._text):
            raise at(self._text, self._place, "there is something behind its end")
        return root

    def _skip(self) -> None:
        while True:
            space = _SPACE.match(self._text, self._place)
            assert space is not None
            self._place = space.end()
            comment = _COMMENT.match(self._text, self._place) if self._comments else None
            if comment is None:
                return
            self._place = comment.end()

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise at(self._text, self._place, "it is too deep")
        opening = self._peek()
        if opening and opening in "{[":
            return self._holder(depth, "}" if opening == "{" else "]")
        for pattern in (_STRING, _NUMBER, _WORD):
            if found := pattern.match(self._text, self._place):
                self._place = found.end()
                return Node(found.start(), found.end(), json.loads(found.group()))
        raise at(self._text, self._place, "a value is missing or not written as JSON has it")

    def _holder(self, depth: int, closing: str) -> Node:
        start = self._place
        parts: list[Part] = []
        self._place += 1
        self._skip()
        while self._peek() != closing or (parts and parts[-1].comma is not None):
            parts.append(self._part(depth, closing))
        self._place += 1
        return Node(start, self._place, _held(parts, closing), parts)

    def _part(self, depth: int, closing: str) -> Part:
        start, key = self._place, None
        if closing == "}":
            key = self._key()
        part = Part(start, self._value(depth + 1), key)
        self._skip()
        if self._peek() == ",":
            part.comma = self._place
            self._place += 1
            self._skip()
        elif self._peek() != closing:
            raise at(self._text, self._place, f"a comma or a {closing} is missing")
        return part

    def _key(self) -> str:
        found = _STRING.match(self._text, self._place)
        if found is None:
            raise at(self._text, self._place, "a key in double quotes is missing")
        self._place = found.end()
        self._skip()
        if self._peek() != ":":
            raise at(self._text, self._place, "a colon is missing")
        self._place += 1
        self._skip()
        return str(json.loads(found.group()))


def _held(parts: list[Part], closing: str) -> object:
    if closing == "]":
        return [part.node.value for part in parts]
    return {part.key: part.node.value for part in parts}


def read(text: str, *, comments: bool = False) -> Node | None:
    """A document, or the trouble with it."""
    return Reader(text, comments=comments).document()


def member(node: Node, key: str) -> Part | None:
    """What counts for a key: the last one, where it is there more than once."""
    return next((part for part in reversed(node.parts) if part.key == key), None)
