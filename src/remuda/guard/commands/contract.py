"""How a command is described: a call, and a handler that yields its effects.

A handler is pure and total. It yields nothing for a call that only reads what anybody may read and prints it;
an option that it does not know must yield :class:`~remuda.guard.model.Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from remuda.guard.model import NOTHING, AnyEffect, Taint, Word

Again = Callable[[tuple[Word, ...]], Iterable[AnyEffect]]
Source = Callable[[str], Iterable[AnyEffect]]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A simple command after expansion. Paths in ``arguments`` are as written; whoever runs the handler makes
    the paths of its effects absolute.

    ``input`` is where standard input comes from (nothing: it is empty or closed), and ``input_text`` its text
    when that is known. ``again(argv)`` gives the effects of another command that this one runs with the same
    input, ``shell(source)`` those of a text that it gives to a shell.
    """

    name: str
    arguments: tuple[Word, ...]
    input: frozenset[Taint] = NOTHING
    input_text: str | None = None
    environment: Mapping[str, Word] = {}
    again: Again
    shell: Source


Handler = Callable[[Call], Iterable[AnyEffect]]
Table = Mapping[str, Handler]
