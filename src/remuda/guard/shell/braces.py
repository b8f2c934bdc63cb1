"""Brace expansion: ``{a,b}`` and ``{1..5}``, which come before everything else."""

from __future__ import annotations

from remuda.guard.shell.state import MOST
from remuda.guard.shell.syntax import Node, Text, Token

Item = str | Node
LONGEST = 4096


def expand(token: Token) -> list[Token] | None:
    """The words that a word with braces stands for; nothing when they are too many."""
    texts = [part.text for part in token.parts if isinstance(part, Text) and not part.quoted]
    braces = sum(text.count("{") for text in texts)
    if not braces:
        return [token]
    if braces > MOST or sum(map(len, texts)) > LONGEST:
        return None
    items: list[Item] = []
    for part in token.parts:
        if isinstance(part, Text) and not part.quoted:
            items.extend(part.text)
        else:
            items.append(part)
    words = _words(items)
    return None if words is None else [_token(word) for word in words]


def _words(items: list[Item]) -> list[list[Item]] | None:
    for start, item in enumerate(items):
        if item != "{":
            continue
        end, commas = _matching(items, start)
        choices = _choices(items[start + 1 : end], [comma - start - 1 for comma in commas]) if end else None
        if choices is None:
            continue
        rest = _words(items[end + 1 :])
        if rest is None or len(rest) * len(choices) > MOST:
            return None
        return [items[:start] + choice + tail for choice in choices for tail in rest]
    return [items]


def _matching(items: list[Item], start: int) -> tuple[int, list[int]]:
    """Where the brace at a place is closed (0: nowhere), and the commas that it has of its own."""
    level = 0
    commas: list[int] = []
    for place in range(start, len(items)):
        if items[place] == "{":
            level += 1
        elif items[place] == "}":
            level -= 1
            if level == 0:
                return place, commas
        elif items[place] == "," and level == 1:
            commas.append(place)
    return 0, []


def _choices(inner: list[Item], commas: list[int]) -> list[list[Item]] | None:
    """What a pair of braces may stand for; nothing when they are mere text or too many."""
    if not commas:
        return _range(inner)
    choices: list[list[Item]] = []
    for begin, end in zip([-1, *commas], [*commas, len(inner)], strict=True):
        words = _words(inner[begin + 1 : end])
        if words is None or len(choices) + len(words) > MOST:
            return None
        choices.extend(words)
    return choices


def _range(inner: list[Item]) -> list[list[Item]] | None:
    text = "".join(item if isinstance(item, str) else "\0" for item in inner)
    first, dots, last = text.partition("..")
    last, _, step = last.partition("..")
    if not dots:
        return None
    if len(first) == len(last) == 1 and first.isalpha() and last.isalpha() and first.isascii():
        return [[chr(code)] for code in _steps(ord(first), ord(last), step)]
    try:
        numbers = _steps(int(first), int(last), step)
    except ValueError:
        return None
    width = max(len(first), len(last)) if first[:2].lstrip("-")[:1] == "0" or last[:1] == "0" else 0
    return [list(str(number).zfill(width)) for number in numbers]


def _steps(first: int, last: int, step: str) -> range:
    stride = abs(int(step or 1)) or 1
    if abs(last - first) // stride >= MOST:
        raise ValueError
    return range(first, last + 1, stride) if last >= first else range(first, last - 1, -stride)


def _token(items: list[Item]) -> Token:
    parts: list[Node] = []
    text: list[str] = []
    for item in [*items, None]:
        if isinstance(item, str):
            text.append(item)
            continue
        if text:
            parts.append(Text("".join(text)))
            text = []
        if item is not None:
            parts.append(item)
    return Token(tuple(parts))
