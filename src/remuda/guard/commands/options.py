"""Reads a command's arguments by a declaration of its options.

A declaration is a text such as ``-abc -n: -o|--output:w --color? --*``: flags that may be joined, options
that take a value (``:``), two of them (``::``, the second counts) or may have one attached (``?``), other
names of the same option (``|``, the last one counts), and the role of its value (see the module ``rows``; a
flag may have ``!``). ``-*`` and ``--*`` allow any other flag, ``-#`` numbers, ``+`` ends the options at the
first operand, ``~`` has long names behind one dash.
"""

from __future__ import annotations

from functools import cache

import msgspec

from remuda.guard.model import Taint, Word, literal

LOOKALIKES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"
UNTRUSTED: frozenset[Taint] = frozenset({"network"})


class Option(msgspec.Struct, frozen=True):
    """An option: its name without dashes, how it takes a value, and the role of that value."""

    name: str
    takes: str = ""
    role: str = ""


class Declaration(msgspec.Struct, frozen=True):
    """The options of a command, by every name they have."""

    short: dict[str, Option]
    long: dict[str, Option]
    any_short: bool = False
    any_long: bool = False
    numbers: bool = False
    stops: bool = False
    single: bool = False


class Parsed(msgspec.Struct):
    """Arguments taken apart: options in their order, operands, and what the declaration does not know."""

    given: list[tuple[Option, Word | None]] = []
    operands: list[Word] = []
    strange: list[str] = []
    divided: int | None = None
    """How many operands came before ``--``."""

    def has(self, *names: str) -> bool:
        """Whether one of these options was given."""
        return any(option.name in names for option, _ in self.given)

    def values(self, *names: str) -> list[Word]:
        """The values that these options were given."""
        return [value for option, value in self.given if option.name in names and value is not None]

    def value(self, *names: str) -> Word | None:
        """The last value that these options were given."""
        return values[-1] if (values := self.values(*names)) else None


@cache
def declaration(text: str) -> Declaration:
    """Reads a declaration."""
    tokens = text.split()
    short: dict[str, Option] = {}
    long: dict[str, Option] = {}
    for token in tokens:
        if token in {"-*", "--*", "-#", "+", "~"}:
            continue
        names, takes, role = _token(token)
        last = names[-1].lstrip("-")
        for name in names:
            if name.startswith("--"):
                long[name[2:]] = Option(last, takes, role)
            elif takes or len(names) > 1:
                short[name[1:]] = Option(last, takes, role)
            else:
                short.update((letter, Option(letter, "", role)) for letter in name[1:])
    return Declaration(
        short=short,
        long=long,
        any_short="-*" in tokens,
        any_long="--*" in tokens,
        numbers="-#" in tokens,
        stops="+" in tokens,
        single="~" in tokens,
    )


def _token(token: str) -> tuple[list[str], str, str]:
    for takes in ":?":
        head, found, role = token.partition(takes)
        if found:
            return head.split("|"), takes + role[: role.startswith(":")], role.removeprefix(":")
    head, _, role = token.partition("!")
    return head.split("|"), "", "!" if head != token else role


def parse(text: str, arguments: tuple[Word, ...] | list[Word]) -> Parsed:
    """Takes arguments apart by a declaration. Never fails: what it cannot place is in ``strange``."""
    declared = declaration(text)
    parsed = Parsed()
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        first = _beginning(word)
        if first == "--" and word.text == "--":
            parsed.divided = len(parsed.operands)
            parsed.operands.extend(reversed(rest))
            break
        if len(first) > 1 and first[0] == "-" and not (declared.numbers and _number(first)):
            _option(declared, word, first, rest, parsed)
            continue
        if first[:1] in LOOKALIKES and first:
            parsed.strange.append(first)
        elif not word.values and word.taint & UNTRUSTED:
            parsed.strange.append("an argument that may be an option")
        if not (declared.numbers and _number(first)):
            parsed.operands.append(word)
        if declared.stops:
            parsed.operands.extend(reversed(rest))
            break
    return parsed


def _beginning(word: Word) -> str:
    """How a word begins, where that makes it an option."""
    if not word.values:
        return word.prefix
    return next((value for value in word.values if value[:1] == "-"), word.values[0])


def _number(text: str) -> bool:
    return text[:1] in "+-" and text[1:].isdigit()


def _option(declared: Declaration, word: Word, text: str, rest: list[Word], parsed: Parsed) -> None:
    if len(word.values) > 1:
        parsed.strange.append(f"one of {len(word.values)} options")
    if text.startswith("--") or declared.single:
        _long(declared, word, text.lstrip("-"), rest, parsed)
    else:
        _short(declared, word, text, rest, parsed)


def _long(declared: Declaration, word: Word, text: str, rest: list[Word], parsed: Parsed) -> None:
    name, assigned, attached = text.partition("=")
    option = find_long(declared, name)
    if option is None:
        if not declared.any_long:
            parsed.strange.append(word.text or f"--{name}")
        parsed.given.append((Option(name), attached_value(word, attached) if assigned else None))
    elif assigned:
        parsed.given.append((option, attached_value(word, attached)))
    elif option.takes == ":" and declared.any_long and name not in declared.long:
        parsed.given.append((option, rest[-1] if rest else None))  # it may be another option, without a value
    elif option.takes in {":", "::"}:
        parsed.given.append((option, _taken(option, rest)))
    else:
        parsed.given.append((option, None))


def find_long(declared: Declaration, name: str) -> Option | None:
    """The option of that name, or the only one that it abbreviates."""
    if name in declared.long:
        return declared.long[name]
    if declared.single:
        return declared.short.get(name)
    found = {option for known, option in declared.long.items() if name and known.startswith(name)}
    return found.pop() if len(found) == 1 else None


def _short(declared: Declaration, word: Word, text: str, rest: list[Word], parsed: Parsed) -> None:
    letters = text[1:]
    for place, letter in enumerate(letters):
        option = declared.short.get(letter)
        if option is None:
            if not declared.any_short:
                parsed.strange.append(f"-{letter}")
            option = Option(letter)
        if not option.takes:
            parsed.given.append((option, None))
            continue
        attached = letters[place + 1 :]
        if attached or not word.values:
            parsed.given.append((option, attached_value(word, attached)))
        else:
            parsed.given.append((option, _taken(option, rest) if option.takes != "?" else None))
        return


def _taken(option: Option, rest: list[Word]) -> Word | None:
    """The words that follow, as an option's value."""
    for _ in option.takes[1:]:
        if rest:
            rest.pop()
    return rest.pop() if rest else None


def attached_value(word: Word, text: str) -> Word:
    """The value that is part of an option's own word, as unknown or as much of a pattern as the word is."""
    if not word.values:
        return Word((), taint=word.taint, prefix=text)
    return msgspec.structs.replace(word, values=(text,)) if word.pattern or word.taint else literal(text)
