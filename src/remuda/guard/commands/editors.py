"""Editors and patches: the files that are opened may be changed, and commands of their own do anything."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE, join, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import operands, options, role
from remuda.guard.model import AnyEffect, Evaluate, Unknown, Write, literal
from remuda.guard.patches import changes

VI_OPTIONS = """
    -c: -S:r -s: -u:r -i: -w:w -W:w -t: -T: -q? --cmd: --startuptime:w --servername: --remote!
    --remote-send:! -* --*
"""
EMACS_OPTIONS = "-f: -l:p -L: -u: --eval: --funcall: --load:p --script:p --execute: -* --*"


def vi(call: Call) -> Iterator[AnyEffect]:
    """``vim`` and its kin. Without commands, saving is up to whoever types."""
    parsed = parse(VI_OPTIONS, call.arguments)
    yield from options(call, parsed)
    commands = [value.text or "!" for value in parsed.values("c", "cmd", "s")]
    commands += [word.text[1:] for word in parsed.operands if word.text and word.text[0] == "+"]
    if parsed.has("S") or any(not _harmless(command) for command in commands):
        yield Unknown(why=f"{call.name} is given commands of its own")
    if parsed.has("e", "E") and call.input_text is None and call.input:
        yield Evaluate(language="vim", origin=call.input)
    for word in parsed.operands:
        if not (word.text or "").startswith("+"):
            yield from role(call, "r" if parsed.has("R") else "e", word)


def _harmless(command: str) -> bool:
    return (
        command in {"q", "q!", "qa", "qa!", "x", "wq", "$", ""}
        or command.isdigit()
        or command.startswith("set ")
    )


def ed(call: Call) -> Iterator[AnyEffect]:
    """``ed``: writes the file that it opens, unless its commands say otherwise."""
    parsed = parse("-sGrlvE -p: --*", call.arguments)
    yield from options(call, parsed)
    yield from operands(call, "e*", parsed.operands)
    if call.input_text is None and call.input:
        yield Evaluate(language="ed", origin=call.input)
    for line in (call.input_text or "").splitlines():
        command = line.lstrip("0123456789,.$;% ")
        if command[:1] == "!" or command[:3] in {"r !", "w !"}:
            yield from role(call, "x", literal(command.partition("!")[2]))
        elif command[:2] in {"w ", "W "}:
            yield from written(literal(command[2:].strip()), "truncate")


def emacs(call: Call) -> Iterator[AnyEffect]:
    """``emacs``: code of its own cannot be read here."""
    parsed = parse(EMACS_OPTIONS, call.arguments)
    yield from options(call, parsed)
    if parsed.has("eval", "f", "funcall", "execute"):
        yield Evaluate(language="emacs-lisp")
    yield from operands(call, "e*", parsed.operands)


def plain(call: Call) -> Iterator[AnyEffect]:
    """An editor that only has files."""
    parsed = parse("-* --*", call.arguments)
    yield from operands(call, "e*", [word for word in parsed.operands if (word.text or "")[:1] != "+"])


def patch(call: Call) -> Iterator[AnyEffect]:
    """``patch``: changes files below the folder that it works in."""
    parsed = parse(
        "-bclnNRstTuvZE -B: -d|--directory: -D: -e|--ed! -F: -g: -i|--input:r -o|--output:w -p|--strip:"
        " -r|--reject-file:w -V: -x: -Y: -z: -f --dry-run --forward --reverse --force --batch --silent"
        " --quiet --backup --posix --verbose --merge? --fuzz: --binary --unified --context --normal"
        " --ignore-whitespace --remove-empty-files --follow-symlinks --no-backup-if-mismatch --read-only:"
        " --suffix: --prefix:",
        call.arguments,
    )
    yield from options(call, parsed)
    folder = parsed.value("directory")
    yield from operands(call, "- r", parsed.operands)
    if not parsed.has("dry-run", "output"):
        yield from written(join(folder, parsed.operands[0]) if parsed.operands else folder or HERE, "edit")


def apply_patch(call: Call) -> Iterator[AnyEffect]:
    """``apply_patch``, which Codex has its model call from a shell: the files that the patch names."""
    given = [word.text for word in call.arguments] or [call.input_text]
    found = list(changes(given[0] or "")) if len(given) == 1 else []
    if not found:
        yield Unknown(why=f"{call.name} is given a patch that cannot be read")
    for name, how in found:
        yield Write(path=literal(name), how=how, follows=how != "delete")


TABLE: Table = {
    **dict.fromkeys(("vi", "vim", "nvim", "ex", "view", "gvim", "vimdiff", "nvi", "elvis"), vi),
    **dict.fromkeys(("ed", "red"), ed),
    **dict.fromkeys(("emacs", "emacsclient"), emacs),
    **dict.fromkeys(("nano", "pico", "micro", "hx", "helix", "kak", "joe", "mcedit", "gedit", "kate"), plain),
    "patch": patch,
    **dict.fromkeys(("apply_patch", "applypatch"), apply_patch),
}
