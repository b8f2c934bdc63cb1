"""Simple commands as rows of a table: their options, and the role that each operand has.

A table is a text: ``NAME NAME => ROLE ROLE*`` (names may go on over several lines, ``*`` is for all operands
that follow) with the options of these commands indented below. Roles: none or ``-`` is mere text, ``r`` is
read, ``n`` has only its name or entries looked at, ``w`` is written anew, ``a`` appended to, ``c`` made,
``e`` edited, ``d`` deleted, ``t`` deleted with everything below, ``m`` has its mode changed, ``x`` is a text
for a shell, ``p`` a program or script of the project, ``!`` cannot be judged. Capitals are left to the
handlers of single commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from remuda.guard.commands.contract import Call, Handler
from remuda.guard.commands.operands import written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.model import AnyEffect, Execute, How, Read, Unknown, Word

HOW: dict[str, How] = {
    "w": "truncate",
    "a": "append",
    "c": "create",
    "e": "edit",
    "d": "delete",
    "t": "delete-tree",
    "m": "mode",
}


class Row(msgspec.Struct, frozen=True):
    """A command: its options, the roles of its operands, and what it does whatever they are."""

    options: str = ""
    operands: str = ""
    always: tuple[AnyEffect, ...] = ()


def table(text: str, *always: AnyEffect) -> dict[str, Handler]:
    """The handlers of all rows of a table."""
    handlers: dict[str, Handler] = {}
    names: list[str] = []
    signature, declared = "", ""
    for line in (*text.splitlines(), "=>"):
        if line.startswith(" "):
            declared += line
            continue
        if declared or signature:
            made = handler(Row(declared, signature, always))
            handlers.update(dict.fromkeys(names, made))
            names, signature, declared = [], "", ""
        listed, _, roles = line.partition("=>")
        names += listed.split()
        signature = roles.strip()
    return handlers


def handler(row: Row) -> Handler:
    """The handler of a row."""

    def effects(call: Call) -> Iterator[AnyEffect]:
        parsed = parse(row.options, call.arguments)
        yield from row.always
        yield from options(call, parsed)
        yield from operands(call, row.operands, parsed.operands)

    return effects


def options(call: Call, parsed: Parsed) -> Iterator[AnyEffect]:
    """The effects of the options alone, strange ones included."""
    for text in parsed.strange:
        yield strange(call.name, text)
    for option, value in parsed.given:
        if option.role == "!":
            yield Unknown(why=f"{call.name} with the option {option.name} does more than can be told")
        elif value is not None:
            yield from role(call, option.role, value)


def operands(call: Call, signature: str, words: Iterable[Word]) -> Iterator[AnyEffect]:
    """The effects that operands have by their roles."""
    roles = signature.split()
    repeated = roles.pop()[:-1] if roles and roles[-1].endswith("*") else ""
    for place, word in enumerate(words):
        yield from role(call, roles[place] if place < len(roles) else repeated, word)


def role(call: Call, name: str, word: Word) -> Iterator[AnyEffect]:
    """The effect of a word in a role."""
    if name in {"", "-"} or name.isupper() or word.text == "-":
        return
    if name in HOW:
        yield from written(word, HOW[name], follows=name not in "dt")
    elif name in {"r", "n"}:
        yield Read(path=word, names=name == "n")
    elif name == "x":
        yield from shell(call, word)
    elif name == "p":
        yield Execute(program=word, argv=(word,), kind="project")
    else:
        yield Unknown(why=f"{call.name} with {word.text or 'such an argument'} does more than can be told")


def shell(call: Call, word: Word) -> Iterator[AnyEffect]:
    """The effects of a word that is given to a shell."""
    if not word.values or word.pattern:
        yield Unknown(why=f"{call.name} runs a text that is not known")
    for text in word.values:
        yield from call.shell(text)


def strange(name: str, text: str) -> Unknown:
    """What an option that no table has comes to."""
    return Unknown(why=f"{name} has an option that is not known: {text}")
