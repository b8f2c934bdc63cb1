"""Classifies what model endpoints and agent CLIs say when they fail: the same kinds for every runtime."""

from __future__ import annotations

import re

from remuda.core.errors import ErrorKind
from remuda.core.events import Failure

_QUOTA = re.compile(r"quota|billing|credit|usage limit|payment required", re.IGNORECASE)
_SPENT = re.compile(r"credit balance|usage limit|insufficient_quota", re.IGNORECASE)
"""What an endpoint says of an account, even where it calls the request a bad one."""

_WORDS: tuple[tuple[ErrorKind, str], ...] = (
    ("model", r"prompt is too long|context.(length|window|limit)|maximum context"),
    ("quota", r"insufficient_quota|quota exceeded|exceeded your|credit balance|usage limit|hit your limit"),
    ("quota", r"\b402\b|payment required"),
    ("rate_limit", r"\b429\b|rate.?limit|too many requests|resource.?exhausted"),
    ("auth", r"\b40[13]\b|unauthori[sz]ed|authenticat|api.?key|not logged in|/login"),
    ("model", r"\b(400|5\d\d)\b|connect|network|overloaded|stream|fetch failed"),
)
_NODE = re.compile(r"^(?:\w+: )?Node(?:\.js)? v?((\d+)\.(\d+)\.\d+)", re.MULTILINE)
_PATTERNS = tuple((kind, re.compile(words, re.IGNORECASE)) for kind, words in _WORDS)


def by_status(status: int, message: str = "") -> ErrorKind:
    """The kind that an HTTP status stands for."""
    if status == 402 or (status in (403, 429) and _QUOTA.search(message)):
        return "quota"
    if status == 400 and _SPENT.search(message):
        return "quota"
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate_limit"
    return "model"


def by_text(text: str) -> ErrorKind | None:
    """The kind that an error text speaks of, if it is recognisable."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(text)), None)


def failure(message: str, status: int | None = None, default: ErrorKind = "model") -> Failure:
    """A failure from whatever a program told: a status if there is one, else its words."""
    text = message.strip() or "the agent gave no reason"
    kind = by_status(status, text) if status else by_text(text) or default
    return Failure(kind, text[:2000])


def old_node(text: str, oldest: tuple[int, int]) -> str | None:
    """That a program needs a newer Node.js, if its last words name the one it crashed on."""
    found = _NODE.search(text)
    if found is None or (int(found[2]), int(found[3])) >= oldest:
        return None
    return f"it needs Node.js {oldest[0]}.{oldest[1]} or newer, not {found[1]}"
