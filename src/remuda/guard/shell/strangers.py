"""Programs that nobody knows: where in their arguments another command may begin."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename

from remuda.guard.commands import lookup
from remuda.guard.model import Word
from remuda.guard.shell.programs import PROGRAMS
from remuda.guard.shell.state import names

_BEFORE = names("-- -e -x -c --exec --command --cmd --run")
_FIRST = 2
_AMBIGUOUS = names(
    """
    test install link open view write delete task stack head sum time size set help info list script watch
    batch
    at split join sort file tree date host service history jobs wait yes sync convert type which look printf
    echo
    cut paste last free top users groups true false env factor fold dir more less red next patch make go code
    """
)
"""Names of programs that are also words which a program may have for something of its own."""


def commands(arguments: tuple[Word, ...]) -> Iterator[int]:
    """Where in the arguments of a program that nobody knows another command may begin: with the first of them
    that is one, behind ``--`` or behind an option that is called so."""
    operands = 0
    for place, word in enumerate(arguments[:-1]):
        text = word.text or ""
        if text in _BEFORE:
            yield place + 1
            return
        operands += text[:1] != "-"
        if text[:1] not in {"", "-"} and operands <= _FIRST and _known(basename(text)):
            yield place
            return


def _known(name: str) -> bool:
    return name not in _AMBIGUOUS and (name in PROGRAMS or lookup(name) is not None)
