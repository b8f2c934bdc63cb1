"""``sed``: reads its script, which may write files and run commands."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import LONGEST, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options, role
from remuda.guard.model import AnyEffect, Evaluate, Read, Unknown, literal

OPTIONS = """
    -nrEsuz -e|--expression: -f|--file: -i|--in-place? -l|--line-length: --quiet --silent --posix --debug
    --sandbox --follow-symlinks --regexp-extended --separate --unbuffered --null-data --zero-terminated -a -I?
"""
SINGLE = frozenset("=dDgGhHlnNpPxzFqQ}{;# \t\n")


def sed(call: Call) -> Iterator[AnyEffect]:
    """The effects of the script, and of editing in place."""
    parsed = parse(OPTIONS, call.arguments)
    yield from options(call, parsed)
    words = list(parsed.operands)
    edits = parsed.has("in-place", "I")
    if edits and words and words[0].text == "":
        words.pop(0)  # BSD takes the suffix as a word of its own
    scripts = parsed.values("expression")
    for file in parsed.values("file"):
        yield from role(call, "p", file)
    if not parsed.has("expression", "file") and words:
        scripts = [words.pop(0)]
    if all(script.text is not None for script in scripts):
        scripts = [literal("\n".join(script.text or "" for script in scripts))]
    for script in scripts:
        if not script.values or any(len(text) > LONGEST for text in script.values):
            yield Evaluate(language="sed", origin=script.taint)
            continue
        for text in script.values:
            yield from _script(call, text)
    yield from operands(call, "e*" if edits else "r*", words)


def _script(call: Call, text: str) -> Iterator[AnyEffect]:
    """The effects of a script: skips addresses, looks at each command."""
    at = 0
    while at < len(text):
        at = _address(text, at)
        if at >= len(text):
            return
        letter = text[at]
        if letter in "sy":
            end, flags = _substitution(text, at)
            yield from _flags(call, flags)
            at = end
        elif letter in "wWrRe":
            line, at = _line(text, at + 1)
            yield from _file(call, letter, line)
        elif letter in "aicbtT:vL":
            at = _after(text, at, letter)
        elif letter in SINGLE:
            at = _line(text, at)[1] if letter == "#" else at + 1
        else:
            yield Unknown(why=f"sed has a command that is not known: {letter}")
            return


def _address(text: str, at: int) -> int:
    """Skips blanks, line numbers, regular expressions and what joins them."""
    while at < len(text):
        letter = text[at]
        if letter in " \t\n;!,$+~0123456789":
            at += 1
        elif letter in "/\\":
            at += letter == "\\"
            if at >= len(text):
                return at
            at = _delimited(text, at + 1, text[at], brackets=True)
            while at < len(text) and text[at] in "IM":
                at += 1
        else:
            return at
    return at


def _delimited(text: str, at: int, delimiter: str, *, brackets: bool = False) -> int:
    """The place behind the next delimiter that is not escaped nor, in a regular expression, in brackets."""
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == delimiter:
            return at + 1
        elif brackets and text[at] == "[":
            closing = text.find("]", at + 3 if text[at + 1 : at + 2] == "^" else at + 2)
            at = closing + 1 if closing >= 0 else at + 1
        else:
            at += 1
    return at


def _substitution(text: str, at: int) -> tuple[int, str]:
    """Where an ``s`` or ``y`` command ends, and its flags."""
    if at + 1 >= len(text):
        return len(text), ""
    delimiter = text[at + 1]
    pattern_end = _delimited(text, at + 2, delimiter, brackets=text[at] == "s")
    at = _delimited(text, pattern_end, delimiter)
    end = at
    while end < len(text) and text[end] not in ";\n}w ":
        end += 1
    if end < len(text) and text[end] == "w":
        end = _line(text, end)[1]
    return end, text[at:end]


def _flags(call: Call, flags: str) -> Iterator[AnyEffect]:
    if "w" in flags:
        flags, _, file = flags.partition("w")
        yield from written(literal(file.strip()), "truncate")
    if "e" in flags:
        yield Unknown(why=f"{call.name} runs what a substitution gives")


def _file(call: Call, letter: str, line: str) -> Iterator[AnyEffect]:
    """The commands that take the rest of their line as a file, or as a command."""
    if letter in "wW":
        yield from written(literal(line), "truncate")
    elif letter in "rR":
        yield Read(path=literal(line))
    elif line:
        yield from call.shell(line)
    else:
        yield Unknown(why=f"{call.name} runs the lines that it reads")


def _line(text: str, at: int) -> tuple[str, int]:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return text[at:end].strip(), end + 1


def _after(text: str, at: int, letter: str) -> int:
    """Behind a command that takes text or a label."""
    if letter in "btT:vL":
        return min((place for mark in ";\n}" if (place := text.find(mark, at)) >= 0), default=len(text))
    end = _line(text, at)[1]
    while letter in "aic" and text[end - 2 : end - 1] == "\\" and end < len(text):
        end = _line(text, end)[1]
    return end


TABLE: Table = {"sed": sed, "gsed": sed}
