"""Hermes over the Agent Client Protocol, and what its log on stderr tells before the protocol does.

Hermes calls a failed model call a successful turn whose answer is the error message. The log knows better.
"""

from __future__ import annotations

import re

from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.dialogue import one_turn
from remuda.runtimes.failures import failure

_LOG = rb"^\d{4}-\d\d-\d\d [\d:]{8} \[[A-Z]+\] agent\.conversation_loop: "
_TRYING = re.compile(_LOG + rb"API call failed \(attempt .* summary=(.+)")
_GIVEN_UP = re.compile(_LOG + rb"(?:Non-retryable client error: |API call failed after \d+ retries\. )(.+)")
_BLOCKED = re.compile(r"\w+ failed: BLOCKED: ")
_ANSWERED = re.compile(_LOG + rb"API call #")


def hear(state: TurnState, line: bytes) -> None:
    """Trouble with the model, the end of it, and the end of Hermes' patience with it."""
    if found := _TRYING.search(line):
        state.trouble = failure(found[1].decode("utf-8", "replace"))
    elif found := _GIVEN_UP.search(line):
        state.failure = state.trouble or failure(found[1].decode("utf-8", "replace"))
    elif _ANSWERED.search(line):
        state.trouble = None


def model(name: str) -> str:
    """A model's name without that of its provider."""
    return name.partition(":")[2] or name


def refuses(output: str) -> bool:
    """Hermes tells of its deny rules as of a tool that failed."""
    return _BLOCKED.match(output) is not None


DIALECT = Dialect(
    gets_stuck=True,
    counted_since="process",
    uncounted_is_failed=True,
    refuses=refuses,
    model=model,
    hear=hear,
)


def parser(turn: Turn, prompt: str) -> Parser:
    """A parser for one turn with nobody to ask."""
    return one_turn(AcpConnection(turn, DIALECT), prompt)
