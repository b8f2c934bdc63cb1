"""``awk``: reads its program, which may write files and run commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import LONGEST, assignment, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options, role
from remuda.guard.model import UNKNOWN, AnyEffect, Environment, Evaluate, Read, Unknown, Word, literal

OPTIONS = """
    -F|--field-separator: -v|--assign: -f|--file:p -e|--source: -i|--include: -l|--load:! -E|--exec:p
    -bcChMnNOrsStVg -d?w -o?w -p?w -D? -L? --characters-as-bytes --traditional --posix --re-interval --sandbox
    --lint? --non-decimal-data --bignum --csv -k --dump-variables?w --pretty-print?w --profile?w
"""
END = frozenset({";", "\n", "{", "}", ""})
Token = tuple[str, str]
"""A kind (``string``, ``regex``, ``name`` or ``mark``) and a text."""

_NAME = r"[A-Za-z_]\w*"
_PARTS = (
    rf"[ \t\r]+|\\\n|#[^\n]*|(?P<string>\"(?:\\.|[^\"\\\n])*\")|(?P<name>@?{_NAME})|(?P<number>[\d.]+)"
    r"|(?P<mark>>>|\|&|\|\||&&|[<>=!]=|.|\n)"
)


def awk(call: Call) -> Iterator[AnyEffect]:
    """The effects of the program, and the files that it is run on."""
    parsed = parse(OPTIONS, call.arguments)
    yield from options(call, parsed)
    words = list(parsed.operands)
    programs = parsed.values("source")
    if not parsed.has("source", "file", "exec") and words:
        programs = [words.pop(0)]
    for program in programs:
        if not program.values or any(len(text) > LONGEST for text in program.values):
            yield Evaluate(language="awk", origin=program.taint)
            continue
        for text in program.values:
            yield from _program(call, text)
    edits = any(word.text == "inplace" for word in parsed.values("include"))
    if parsed.has("include") and not edits:
        yield Unknown(why="awk includes another program")
    files = [word for word in words if not _sets(word)]
    yield from operands(call, "e*" if edits else "r*", files)


def _sets(word: Word) -> bool:
    pair = assignment(word)
    return pair is not None and pair[0].isidentifier()


def _program(call: Call, text: str) -> Iterator[AnyEffect]:
    tokens = [*tokenize(text), ("mark", "")]
    printing, depth = False, 0
    for at, (kind, piece) in enumerate(tokens):
        if kind == "regex" and at and tokens[at - 1][1] in {"+", "-", "getline"}:
            yield Unknown(why="awk divides or matches here, which cannot be told")
        elif kind == "name":
            printing = printing or piece in {"print", "printf"}
            yield from _called(call, piece, tokens[at + 1 : at + 4])
        elif kind == "mark":
            depth += (piece in "([") - (piece in ")]") if piece else 0
            if piece in END:
                printing, depth = False, 0
            elif piece in {">", ">>"} and (piece == ">>" or (printing and depth <= 0)):
                yield from written(_operand(tokens, at + 1), "append" if piece == ">>" else "truncate")
            elif piece in {"|", "|&"}:
                yield from _pipe(call, tokens, at)
            elif piece == "<" and ("name", "getline") in tokens[max(0, at - 6) : at]:
                yield Read(path=_source(tokens, at + 1))


def _called(call: Call, name: str, following: list[Token]) -> Iterator[AnyEffect]:
    if name == "system":
        plain = [piece for piece in following if piece[1] != "("]
        literal_only = len(following) == 3 and plain[0][0] == "string" and plain[1][1] == ")"
        yield from role(call, "x", literal(unquoted(plain[0][1])) if literal_only else UNKNOWN)
    elif name == "ENVIRON":
        key = next((unquoted(piece) for kind, piece in following[1:2] if kind == "string"), "*")
        yield Environment(action="show", name=key)
    elif name.startswith("@") or name == "ARGV":
        yield Unknown(why=f"awk uses {name}, which changes what it reads")


def _pipe(call: Call, tokens: list[Token], at: int) -> Iterator[AnyEffect]:
    """A command on one side of a pipe: behind what is printed, or before what is read."""
    if tokens[at + 1][1] == "getline":
        before = tokens[at - 1] if at else ("mark", "")
        alone = at < 2 or tokens[at - 2][1] in END | {"(", "while"}
        command = literal(unquoted(before[1])) if before[0] == "string" and alone else UNKNOWN
    else:
        command = _operand(tokens, at + 1)
    yield from role(call, "x", command)


def _operand(tokens: list[Token], at: int) -> Word:
    """The word that a string makes which stands alone; anything else is not known."""
    kind, text = tokens[at] if at < len(tokens) else ("mark", "")
    alone = at + 1 >= len(tokens) or tokens[at + 1][1] in END
    return literal(unquoted(text)) if kind == "string" and alone else UNKNOWN


def _source(tokens: list[Token], at: int) -> Word:
    """The file that ``getline`` reads, which binds closer than what follows."""
    kind, text = tokens[at] if at < len(tokens) else ("mark", "")
    return literal(unquoted(text)) if kind == "string" else UNKNOWN


def unquoted(text: str) -> str:
    """The text of a string."""
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text[1:-1], flags=re.DOTALL)


def tokenize(text: str) -> Iterator[Token]:
    """Strings, regular expressions, names and marks; a slash is a division only behind an operand."""
    at, operand = 0, False
    pattern = re.compile(_PARTS, re.DOTALL)
    while at < len(text):
        if text[at] == "/" and not operand:
            end = _regex_end(text, at + 1)
            yield "regex", text[at:end]
            at, operand = end, True
            continue
        match = pattern.match(text, at)
        if match is None:
            return
        at = match.end()
        if match.lastgroup:
            piece = match[match.lastgroup]
            operand = match.lastgroup != "mark" or piece in ")]"
            operand = operand and piece not in {"print", "printf", "return", "in"}
            yield match.lastgroup, piece


def _regex_end(text: str, at: int) -> int:
    bracket = False
    while at < len(text) and (bracket or text[at] != "/"):
        if text[at] == "\\":
            at += 1
        elif text[at] in "[]":
            bracket = text[at] == "["
        elif text[at] == "\n":
            return at
        at += 1
    return at + 1


TABLE: Table = dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), awk)
