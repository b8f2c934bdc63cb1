"""Small languages whose programs mostly compute, but may run or write something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options
from remuda.guard.model import AnyEffect, Evaluate, Execute, Unknown, Word

_MILLER = re.compile(r"\b(system|exec|hostname|os_type|version)\s*\(|[>|]\s*[$\"]|\bstd(out|err)\s*,|>>")
_M4 = re.compile(r"\b(syscmd|esyscmd|include|sinclude|undivert|maketemp|mkstemp|debugfile|builtin|indir)\b")


def _texts(call: Call, words: list[Word]) -> Iterator[str | None]:
    """The program's own texts: those in words, and the one on standard input where there is no file."""
    for word in words:
        yield from word.values or (None,)
    if not words and call.input_text is not None:
        yield call.input_text
    elif not words and call.input - {"input"}:
        yield None


def dc(call: Call) -> Iterator[AnyEffect]:
    """``dc``: behind an exclamation mark stands a command, unless it compares."""
    parsed = parse("-e|--expression: -f|--file:r -hV --help --version", call.arguments)
    yield from options(call, parsed)
    yield from operands(call, "r*", parsed.operands)
    codes = parsed.values("expression")
    if parsed.operands or parsed.has("file"):
        yield Evaluate(language="dc", origin=frozenset({"file"}))
        return
    for text in _texts(call, codes):
        commands = re.findall(r"!(?![<=>])([^\n]*)", text) if text is not None else []
        if text is None:
            yield Evaluate(language="dc")
        for command in commands:
            yield from call.shell(command)


def m4(call: Call) -> Iterator[AnyEffect]:
    """``m4``: macros may run commands and read files; what is in a file is the project's."""
    parsed = parse(
        "-o:w -D: -U: -I: -F:w -R:r -P -E -Q -e -s --define: --undefine: --output:w --error-output:w"
        " --prefix-builtins -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    for word in parsed.operands:
        yield Execute(program=word, argv=(word,), kind="project")
    for text in _texts(call, []) if not parsed.operands else ():
        if text is None or _M4.search(text):
            yield Evaluate(language="m4", origin=call.input)


def miller(call: Call) -> Iterator[AnyEffect]:
    """``mlr``: its language has functions that run commands, and redirections."""
    for word in call.arguments:
        text = word.text
        if text is None:
            yield Evaluate(language="mlr", origin=word.taint)
        elif text in {"-I", "tee", "split"} or _MILLER.search(text) or text in {"-f", "-s"}:
            yield Unknown(why="mlr runs commands or writes files")
    yield from operands(call, "r*", [word for word in call.arguments if "." in (word.text or "")])


def dasel(call: Call) -> Iterator[AnyEffect]:
    """``dasel``: ``put`` and ``delete`` change the file in place, unless they print."""
    parsed = parse("-f|--file: -o|--out:w -p: -r: -w: -s: -t: -v: -m: -* --*", call.arguments)
    yield from options(call, parsed)
    verb = parsed.operands[0].text if parsed.operands else ""
    changes = verb in {"put", "delete"} and not parsed.has("out")
    for file in parsed.values("file"):
        yield from written(file, "edit") if changes else operands(call, "r", [file])


def fx(call: Call) -> Iterator[AnyEffect]:
    """``fx``: what is more than a path is JavaScript."""
    for word in call.arguments:
        text = word.text or "()"
        if not re.fullmatch(r"[\w./@\[\]\"-]*", text):
            yield Evaluate(language="javascript", origin=word.taint)
    yield from operands(call, "r", call.arguments[:1])


TABLE: Table = {"dc": dc, "m4": m4, "mlr": miller, "dasel": dasel, "fx": fx}
