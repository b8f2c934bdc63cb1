"""``echo`` and ``printf``: what they print is known when their words are."""

from __future__ import annotations

from remuda.guard.model import Unknown, Word, literal
from remuda.guard.shell import escapes
from remuda.guard.shell.calls import Caller
from remuda.guard.shell.state import Data, State, joined, known, opaque, tainted

Arguments = tuple[Word, ...]


def echo(_caller: Caller, arguments: Arguments, _state: State) -> Data:
    """Joins its words."""
    rest = list(arguments)
    flags = ""
    while rest and (text := rest[0].text) and text[0] == "-" and text[1:] and not text[1:].strip("neE"):
        flags += text[1:]
        rest.pop(0)
    line = joined(rest)
    if line.text is None:
        return Data(None, line)
    text = escapes.echo(line.text) if "e" in flags else line.text
    return known(text if "n" in flags else text + "\n", line.taint)


def printf(caller: Caller, arguments: Arguments, state: State) -> Data:
    """Fills its words into a format; with ``-v`` into a variable."""
    rest = list(arguments)
    name: str | None = None
    if len(rest) > 1 and rest[0].text == "-v":
        name = rest[1].text
        rest = rest[2:]
        if name is None or "[" in name:
            caller.note(Unknown(why="printf sets a variable that is not known"), state)
    if rest and rest[0].text == "--":
        rest.pop(0)
    data = _printed(rest)
    if name is None:
        return data
    caller.set(name, literal(data.text) if data.text is not None else data.line, state)
    return known("")


def _printed(rest: list[Word]) -> Data:
    taint = tainted(rest)
    texts = [word.text for word in rest]
    if not texts or texts[0] is None:
        return opaque(taint or frozenset({"unknown"}))
    values = [text for text in texts[1:] if text is not None]
    if len(values) == len(texts) - 1 and (text := _formatted(texts[0], values)) is not None:
        return known(text, taint)
    if len(rest) == 2 and texts[0] in {"%s", "%s\n", "%s\\n"}:
        return Data(None, rest[1])
    return opaque(taint or frozenset({"unknown"}))


def _formatted(form: str, values: list[str]) -> str | None:
    """The text of a format with plain directives; nothing for others."""
    pieces: list[str] = []
    left = list(values)
    while True:
        filled = 0
        at = 0
        while (found := form.find("%", at)) >= 0:
            pieces.append(escapes.echo(form[at:found]))
            directive = form[found + 1 : found + 2]
            at = found + 2
            if directive == "%":
                pieces.append("%")
                continue
            if directive not in {"s", "b", "d", "q"}:
                return None
            value = left.pop(0) if left else ("0" if directive == "d" else "")
            pieces.append(escapes.echo(value) if directive == "b" else value)
            filled += 1
        pieces.append(escapes.echo(form[at:]))
        if not left or not filled:
            return "".join(pieces)
