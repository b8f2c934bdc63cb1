"""Programs that have verbs: which verb a call has, and what kind of thing that does.

A program's verbs are a text: ``KIND VERB VERB …``, going on in indented lines; a verb below another is
written ``image/ls`` and several of them ``image/{ls,inspect}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import msgspec

from remuda.guard.commands.contract import Call, Handler
from remuda.guard.commands.destroying import VERBS, empties, says
from remuda.guard.commands.operands import taints, texts, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.model import (
    AnyEffect,
    Execute,
    Network,
    Read,
    System,
    SystemKind,
    Unknown,
    Word,
    Write,
    literal,
)


class Found(msgspec.Struct, frozen=True):
    """The verb of a call, its kind (none: the table does not know it), and the words behind it."""

    verb: str
    kind: str
    words: list[Word]
    before: Parsed


Special = Callable[[Call, Found], Iterator[AnyEffect]]


class Tool(msgspec.Struct, frozen=True):
    """A program with verbs. ``before`` are the options that may stand before a verb, ``host`` is whom it
    talks to, ``changes`` what a verb of the kinds ``add``, ``change`` and ``destroy`` changes; ``outputs``
    are options
    of any verb whose value is a file that is written, ``bare`` is the kind of a call without a verb."""

    verbs: str
    before: str = "-* --*"
    changes: SystemKind = "cloud"
    host: str = ""
    outputs: str = ""
    bare: str = ""
    special: Mapping[str, Special] = {}


CHANGING = frozenset(("add", "change", "destroy"))
_DRY = frozenset(("--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--dryrun"))
_HELP = tuple((literal(text),) for text in ("--help", "--version", "-h", "-v", "-V"))


@cache
def kinds(text: str) -> dict[str, str]:
    """Every verb of a table with its kind; folders of verbs have none."""
    found: dict[str, str] = {}
    kind = ""
    for line in text.replace(",\n    ", ",").splitlines():
        entries = line.split()
        if entries and not line.startswith(" "):
            kind = entries.pop(0)
        for entry in entries:
            for verb in _expanded(entry):
                folder = verb.rpartition("/")[0]
                while folder:
                    found.setdefault(folder, "")
                    folder = folder.rpartition("/")[0]
                found[verb] = kind
    return found


def _expanded(entry: str) -> list[str]:
    head, opened, rest = entry.partition("{")
    if not opened:
        return [entry]
    inner, _, tail = rest.partition("}")
    return [verb for choice in inner.split(",") for verb in _expanded(head + choice + tail)]


def find(verbs: str, before: str, arguments: tuple[Word, ...] | list[Word]) -> Found:
    """Looks for the longest verb that the table knows."""
    table = kinds(verbs)
    path, words, seen = "", list(arguments), Parsed()
    while True:
        parsed = parse(f"+ {before}", words)
        seen.given += parsed.given
        text = parsed.operands[0].text if parsed.operands else None
        deeper = f"{path}/{text}" if path else text
        if text is None or deeper not in table:
            break
        path, words = str(deeper), parsed.operands[1:]
    if not path:
        return Found(parsed.operands[0].text or "" if parsed.operands else "", "", parsed.operands[1:], seen)
    return Found(path, table[path], words, seen)


def handler(tool: Tool) -> Handler:
    """The handler of a program with verbs."""

    def effects(call: Call) -> Iterator[AnyEffect]:
        found = find(tool.verbs, tool.before, call.arguments)
        if not found.verb and tool.bare and call.arguments[:1] not in _HELP:
            yield from of_kind(call, tool, Found("", tool.bare, found.words, found.before))
            return
        if _asks_for_help(found, call):
            return
        yield from of_options(tool.outputs, found.words)
        special = tool.special.get(found.verb) or tool.special.get(found.kind)
        if special is not None:
            yield from special(call, found)
        else:
            yield from of_kind(call, tool, found)

    return effects


def _asks_for_help(found: Found, call: Call) -> bool:
    if not found.verb:
        return all((word.text or "")[:1] == "-" for word in call.arguments)
    return bool(found.words) and found.words[0].text in {"--help", "-h"} and len(found.words) == 1


def of_options(outputs: str, words: list[Word]) -> Iterator[AnyEffect]:
    """What is written by way of options that name a file."""
    if outputs:
        for option, value in parse(f"{outputs} -* --*", words).given:
            if option.role == "w" and value is not None:
                yield from written(value, "truncate")


def dry(words: list[Word]) -> bool:
    """Whether a call only says what it would do."""
    return any((word.text or "") in _DRY for word in words)


def query(call: Call, host: str) -> Network:
    """A question to a service; what the words carry goes out with it."""
    return Network(direction="query", host=literal(host), carries=taints(call.arguments))


def remotely(call: Call, words: list[Word], kind: SystemKind, detail: str) -> System:
    """A command that runs where nobody can look. What it would do here tells whether it only looks around."""
    if any(word.text is None for word in words):
        return System(kind=kind, detail=detail)
    found = list(call.shell(" ".join(word.text or "" for word in words)))
    lost = any(isinstance(effect, Write) and effect.how.startswith("delete") for effect in found)
    lost = lost or any(isinstance(effect, System) and effect.destroys for effect in found)
    return System(
        kind=kind, detail=detail, destroys=lost, adds=all(isinstance(effect, Read) for effect in found)
    )


def of_kind(call: Call, tool: Tool, found: Found) -> Iterator[AnyEffect]:
    """What a verb does by its kind."""
    detail = f"{call.name} {found.verb.replace('/', ' ')}"
    if found.kind in {"get", "read"} and (texts(found.words[:1]) or [""])[0] in VERBS:
        yield System(kind=tool.changes, detail=detail, destroys=True)
    elif found.kind == "get" or (found.kind in CHANGING and dry(found.words)):
        yield query(call, tool.host or call.name)
    elif found.kind in CHANGING:
        yield System(
            kind=tool.changes, detail=detail, destroys=found.kind == "destroy", adds=found.kind == "add"
        )
    elif found.kind in SYSTEMS:
        yield System(kind=SYSTEMS[found.kind], detail=detail)
    elif found.kind == "look":
        yield Network(direction="get", host=literal(tool.host or call.name))
    elif found.kind == "here":
        yield from written(literal("."), "edit")
    elif found.kind != "read":
        yield from _otherwise(call, tool, found, detail)


SYSTEMS: dict[str, SystemKind] = {"secret": "credential", "publish": "publish", "system": "package"}


def _otherwise(call: Call, tool: Tool, found: Found, detail: str) -> Iterator[AnyEffect]:
    """A verb that runs the project's code, or that the table does not know."""
    if found.kind == "project":
        if found.words and empties(found.words[0].text or "", texts(found.words[1:])):
            yield System(kind="database", detail=detail, destroys=True)
        yield Execute(program=literal(call.name), argv=(literal(call.name), *call.arguments), kind="project")
        return
    if says(call.name, [found.verb.rpartition("/")[2], *texts(found.words)]):
        yield System(kind=tool.changes, detail=detail, destroys=True)
    yield Unknown(why=f"{detail} is not known")
