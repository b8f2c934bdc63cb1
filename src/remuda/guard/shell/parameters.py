"""Parameters: variables, arrays, positional and special ones, and the operators of ``${…}``."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from remuda.guard.model import Environment, Unknown, Word, literal
from remuda.guard.shell.arithmetic import calculate
from remuda.guard.shell.state import EMPTY, MOST, NAME, State, either, names, tainted, union, unknown, unset
from remuda.guard.shell.syntax import Parameter, Text, Token

if TYPE_CHECKING:
    from remuda.guard.shell.words import Shell

    Single = Callable[[Shell, Token], Word]

NUMBERS = names(
    "? $ # - RANDOM SRANDOM SECONDS LINENO UID EUID PPID BASHPID EPOCHSECONDS EPOCHREALTIME COLUMNS LINES"
    " SHLVL OPTIND BASH_VERSION BASH_SUBSHELL HISTCMD GROUPS"
)
NAMES = names("USER LOGNAME HOSTNAME HOSTTYPE OSTYPE MACHTYPE FUNCNAME LANG LC_ALL TERM")
USUAL = {"TMPDIR": "/tmp", "SHELL": "/bin/bash", "BASH": "/bin/bash", "IFS": " \t\n"}  # noqa: S108
"""Values that a variable has unless the environment says otherwise."""

JOB = literal("%1")
"""``$!``, as the job that it is."""

LONGEST = 512
"""How long a text may be for a pattern to be tried on all its beginnings."""

_DEFAULTS = frozenset({"-", ":-", "=", ":="})
_REMOVALS = frozenset({"#", "##", "%", "%%"})


def separators(state: State) -> str | None:
    """The characters at which words are split; nothing when they are not known."""
    word = state.variables.get("IFS")
    return USUAL["IFS"] if word is None else word.text


def lookup(state: State, name: str) -> Word | None:
    """The value of a variable or special parameter; nothing when only the environment knows it."""
    if name in state.variables:
        return state.variables[name]
    if name in state.arrays:
        return state.arrays[name][0] if state.arrays[name] else EMPTY
    special = {"PWD": state.cwd, "OLDPWD": state.previous, "!": JOB, "_": state.last}
    if name in special:
        return special[name]
    if name in state.environment:
        return literal(state.environment[name])
    if name.isdigit():
        return _positional(state, int(name))
    if name in NUMBERS or name in NAMES:
        return NAME
    if name == "HOME":
        return state.home
    return literal(USUAL[name]) if name in USUAL else None


def _positional(state: State, number: int) -> Word:
    if number == 0:
        return state.program
    if any(not word.values and not word.prefix for word in state.positional[:number]):
        return unknown(tainted(state.positional))
    return state.positional[number - 1] if number <= len(state.positional) else EMPTY


def value(shell: Shell, part: Parameter, single: Single) -> tuple[Word, ...]:
    """What an expansion stands for: one word, or several."""
    if part.subscript is not None:
        calculate(shell, single(shell, part.subscript))
    if part.operator in {"length", "names"}:
        return (NAME,) if part.operator == "length" else (unknown(),)
    words = _listed(shell.state, part)
    listed = words is not None
    if words is None:
        words = (_scalar(shell, part),)
    if not part.operator:
        return words
    operands = [single(shell, operand) for operand in part.operands]
    for operand in operands if part.operator == ":" else ():
        calculate(shell, operand)
    if part.operator == ":" and listed:
        return _sliced(shell.state, part, words, operands)
    words = words or (EMPTY,)
    return tuple(_operate(shell, part, word, operands) for word in words)


def _listed(state: State, part: Parameter) -> tuple[Word, ...] | None:
    """The words of ``$@`` and of whole arrays."""
    if part.name in {"@", "*"}:
        return state.positional
    if part.subscript is None:
        return None
    if part.indirect:
        return (NAME if plain(part.subscript) in {"@", "*"} else unknown(),)
    items = state.arrays.get(part.name)
    index = plain(part.subscript)
    if index in {"@", "*"}:
        return items if items is not None else (_named(state, part.name),)
    if items is None:
        return None
    if index is not None and index.lstrip("-").isdigit():
        return (items[int(index)] if -len(items) <= int(index) < len(items) else EMPTY,)
    return (either(items),)


def _sliced(state: State, part: Parameter, words: tuple[Word, ...], operands: list[Word]) -> tuple[Word, ...]:
    """Some of the words of ``$@`` or of an array; any of them where it is not known which."""
    if part.name in {"@", "*"}:
        words = (state.program, *words)
    numbers = [operand.text.strip() for operand in operands if operand.text is not None]
    if len(numbers) < len(operands) or not all(number.isdigit() for number in numbers):
        return (either(words),) * len(words)
    start = int(numbers[0])
    return words[start : start + int(numbers[1])] if len(numbers) > 1 else words[start:]


def replaced(items: tuple[Word, ...], index: str | None, value: Word) -> tuple[Word, ...]:
    """An array after one of its items was set."""
    place = int(index) if index is not None and index.isdigit() else -1
    if 0 <= place <= len(items):
        return (*items[:place], value, *items[place + 1 :])
    any_of_them = either((*items, value))
    return (any_of_them,) * min(len(items) + 1, MOST)


def plain(token: Token) -> str | None:
    texts = [part.text for part in token.parts if isinstance(part, Text)]
    return "".join(texts).strip() if len(texts) == len(token.parts) else None


def _named(state: State, name: str) -> Word:
    found = lookup(state, name)
    return unset() if found is None else found


def _scalar(shell: Shell, part: Parameter) -> Word:
    word = lookup(shell.state, part.name)
    if part.indirect:
        names = word.values if word else ()
        if not names:
            return unset()
        shell.note(Environment(action="show", name=names[0]))
        return either(_named(shell.state, name) for name in names)
    if word is not None:
        return word
    if shell.shows and part.operator not in {"+", ":+"}:
        shell.note(Environment(action="show", name=part.name))
    return unset()


def _operate(shell: Shell, part: Parameter, word: Word, operands: list[Word]) -> Word:
    operator = part.operator
    operand = operands[0] if operands else EMPTY
    if operator in _DEFAULTS:
        return _default(shell, part, word, operand)
    if operator in {"+", ":+"}:
        return operand if word.text else union(operand, EMPTY)
    if operator in {"?", ":?"}:
        return word
    if operator.startswith("@"):
        if operator == "@P" and not (word.values and not any("$" in v or "`" in v for v in word.values)):
            shell.note(Unknown(why="a variable is expanded as a prompt"))
        return word if operator == "@E" else unknown(word.taint)
    return _each(word, operator, operands)


def _default(shell: Shell, part: Parameter, word: Word, operand: Word) -> Word:
    if not word.values:
        result = unknown(word.taint | operand.taint)
    elif "" in word.values:
        result = operand if word.text == "" and part.operator[0] == ":" else union(word, operand)
    else:
        result = word
    if part.operator.endswith("="):
        shell.state.variables[part.name] = result
        shell.note(Environment(action="set", name=part.name, value=result))
    return result


def _each(word: Word, operator: str, operands: list[Word]) -> Word:
    """Applies an operator to each value, where all that matters is known."""
    texts = [operand.text for operand in operands]
    if not word.values or any(text is None for text in texts):
        return unknown(word.taint)
    changed = [_change(value, operator, [text or "" for text in texts]) for value in word.values]
    values = tuple(dict.fromkeys(value for value in changed if value is not None))
    if None in changed or (word.pattern and operator not in _REMOVALS):
        return unknown(word.taint)
    return Word(values, word.pattern, word.taint)


def _change(text: str, operator: str, operands: list[str]) -> str | None:
    """A text after an operator; nothing where that is too hard."""
    if operator in _REMOVALS:
        return _remove(text, operator, operands[0]) if len(text) <= LONGEST else None
    if operator.startswith("/"):
        pattern, replacement = operands[0], operands[1] if len(operands) > 1 else ""
        return _replace(text, operator, pattern, replacement) if not _wild(pattern) else None
    if operator in {"^^", ",,"} and not operands[0]:
        return text.upper() if operator == "^^" else text.lower()
    if operator in {"^", ","} and not operands[0]:
        return (text[:1].upper() if operator == "^" else text[:1].lower()) + text[1:]
    return _slice(text, operands) if operator == ":" else None


def _wild(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _remove(text: str, operator: str, pattern: str) -> str:
    """A text without the shortest or longest beginning or end that matches."""
    front = operator[0] == "#"
    lengths = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    for length in lengths:
        part = text[:length] if front else text[len(text) - length :]
        if fnmatchcase(part, pattern):
            return text[length:] if front else text[: len(text) - length]
    return text


def _replace(text: str, operator: str, old: str, new: str) -> str:
    if not old:
        return text
    if operator == "/#":
        return new + text[len(old) :] if text.startswith(old) else text
    if operator == "/%":
        return text[: -len(old)] + new if text.endswith(old) else text
    return text.replace(old, new, -1 if operator == "//" else 1)


def _slice(text: str, operands: list[str]) -> str | None:
    try:
        start, *rest = (int(operand) for operand in operands)
    except ValueError:
        return None
    text = text[start:] if start >= 0 or -start <= len(text) else ""
    if not rest:
        return text
    return text[: rest[0]]
