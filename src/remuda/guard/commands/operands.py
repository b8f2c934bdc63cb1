"""Small constructions on words that several commands need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from remuda.guard.model import UNKNOWN, How, Taint, Word, Write, literal

NOWHERE = frozenset({"-", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"})
HERE = literal(".")
LONGEST = 10_000
"""The longest text in a language of its own that is read; longer ones are code that cannot be read."""


def names(text: str) -> frozenset[str]:
    """The names that a text lists."""
    return frozenset(text.split())


def written(path: Word, how: How, *, follows: bool = True, forced: bool = False) -> Iterator[Write]:
    """A write, unless it goes to the terminal or nowhere."""
    if path.text not in NOWHERE:
        yield Write(path=path, how=how, follows=follows, forced=forced)


def base(word: Word) -> Word:
    """The last component of a path; a folder that has no name of its own is copied as what is in it."""
    return _mapped(word, _base)


def _base(path: str) -> str:
    name = path.rstrip("/").rpartition("/")[2]
    return "." if name in {"", ".."} else name


def join(folder: Word | None, name: Word) -> Word:
    """A path below a folder, as ``cd`` and then the path would give it."""
    if folder is None or folder.text == "." or (name.values and all(v[:1] == "/" for v in name.values)):
        return name
    if not folder.values or not name.values:
        known = folder.text.rstrip("/") + "/" if folder.text is not None else ""
        return Word(
            (), taint=folder.taint | name.taint, prefix=known + name.prefix if known else folder.prefix
        )
    values = [v if v[:1] == "/" else f"{f.rstrip('/')}/{v}" for f in folder.values for v in name.values]
    return Word(tuple(values), pattern=folder.pattern or name.pattern, taint=folder.taint | name.taint)


def with_suffix(word: Word, suffix: str) -> Word:
    """A path with something behind its name."""
    return _mapped(word, lambda text: text + suffix)


def either(*words: Word) -> Word:
    """A word that is one of several."""
    if not all(word.values for word in words):
        return UNKNOWN
    values = tuple(dict.fromkeys(value for word in words for value in word.values))
    taints: frozenset[Taint] = frozenset().union(*(word.taint for word in words))
    return Word(values, pattern=any(word.pattern for word in words), taint=taints)


def assignment(word: Word) -> tuple[str, Word] | None:
    """``name=value`` taken apart."""
    first = word.values[0] if word.values else word.prefix
    name, found, _ = first.partition("=")
    if not found or not name:
        return None
    if not word.values:
        return name, Word((), taint=word.taint, prefix=first[len(name) + 1 :])
    return name, _mapped(word, lambda text: text[len(name) + 1 :])


def texts(words: tuple[Word, ...] | list[Word]) -> list[str]:
    """The texts of words, empty where they are not known."""
    return [word.text or "" for word in words]


def taints(words: tuple[Word, ...] | list[Word]) -> frozenset[Taint]:
    """Where the text of any of the words may come from."""
    return frozenset(taint for word in words for taint in word.taint)


def _mapped(word: Word, change: Callable[[str], str]) -> Word:
    return msgspec.structs.replace(word, values=tuple(change(value) for value in word.values))
