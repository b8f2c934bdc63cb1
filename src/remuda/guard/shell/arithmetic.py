"""Arithmetic: what it calculates does not matter, but it changes variables and may run commands.

An array's index is expanded once more while it is calculated, so that a *value* with a substitution runs it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from remuda.guard.model import Unknown, Word
from remuda.guard.shell.state import MOST, NAME

if TYPE_CHECKING:
    from remuda.guard.shell.words import Shell

LONGEST = 4096
_NAMES = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CHANGED = re.compile(
    r"([A-Za-z_]\w*)(?:\[[^]]*\])?\s*(?:[-+*/%&|^]?=(?!=)|<<=|>>=|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)


def calculate(shell: Shell, expression: Word) -> None:
    """Notes what the calculation of an expression does besides."""
    for text in expression.values:
        if any("$(" in value or "`" in value for value in _reached(shell, text)):
            shell.note(Unknown(why="an expression has a command in a value"))
        for match in _CHANGED.finditer(text):
            shell.state.variables[match[1] or match[2]] = NAME


def _reached(shell: Shell, text: str) -> set[str]:
    """An expression, and the values of its variables, which are expressions too."""
    reached = {text}
    ahead = [text]
    while ahead and len(reached) < MOST:
        for name in _NAMES.findall(ahead.pop()[:LONGEST]):
            word = shell.state.variables.get(name)
            new = set(word.values if word else ()) - reached
            reached |= new
            ahead.extend(new)
    return reached
