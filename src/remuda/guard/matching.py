"""Patterns over names, words and paths, and how surely they fit.

What a word may be is often not known, so that there are four answers. Who denies asks whether something may
fit, who allows whether it always does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from typing import Literal

import msgspec

from remuda.guard.globs import is_glob
from remuda.guard.model import Word
from remuda.guard.paths import Observer, Place

Degree = Literal[0, 1, 2, 3]
NEVER: Degree = 0
MAYBE: Degree = 1
"""It cannot be told."""
SOME: Degree = 2
"""One of the things that it may be fits."""
ALWAYS: Degree = 3

_MOST = 500
"""So many files are looked at below a folder."""


class Span(msgspec.Struct, frozen=True):
    """How something fits in the worst and in the best of the ways that it may come out."""

    worst: Degree
    best: Degree


NO = Span(NEVER, NEVER)
YES = Span(ALWAYS, ALWAYS)
UNTOLD = Span(NEVER, MAYBE)


def both(spans: Iterable[Span]) -> Span:
    """How all of several conditions fit together."""
    worst, best = ALWAYS, ALWAYS
    for span in spans:
        worst, best = min(worst, span.worst), min(best, span.best)
    return Span(worst, best)


def whether(fits: bool) -> Span:
    """What is known to fit, or not to."""
    return YES if fits else NO


def over(spans: Sequence[Span]) -> Span:
    """How several things fit of which each is there: the worst of all, the best of any."""
    if not spans:
        return NO
    return Span(min(span.worst for span in spans), max(span.best for span in spans))


class Glob(msgspec.Struct, frozen=True):
    """A pattern for a text: ``*``, ``?`` and ``[…]`` as in file names. ``folds``: capitals do not matter; the
    text is then without any. Only a text with such characters has a ``regex``."""

    text: str
    folds: bool
    regex: re.Pattern[str] | None

    def fits(self, text: str) -> bool:
        text = text.casefold() if self.folds else text
        return text == self.text if self.regex is None else self.regex.match(text) is not None

    def degree(self, text: str, pattern: bool = False) -> Degree:
        """How a text fits, which may itself be a pattern."""
        if self.text == "*":
            return ALWAYS
        if not pattern or not is_glob(text):
            return ALWAYS if self.fits(text) else NEVER
        if self.regex is not None:
            return MAYBE
        return SOME if glob(text, folds=self.folds).fits(self.text) else NEVER


def glob(text: str, *, folds: bool) -> Glob:
    """Compile a pattern."""
    text = text.casefold() if folds else text
    return Glob(text, folds, re.compile(translate(text)) if is_glob(text) else None)


def word_span(globs: Sequence[Glob], word: Word, plain: Callable[[str], str] = str) -> Span:
    """How a word fits one of several patterns; ``plain`` makes of each of its texts what is compared."""
    if any(each.text == "*" for each in globs):
        return YES
    if not word.values:
        return UNTOLD if any(_may_begin(each, word.prefix) for each in globs) else NO
    degrees = [max(each.degree(plain(value), word.pattern) for each in globs) for value in word.values]
    return Span(min(degrees), max(degrees))


def _may_begin(pattern: Glob, prefix: str) -> bool:
    """Whether a text that begins like this may fit."""
    literal = re.split(r"[*?\[]", pattern.text, maxsplit=1)[0].casefold()
    prefix = prefix.casefold()
    if pattern.regex is not None:
        return literal.startswith(prefix) or prefix.startswith(literal)
    return literal.startswith(prefix)


class PathGlob(msgspec.Struct, frozen=True):
    """A pattern for resolved paths, component by component; None is ``**``, which stands for any number of
    them. It fits what it names and everything below that. ``head`` is the beginning that is written out."""

    head: str
    folds: bool
    parts: tuple[Glob | None, ...]

    def degree(self, path: str, *, pattern: bool, below: Observer | None) -> Degree:
        """How a resolved path fits. ``below``: what is done to it is done to all that is below, so that a
        place above something that fits does so, too; this looks there."""
        if not self.parts:
            return ALWAYS
        if not pattern and not self._near(path, above=below is not None):
            return NEVER
        states = self._onwards({0: ALWAYS})
        covers: Degree = NEVER
        for part in path.split("/")[1:] if path != "/" else ():
            if pattern and part == "**":
                return max(covers, MAYBE)
            states = self._onwards(self._stepped(states, part, pattern))
            covers = max(covers, states.pop(len(self.parts), NEVER))
            if not states:
                return covers
        if below is not None and covers < SOME:
            covers = max(covers, self._below(states, path, below))
        return covers

    def _near(self, path: str, *, above: bool) -> bool:
        """Whether a path may fit at all, told by the beginning."""
        path = (path.casefold() if self.folds else path).rstrip("/") + "/"
        return path.startswith(self.head) or (above and self.head.startswith(path))

    def _stepped(self, states: dict[int, Degree], part: str, pattern: bool) -> dict[int, Degree]:
        after: dict[int, Degree] = {}
        for at, degree in states.items():
            wanted = self.parts[at]
            if wanted is None:
                after[at] = max(after.get(at, NEVER), degree)
            elif fits := wanted.degree(part, pattern):
                after[at + 1] = max(after.get(at + 1, NEVER), min(degree, fits))
        return after

    def _onwards(self, states: dict[int, Degree]) -> dict[int, Degree]:
        """Also those states that are reached where ``**`` stands for nothing."""
        for at in sorted(states):
            ahead = at
            while ahead < len(self.parts) and self.parts[ahead] is None:
                ahead += 1
                states[ahead] = max(states.get(ahead, NEVER), states[at])
        return states

    def _below(self, states: dict[int, Degree], path: str, observer: Observer) -> Degree:
        """Whether something that fits may lie below: surely enough where the way there is written out, and
        otherwise if something is found there."""
        if any(None not in self.parts[: at + 1] for at in states):
            return SOME
        return MAYBE if is_glob(path) else self._found(path, observer)

    def _found(self, path: str, observer: Observer) -> Degree:
        """Look for something that fits; where there is too much to look at, it cannot be told."""
        ahead, seen = [path.rstrip("/")], 0
        while ahead:
            folder = ahead.pop()
            for name, link in observer.entries(folder or "/"):
                seen += 1
                inner = f"{folder}/{name}"
                if self.degree(inner, pattern=False, below=None):
                    return SOME
                if seen > _MOST:
                    return MAYBE
                if not link and observer.folder(inner):
                    ahead.append(inner)
        return NEVER


def path_glob(text: str, *, folds: bool) -> PathGlob:
    """Compile an absolute pattern. At its end, ``**`` means what is below and not the folder itself."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if parts and parts[-1] == "**":
        parts[-1] = "*"
    plain = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
    head = "/".join(("", *parts[:plain], ""))
    return PathGlob(
        head.casefold() if folds else head,
        folds,
        tuple(None if part == "**" else glob(part, folds=folds) for part in parts),
    )


def path_span(
    globs: Sequence[PathGlob],
    places: Sequence[Place],
    *,
    pattern: bool = False,
    below: Observer | None = None,
) -> Span:
    """How the places that a path may lead to fit one of several patterns."""
    return over(
        [
            _placed(max(each.degree(place.path, pattern=pattern, below=below) for each in globs))
            if place.path
            else UNTOLD
            for place in places
        ]
    )


def _placed(degree: Degree) -> Span:
    return Span(degree if degree == ALWAYS else NEVER, degree)
