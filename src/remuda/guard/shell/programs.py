"""Programs that run other programs: wrappers, ``env``, shells and those that repeat a command."""

from __future__ import annotations

from collections.abc import Callable

from remuda.guard.commands.options import parse
from remuda.guard.model import Environment, System, Unknown, Word, Write, literal
from remuda.guard.shell.builtins import folder
from remuda.guard.shell.calls import Caller
from remuda.guard.shell.declarations import taken_apart
from remuda.guard.shell.repeaters import parallel, xargs
from remuda.guard.shell.shells import fed, foreign, shell
from remuda.guard.shell.state import Data, State, joined, known, opaque
from remuda.guard.shell.wrappers import WRAPPERS, Inner, unwrap

Arguments = tuple[Word, ...]
Program = Callable[[Caller, str, Arguments, State], Data]
SILENCE = known("")


def _wrapper(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """Runs the command that a wrapper is given."""
    wrapper = WRAPPERS[name]
    inner = unwrap(wrapper, arguments)
    if any(word.text in {"--help", "--version"} for word in arguments[:1]):
        return opaque(frozenset({"unknown"}))
    if wrapper.kind:
        caller.note(System(kind=wrapper.kind, detail=name), state)
    for option in inner.strange:
        caller.note(Unknown(why=f"{name} has an option {option} that is not known"), state)
    for path in inner.written:
        caller.note(Write(path=path, how="truncate"), state)
    if wrapper.opens and not inner.argv and not inner.texts:
        return fed(caller, name, state)
    return _inner(caller, name, inner, state)


def _inner(caller: Caller, name: str, inner: Inner, state: State) -> Data:
    way = state.fork()
    _assigned(caller, inner.assigned, way)
    printed = SILENCE
    with caller.deeper(name):
        for text in inner.texts:
            printed = caller.source(text, way)
        if inner.argv:
            printed = caller.invoke(inner.argv, way, functions=False)
    state.files.update(way.files)
    return printed


def _assigned(caller: Caller, words: Arguments, state: State) -> None:
    for word in words:
        variable, value = taken_apart(word)
        caller.note(Environment(action="set", name=variable or "*", value=value), state)
        if variable and value is not None:
            state.variables[variable] = value
            state.exported[variable] = True


_ENV = """-i0v -u|--unset: -C|--chdir: -S|--split-string: -P: -a|--argv0: --ignore-environment --null --debug
    --block-signal? --default-signal? --ignore-signal? --list-signal-handling --help --version +"""


def _env(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """``env``: another environment and folder, then a command; alone it shows everything."""
    rest = tuple(word for word in arguments if word.text != "-")
    parsed = parse(_ENV, rest)
    for option in parsed.strange:
        caller.note(Unknown(why=f"env has an option {option} that is not known"), state)
    way = state.fork()
    for gone in parsed.values("unset"):
        caller.note(Environment(action="set", name=gone.text or "*", value=literal("")), state)
    for goal in parsed.values("chdir"):
        way.cwd = folder(goal, way)
    operands = list(parsed.operands)
    assigned: list[Word] = []
    while operands and "=" in (operands[0].text or operands[0].prefix):
        assigned.append(operands.pop(0))
    _assigned(caller, tuple(assigned), way)
    split = parsed.values("split-string")
    with caller.deeper(name):
        if split:
            tail = tuple(literal(f'"${{{place + 1}}}"') for place in range(len(operands)))
            way.positional = tuple(operands)
            return caller.source(joined((literal("env"), split[0], *tail)), way)
        if operands:
            return caller.invoke(tuple(operands), way, functions=False)
    if parsed.has("help", "version"):
        return SILENCE
    caller.note(Environment(action="show", name="*"), state)
    return opaque(frozenset({"environment"}))


def _loader(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """The dynamic loader, which runs a program by its path."""
    rest = [word for word in arguments if not (word.text or "").startswith("-")]
    with caller.deeper(name):
        return caller.invoke(tuple(rest), state.fork(), functions=False)


PROGRAMS: dict[str, Program] = {
    **dict.fromkeys(WRAPPERS, _wrapper),
    **dict.fromkeys(
        ["bash", "sh", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "oksh", "yash", "posh"], shell
    ),
    **dict.fromkeys(["fish", "csh", "tcsh", "nu", "xonsh"], foreign),
    **dict.fromkeys(
        ["ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1"],
        _loader,
    ),
    "env": _env,
    "genv": _env,
    "xargs": xargs,
    "gxargs": xargs,
    "parallel": parallel,
}
