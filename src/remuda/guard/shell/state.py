"""What a shell remembers while it is interpreted: folder, variables, functions, data on its way.

Everything may have several values at once: after a branch, those of both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from remuda.guard.model import NOTHING, UNKNOWN, Taint, Word, literal
from remuda.guard.shell.syntax import Node

MOST, LONGEST = 64, 1 << 18
"""How many values a word may have, and how long they may be together, before it counts as unknown."""

NAME = Word(("*",), pattern=True)
"""A text that is not known, but has no slash: a number, a date, a user's name."""

EMPTY = literal("")
_GLOB = frozenset("*?[")
T = TypeVar("T")


def names(text: str) -> frozenset[str]:
    """A set of names, written as a text."""
    return frozenset(text.split())


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command is run: its folder, the home, the root of the checkout, and environment variables whose
    values are known. ``observe`` tells whether a folder exists; without it all are taken to."""

    cwd: str
    home: str | None = None
    root: str | None = None
    variables: Mapping[str, str] = {}
    observe: Callable[[str], bool] | None = None


class Data(msgspec.Struct, frozen=True):
    """What flows through a pipe or into a file: the whole text where it is known, and what each of its lines
    may be, with where they come from."""

    text: str | None
    line: Word

    @property
    def taint(self) -> frozenset[Taint]:
        """Where it comes from."""
        return self.line.taint


def known(text: str, taint: frozenset[Taint] = NOTHING) -> Data:
    """Data whose text is known."""
    lines = tuple(dict.fromkeys(text.splitlines()))
    return Data(text, Word(lines if len(lines) <= MOST else (), taint=taint))


def opaque(taint: frozenset[Taint]) -> Data:
    """Data of which only the origin is known."""
    return Data(None, unknown(taint))


def after(first: Data, second: Data) -> Data:
    """What was printed before, and what comes after it."""
    if first.text == "" and not first.taint:
        return second
    if second.text == "" and not second.taint:
        return first
    if first.text is not None and second.text is not None:
        return known(first.text + second.text, first.taint | second.taint)
    return Data(None, union(first.line, second.line))


def unknown(taint: frozenset[Taint] = NOTHING, prefix: str = "") -> Word:
    """A word that may be anything."""
    return Word((), taint=taint or UNKNOWN.taint, prefix=prefix)


def tainted(words: Iterable[Word]) -> frozenset[Taint]:
    """Where any of some words come from."""
    return NOTHING.union(*(word.taint for word in words))


def escaped(text: str) -> str:
    """A text as a pattern that only matches itself."""
    return "".join(f"[{char}]" if char in _GLOB else char for char in text)


def as_pattern(word: Word) -> tuple[str, ...]:
    """The values of a word as patterns."""
    return word.values if word.pattern else tuple(escaped(value) for value in word.values)


def union(first: Word, second: Word) -> Word:
    """A word that is one of two."""
    if first == second:
        return first
    taint = first.taint | second.taint
    if not first.values or not second.values:
        return unknown(taint, first.prefix if first.prefix == second.prefix else "")
    pattern = first.pattern or second.pattern
    left, right = (as_pattern(first), as_pattern(second)) if pattern else (first.values, second.values)
    values = tuple(dict.fromkeys(left + right))
    return Word(values, pattern, taint) if len(values) <= MOST else unknown(taint)


def either(words: Iterable[Word]) -> Word:
    """A word that is one of many; an empty one when there are none."""
    result: Word | None = None
    for word in words:
        result = word if result is None else union(result, word)
    return EMPTY if result is None else result


def concatenate(first: Word, second: Word) -> Word:
    """A word that is one after the other."""
    taint = first.taint | second.taint
    if not first.values:
        return unknown(taint, first.prefix)
    if not second.values:
        alone = first.values[0] if len(first.values) == 1 and not first.pattern else ""
        return unknown(taint, alone + second.prefix if alone else "")
    pattern = first.pattern or second.pattern
    left, right = (as_pattern(first), as_pattern(second)) if pattern else (first.values, second.values)
    longest = sum(map(len, left)) * len(right) + sum(map(len, right)) * len(left)
    if len(left) * len(right) > MOST or longest > LONGEST:
        return unknown(taint)
    return Word(tuple(dict.fromkeys(a + b for a in left for b in right)), pattern, taint)


def joined(words: Sequence[Word]) -> Word:
    """Words as one text with blanks between them."""
    texts = [word.text for word in words]
    known_texts = [text for text in texts if text is not None]
    if len(known_texts) == len(texts):
        return Word((" ".join(known_texts),), taint=tainted(words))
    result = EMPTY
    for place, word in enumerate(words):
        result = concatenate(result, concatenate(literal(" "), word) if place else word)
    return result


TABLES = ("variables", "arrays", "exported", "functions", "aliases", "remapped", "files", "made")
"""The fields of a state that change in place."""


class State(msgspec.Struct, kw_only=True):
    """The shell at one moment."""

    cwd: Word
    home: Word
    root: Word = UNKNOWN
    environment: Mapping[str, str]
    input: Data
    previous: Word = UNKNOWN
    folders: tuple[Word, ...] = ()
    variables: dict[str, Word] = {}
    arrays: dict[str, tuple[Word, ...]] = {}
    positional: tuple[Word, ...] = ()
    program: Word = literal("bash")
    last: Word = UNKNOWN
    exported: dict[str, bool] = {}
    functions: dict[str, tuple[Node | None, ...]] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    remapped: dict[str, Word] = {}
    traps: tuple[Word, ...] = ()
    files: dict[str, Data] = {}
    made: dict[str, bool] = {}
    observe: Callable[[str], bool] | None = None

    def fork(self) -> State:
        """A shell that begins where this one is and changes on its own."""
        other = msgspec.structs.replace(self)
        for name in TABLES:
            setattr(other, name, dict(getattr(self, name)))
        return other

    def become(self, other: State) -> None:
        """Is as another shell is."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))

    def child(self, program: Word, positional: tuple[Word, ...]) -> State:
        """A new shell that this one starts: it has what was exported, and arguments of its own."""
        other = self.fork()
        kept = {
            "HOME",
            "PATH",
            "TMPDIR",
            *self.environment,
            *(name for name in self.exported if self.exported[name]),
        }
        other.variables = {name: value for name, value in self.variables.items() if name in kept}
        other.functions = {name: body for name, body in self.functions.items() if name in kept}
        other.arrays, other.aliases, other.traps = {}, {}, ()
        other.program, other.positional = program, positional
        return other

    def join(self, other: State) -> None:
        """Is either as it is or as another shell is."""
        self.cwd = union(self.cwd, other.cwd)
        self.previous = union(self.previous, other.previous)
        self.last = union(self.last, other.last)
        if self.positional != other.positional:
            self.positional = (UNKNOWN,)
        if self.folders != other.folders:
            self.folders = ()
        _merge(self.variables, other.variables, lambda a, b: union(a or unset(), b or unset()))
        _merge(self.arrays, other.arrays, _either_array)
        _merge(self.functions, other.functions, _either)
        _merge(self.aliases, other.aliases, lambda a, b: tuple(dict.fromkeys((a or ()) + (b or ()))))
        _merge(self.remapped, other.remapped, lambda *_: UNKNOWN)
        _merge(self.files, other.files, _either_data)
        self.exported.update(other.exported)
        self.made.update(other.made)
        self.traps = tuple(dict.fromkeys(self.traps + other.traps))

    def differs(self, before: State) -> bool:
        """Whether something that matters has changed."""
        return (self.cwd, self.variables, self.arrays) != (before.cwd, before.variables, before.arrays)

    def widen(self, before: State) -> None:
        """What still changes after some rounds of a loop may be anything."""
        if self.cwd != before.cwd:
            self.cwd = UNKNOWN
        for name, value in self.variables.items():
            if value != before.variables.get(name):
                self.variables[name] = unknown(value.taint)
        for name, items in self.arrays.items():
            if items != before.arrays.get(name):
                self.arrays[name] = (unknown(tainted(items)),)


def unset() -> Word:
    """A variable that the shell has not set: whatever the environment has."""
    return unknown(frozenset({"environment"}))


def _merge(mine: dict[str, T], others: dict[str, T], either: Callable[[T | None, T | None], T]) -> None:
    """Joins two tables; what one of them lacks is ``None`` for ``either``."""
    for name in mine.keys() | others.keys():
        a, b = mine.get(name), others.get(name)
        if a is not b and a != b:
            mine[name] = either(a, b)


def _either(a: tuple[Node | None, ...] | None, b: tuple[Node | None, ...] | None) -> tuple[Node | None, ...]:
    ways = list(a or (None,))
    ways.extend(way for way in b or (None,) if not any(way is known for known in ways))
    return tuple(ways)


def _either_array(a: tuple[Word, ...] | None, b: tuple[Word, ...] | None) -> tuple[Word, ...]:
    if a and b and len(a) == len(b):
        return tuple(union(left, right) for left, right in zip(a, b, strict=True))
    return (unknown(tainted((*(a or ()), *(b or ())))),)


def _either_data(a: Data | None, b: Data | None) -> Data:
    unseen = opaque(frozenset({"file"}))
    return Data(None, union((a or unseen).line, (b or unseen).line))
