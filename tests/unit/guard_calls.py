"""Calls commands of the guard's tables without a shell, and says what came of it in short texts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from remuda.guard.commands import lookup
from remuda.guard.commands.contract import Call
from remuda.guard.model import (
    NOTHING,
    AnyEffect,
    Environment,
    Evaluate,
    Execute,
    Git,
    Network,
    Read,
    System,
    Taint,
    Unknown,
    Word,
    Write,
    literal,
)


def effects(
    argv: Iterable[Word | str],
    *,
    given: frozenset[Taint] = NOTHING,
    text: str | None = None,
    environment: dict[str, str] | None = None,
    deep: bool = True,
) -> list[AnyEffect]:
    """The effects of a command; ``deep``: and of the commands that it runs itself."""
    name, *arguments = (literal(word) if isinstance(word, str) else word for word in argv)
    handler = lookup(name.text or "")
    if handler is None:
        return [Execute(program=name)]
    call = Call(
        name=name.text or "",
        arguments=tuple(arguments),
        input=given,
        input_text=text,
        environment={key: literal(value) for key, value in (environment or {}).items()},
        again=effects if deep else lambda _: (),
        shell=(lambda source: effects(shlex.split(source))) if deep else lambda _: (),
    )
    return list(handler(call))


def said(effect: AnyEffect) -> str:
    """An effect in short: what is done to what, with a mark where it is forced or destroys."""
    match effect:
        case Read(path=path, names=names):
            return f"{'look' if names else 'read'} {'|'.join(path.values) or '?'}"
        case Write(path=path, how=how, forced=forced):
            return f"{how}{'!' * forced} {'|'.join(path.values) or '?'}"
        case Git(operation=operation, forced=forced, refs=refs):
            return " ".join([f"git {operation}{'!' * forced}", *(ref.text or "?" for ref in refs)])
        case System(kind=kind, destroys=destroys):
            return f"system {kind}{'!' * destroys}"
        case Network(direction=direction, host=host, carries=carries):
            return " ".join([direction, host.text or "?", *sorted(carries)])
        case Execute(kind=kind):
            return f"execute {kind}"
        case Evaluate(language=language):
            return f"evaluate {language}"
        case Environment(action=action, name=name):
            return f"{action} ${name}"
        case Unknown():
            return "unknown"


def told(
    command: str,
    *,
    given: frozenset[Taint] = NOTHING,
    text: str | None = None,
    environment: dict[str, str] | None = None,
) -> set[str]:
    """What a command line comes to."""
    found = effects(shlex.split(command), given=given, text=text, environment=environment)
    return {said(effect) for effect in found}
