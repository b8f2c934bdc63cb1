"""Expands words: from how they are written to every text that they may have.

The order is the shell's own: braces, tilde, parameters and substitutions, splitting, and patterns, which are
kept as patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product

import msgspec

from remuda.guard.model import NOTHING, AnyEffect, Word, literal
from remuda.guard.shell import parameters
from remuda.guard.shell.arithmetic import calculate
from remuda.guard.shell.braces import expand
from remuda.guard.shell.lexer import HereDocument
from remuda.guard.shell.state import EMPTY, NAME, Data, State, concatenate, either, joined, unknown
from remuda.guard.shell.syntax import Arithmetic, Node, Parameter, Substitution, Text, Token

VARIANTS = 16
"""In how many ways a word may be split before it counts as unknown."""

Fields = tuple[Word, ...]
_ASSIGNED = re.compile(r"([A-Za-z_]\w*=)~(?=/|$)", re.ASCII)


class Shell(msgspec.Struct, frozen=True):
    """What an expansion needs of the interpreter: its state, the output of commands, and a place for effects.

    ``shows``: whether the word is for others to see, as it is not in a test.
    """

    state: State
    run: Callable[[Node], Data]
    attach: Callable[[Node, str], Word]
    note: Callable[[AnyEffect], None]
    shows: bool = True


class Piece(msgspec.Struct, frozen=True):
    """A part of a word after expansion. ``words``: one, or those of ``"$@"``. ``splits``: it is unquoted, so
    that blanks divide it and an empty one is nothing at all."""

    words: Fields
    splits: bool = False


def fields(shell: Shell, token: Token) -> list[Fields]:
    """The words that a word becomes, in every way in which that may happen."""
    tokens = expand(token)
    if tokens is None:
        return [(unknown(),)]
    if len(tokens) == 1:
        return _variants(shell, tokens[0])
    ways = [
        tuple(word for part in way for word in part) for way in _ways([_variants(shell, t) for t in tokens])
    ]
    return ways or [(unknown(),)]


def argv(shell: Shell, tokens: tuple[Token, ...]) -> list[Fields]:
    """All words of a command, in every way in which they may be split."""
    return [tuple(word for part in way for word in part) for way in _ways([fields(shell, t) for t in tokens])]


def _ways(choices: list[list[Fields]]) -> Iterator[tuple[Fields, ...]]:
    """One choice from each list, all combinations; where there are too many, the last ones are unknown."""
    count = 1
    for place, choice in enumerate(choices):
        count *= len(choice)
        if count > VARIANTS:
            choices[place] = [(unknown(),)]
            count //= len(choice)
    return product(*choices)


def single(shell: Shell, token: Token) -> Word:
    """A word that is not split, as the value of a variable."""
    result = EMPTY
    for piece in _pieces(shell, token, assigned=True):
        result = concatenate(result, piece.words[0] if len(piece.words) == 1 else joined(piece.words))
    return result


def target(shell: Shell, token: Token) -> Word:
    """The one word that a redirection needs."""
    ways = fields(shell, token)
    return either(way[0] if len(way) == 1 else unknown() for way in ways)


def _variants(shell: Shell, token: Token) -> list[Fields]:
    pieces = _pieces(shell, token)
    if any(not piece.words for piece in pieces) and all(piece.words in {(), (EMPTY,)} for piece in pieces):
        return [()]
    separators = parameters.separators(shell.state)
    choices = [_choices(piece, separators) for piece in pieces]
    if all(len(choice) == 1 for choice in choices):
        return [_assemble([choice[0] for choice in choices], separators)]
    ways = product(*choices)
    found = list(
        dict.fromkeys(
            _assemble(list(way), separators) for _, way in zip(range(VARIANTS + 1), ways, strict=False)
        )
    )
    return found if len(found) <= VARIANTS else [(unknown(),)]


def _choices(piece: Piece, separators: str | None) -> list[Piece]:
    """A piece on its own for each of its values, where these are split differently."""
    word = piece.words[0] if len(piece.words) == 1 else EMPTY
    if not piece.splits or len(word.values) < 2:
        return [piece]
    marks = separators or ""
    if all(value and not any(mark in value for mark in marks) for value in word.values):
        return [piece]
    return [Piece((msgspec.structs.replace(word, values=(value,)),), True) for value in word.values]


def _assemble(pieces: list[Piece], separators: str | None) -> Fields:
    """Puts pieces together, dividing where they split."""
    done: list[Word] = []
    current: Word | None = None
    for piece in pieces:
        words, first, last = _split(piece, separators)
        if first and current is not None:
            done.append(current)
            current = None
        for place, word in enumerate(words):
            if place and current is not None:
                done.append(current)
                current = None
            current = word if current is None else concatenate(current, word)
        if last and current is not None:
            done.append(current)
            current = None
    return (*done, current) if current is not None else tuple(done)


def _split(piece: Piece, separators: str | None) -> tuple[Fields, bool, bool]:
    """The words of a piece, and whether it is divided from what comes before and after it."""
    if not piece.splits:
        return piece.words, False, False
    found: list[Word] = []
    before = after = False
    for word in piece.words:
        if separators is None:
            found.append(unknown(word.taint))
        elif word.text is None:
            found.append(_globbing(word))
        else:
            texts, before, after = _divide(word.text, separators)
            found.extend(_globbing(msgspec.structs.replace(word, values=(text,))) for text in texts)
    return tuple(found), before, after


def _divide(text: str, separators: str) -> tuple[list[str], bool, bool]:
    if not separators:
        return ([text] if text else []), False, False
    first = separators[0]
    for mark in separators[1:]:
        text = text.replace(mark, first)
    if first not in text:
        return ([text] if text else []), False, False
    return [part for part in text.split(first) if part], text.startswith(first), text.endswith(first)


def _pieces(shell: Shell, token: Token, assigned: bool = False) -> list[Piece]:
    pieces: list[Piece] = []
    for place, part in enumerate(token.parts):
        if isinstance(part, Text):
            pieces.append(Piece((_text(shell, token, place, part, assigned),)))
        elif isinstance(part, Parameter):
            pieces.append(_parameter(shell, part))
        elif isinstance(part, Substitution):
            pieces.append(_substitution(shell, part))
        elif isinstance(part, Arithmetic):
            calculate(shell, single(shell, part.expression))
            pieces.append(Piece((NAME,)))
        elif isinstance(part, HereDocument):
            pieces.append(Piece((single(shell, Token(tuple(part.parts))),)))
    return pieces


def _text(shell: Shell, token: Token, place: int, part: Text, assigned: bool) -> Word:
    if part.quoted:
        return literal(part.text)
    text = part.text
    word = EMPTY
    if place == 0 and text.startswith("~"):
        name, slash, rest = text[1:].partition("/")
        if slash or len(token.parts) == 1:
            word, text = _home(shell.state, name), slash + rest
    elif assigned and ":~" in text:
        text = text.replace(":~", f":{shell.state.home.text or '~'}")
    elif place == 0 and "=~" in text and (match := _ASSIGNED.match(text)):
        word, text = concatenate(literal(match[1]), _home(shell.state, "")), text[match.end() :]
    return concatenate(word, literal(text) if assigned else _globbing(literal(text)))


def _home(state: State, name: str) -> Word:
    if name == "+":
        return state.cwd
    if name == "-":
        return state.previous
    if name:
        return literal("/root") if name == "root" else unknown()
    return state.variables.get("HOME", state.home)


def _globbing(word: Word) -> Word:
    """A word with unquoted text: a pattern, if it has the marks of one."""
    if word.pattern or not any(mark in value for value in word.values for mark in "*?[("):
        return word
    globs = [_glob(value) for value in word.values]
    if None in globs:
        return unknown(word.taint)
    values = tuple(glob for glob in globs if glob is not None)
    wild = any(mark in value for value in values for mark in "*?") or any(
        "]" in v[v.find("[") + 2 :] for v in values
    )
    return Word(values, pattern=wild, taint=word.taint)


def _glob(text: str) -> str | None:
    """A pattern without the extended ones, which a star stands for; nothing where that is not enough."""
    start = next((at for at in range(len(text) - 1) if text[at] in "?*+@!" and text[at + 1] == "("), None)
    if start is None:
        return text
    return None if "/" in text[start:] else text[:start] + "*"


def _parameter(shell: Shell, part: Parameter) -> Piece:
    words = parameters.value(shell, part, single)
    if part.quoted and (
        part.name == "*" or (part.subscript is not None and parameters.plain(part.subscript) == "*")
    ):
        words = (joined(words),)
    return Piece(words, splits=not part.quoted)


def _substitution(shell: Shell, part: Substitution) -> Piece:
    if part.direction:
        return Piece((shell.attach(part.script, part.direction),))
    data = shell.run(part.script)
    if data.text is not None:
        word = Word((data.text.rstrip("\n"),), taint=data.taint)
    else:
        word = data.line if data.line.values else unknown(data.taint)
    return Piece((word,), splits=not part.quoted)


def document(shell: Shell, token: Token) -> Word:
    """The text of a here-document or here-string."""
    return single(shell, token)


def plain(word: Word) -> Data:
    """A word as the text that a command is given."""
    if word.text is None:
        return Data(None, word)
    lines = tuple(dict.fromkeys(word.text.splitlines()))
    return Data(word.text, Word(lines, taint=word.taint or NOTHING))
