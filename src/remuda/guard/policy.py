"""From effects to findings: which rows of the table a tool call touches, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from remuda.guard import hosts
from remuda.guard.model import (
    STRICTNESS,
    AnyEffect,
    Context,
    Decision,
    Environment,
    Evaluate,
    Execute,
    Git,
    Network,
    Read,
    System,
    Taint,
    Tool,
    Unknown,
    Word,
    Write,
)
from remuda.guard.paths import Place, Terrain, Zone
from remuda.guard.places import Mark
from remuda.guard.table import TABLE, Finding
from remuda.guard.variables import setting, showing

_LOUD: frozenset[Taint] = frozenset(("secret", "environment"))
_UNREAD: frozenset[Taint] = frozenset(("network", "decoder"))
_UNTOLD: frozenset[Taint] = frozenset(("unknown", "input", "environment", "secret"))
_CHANGED_BY_MARK: tuple[Mark, ...] = ("guard", "repository", "secret", "startup", "automation")
_WRITTEN_BY_ZONE: dict[Zone, str] = {
    "root": "write.root",
    "system": "write.system",
    "temporary": "write.temporary",
    "device": "write.device",
    "home": "write.outside",
    "outside": "write.outside",
}
_REMOVES = frozenset(("delete", "delete-tree", "rename"))
_FINDERS = frozenset(("find", "fd", "xargs", "parallel"))
"""What reaches files that nobody has named."""
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh"))
_OWN_REPOSITORY = frozenset(
    ("index", "commit", "merge", "branch", "tag", "stash", "config", "rewrite", "shared")
)
_FORCED = {
    "push": "git.force",
    "remote": "git.destroy",
    "branch": "git.rebranch",
    "tag": "git.retag",
    "stash": "git.discard",
    "worktree": "git.discard",
    "merge": "git.discard",
}
"""What becomes of an operation of git when it is forced; the others are the same."""
_LONGEST = 200


class Weighed(msgspec.Struct, frozen=True):
    """An effect with what was found about it, and the strictest decision of that. ``lifted`` are findings
    that a rule of one's own has lifted, each with that rule."""

    effect: AnyEffect
    decision: Decision
    findings: tuple[Finding, ...] = ()
    places: tuple[Place, ...] = ()
    lifted: tuple[Finding, ...] = ()


class Review(Protocol):
    """A policy of one's own, applied to what was found about one effect."""

    def __call__(
        self, effect: AnyEffect, places: tuple[Place, ...], findings: tuple[Finding, ...]
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The findings that hold, and those that are lifted."""


def weigh(
    effects: Iterable[AnyEffect], context: Context, terrain: Terrain, review: Review | None = None
) -> list[Weighed]:
    """Judge effects in the order in which they happen, for a link or a download changes what comes after."""
    return [_weighed(effect, context, terrain, review) for effect in effects]


def _weighed(effect: AnyEffect, context: Context, terrain: Terrain, review: Review | None) -> Weighed:
    places = tuple(_places(effect, terrain))
    findings = tuple(_findings(effect, places, context, terrain))
    findings, lifted = review(effect, places, findings) if review else (findings, ())
    decisions = [finding.decision(context.capability) for finding in findings]
    return Weighed(effect, strictest(decisions), findings, places, lifted)


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The decision that holds when several are made."""
    allowed: Decision = "allow"
    return max(decisions, key=lambda decision: STRICTNESS[decision], default=allowed)


def explain(finding: Finding, context: Context, ground: str | None) -> tuple[str, str]:
    """A finding's reason and hint in words."""
    row = TABLE[finding.rule]
    words = {
        "what": finding.what if len(finding.what) <= _LONGEST else finding.what[:_LONGEST] + "…",
        "who": context.capability,
        "ground": ground or "your worktree",
        "prefix": context.branch_prefix or "your own prefix",
    }
    return row.reason.format_map(words), row.hint.format_map(words)


def _places(effect: AnyEffect, terrain: Terrain) -> Iterable[Place]:
    match effect:
        case Read(path=path):
            return terrain.places(path, reads=True)
        case Write(path=path, follows=follows, how=how):
            return terrain.places(path, follows=follows, removes=how in _REMOVES)
        case Git(repository=path):
            return terrain.places(path)
        case Execute(program=program) if "/" in (program.text or ""):
            return terrain.places(program)
    return ()


def _findings(
    effect: AnyEffect, places: tuple[Place, ...], context: Context, terrain: Terrain
) -> Iterator[Finding]:
    match effect:
        case Read():
            yield from _read(effect, places)
        case Write():
            yield from _write(effect, places, terrain)
        case Execute():
            yield from _execute(effect, places, terrain)
        case Git():
            yield from _git(effect, places, context)
        case _:
            yield from _elsewhere(effect)


def _elsewhere(effect: AnyEffect) -> Iterator[Finding]:
    """What is found about effects that have no place in the file system."""
    match effect:
        case Evaluate(language=language, origin=origin):
            yield Finding(_evaluated(origin), language)
        case Network():
            yield from _network(effect)
        case System(kind=kind, detail=detail, destroys=destroys, adds=adds):
            if destroys:
                yield Finding("system.destroys", detail)
            yield Finding("system.adds" if adds else f"system.{kind}", detail)
        case Environment():
            yield from _environment(effect)
        case Tool(name=name, kind=kind) if f"tool.{kind}" in TABLE:
            yield Finding(f"tool.{kind}", name)
        case Unknown(why=why):
            yield Finding("guard.unknown", why)


def _read(effect: Read, places: tuple[Place, ...]) -> Iterator[Finding]:
    for place in places:
        if not effect.names:
            yield from _looked_at(place)
        elif "secret" in place.marks:
            yield Finding("read.store", place.written)


def _looked_at(place: Place) -> Iterator[Finding]:
    """What is found about a file whose content is read."""
    if place.zone == "unknown":
        yield Finding("read.unknown")
    elif "secret" in place.marks:
        yield Finding("read.secret", place.written)
    elif "private" in place.marks:
        yield Finding("read.private", place.written)


def _write(effect: Write, places: tuple[Place, ...], terrain: Terrain) -> Iterator[Finding]:
    for place in places:
        yield from _written(effect, place)
        if effect.how == "delete-tree" and terrain.is_all(place):
            yield Finding("remove.root", place.path)
        if effect.content & _UNREAD:
            terrain.downloads.add(place.path)
    terrain.made(effect)
    leads: Iterable[Place] = ()
    if effect.how == "link" and effect.target is not None:
        leads = terrain.link(effect.path, effect.target)
    elif effect.how == "rename":
        leads = [terrain.place(place.path) for place in places if terrain.is_link(place)]
    for lead in leads:
        if lead.zone not in ("ground", "inside", "nowhere"):
            yield Finding("write.link", lead.path or "an unknown place")


def _written(effect: Write, place: Place) -> Iterator[Finding]:
    removes = effect.how in _REMOVES
    if place.zone == "nowhere" and not removes:
        return
    yield Finding("write.any", place.written or "files")
    if place.zone == "unknown":
        yield Finding("remove.unknown" if effect.how == "delete-tree" else "write.unknown")
        return
    if removes:
        yield from _removed(effect, place)
    for mark in _CHANGED_BY_MARK:
        if mark in place.marks:
            yield Finding(f"write.{mark}", place.path)
    if rule := _WRITTEN_BY_ZONE.get(place.zone):
        yield Finding(rule, place.path)


def _removed(effect: Write, place: Place) -> Iterator[Finding]:
    if place.zone in ("ground", "root") and effect.how != "delete":
        yield Finding("remove.root", place.path)
    if place.zone in ("system", "device", "nowhere"):
        yield Finding("remove.system", place.path)
    named = not _FINDERS & set(effect.via)
    if effect.how == "delete-tree" and effect.forced and not (named and place.zone == "temporary"):
        yield Finding("remove.tree", place.path)


def _execute(effect: Execute, places: tuple[Place, ...], terrain: Terrain) -> Iterator[Finding]:
    name = effect.program.text or "this program"
    if any(terrain.downloaded(word) for word in (effect.program, *effect.argv)):
        yield Finding("execute.download", name)
    if "=" in name:
        yield Finding("execute.assignment", name)
    if effect.kind == "unknown" and _FINDERS & set(effect.via) and _SHELLS & set(effect.via):
        yield Finding("execute.data", name)
    yield from (found for place in places for found in _looked_at(place))
    if effect.kind == "unknown":
        yield Finding("execute.unknown", name)
    elif any(place.zone not in ("inside", "system") for place in places):
        yield Finding("execute.foreign", name)
    else:
        yield Finding("execute.project", name)
    yield from _operands(effect, terrain)


def _operands(effect: Execute, terrain: Terrain) -> Iterator[Finding]:
    """Paths that a program is given and that lead out of the worktree: it may write there, who knows."""
    folder = effect.at.text if effect.at is not None else None
    for word in effect.argv:
        for value in word.values:
            text = value.partition("=")[2] if value.startswith("-") else value
            if folder and text.startswith(".."):
                text = f"{folder}/{text}"
            if not text.startswith("/"):
                continue
            place = terrain.place(text)
            if place.zone not in ("ground", "inside", "nowhere", "system"):
                yield Finding("execute.outside", text)


def _evaluated(origin: frozenset[Taint]) -> str:
    if origin & _UNREAD:
        return "evaluate.download"
    if origin & _UNTOLD:
        return "evaluate.unknown"
    return "evaluate.file" if "file" in origin else "evaluate.opaque"


def _network(effect: Network) -> Iterator[Finding]:
    name = effect.host.text or "an unknown host"
    kind = hosts.kind(name)
    if kind == "metadata":
        yield Finding("network.metadata", name)
    if effect.carries & _LOUD:
        yield Finding("network.leak", name)
    elif effect.direction == "query":
        yield Finding("network.query", name)
    elif kind == "local":
        yield Finding("network.local", name)
    elif effect.carries:
        yield Finding("network.upload", name)
    else:
        yield Finding(f"network.{effect.direction}", name)


def _git(effect: Git, places: tuple[Place, ...], context: Context) -> Iterator[Finding]:
    operation, what = effect.operation, effect.detail or ", ".join(map(_named, effect.refs))
    if operation == "read":
        return
    yield Finding(_FORCED.get(operation, f"git.{operation}") if effect.forced else f"git.{operation}", what)
    if effect.detail == "switch" and not effect.refs:
        yield Finding("git.switch")
    if operation == "config" and effect.detail == "global":
        yield Finding("git.global")
    if operation == "branch" and context.branch_prefix:
        for ref in effect.refs:
            if not _named(ref).removeprefix("refs/heads/").startswith(context.branch_prefix):
                yield Finding("git.prefix", _named(ref))
    if operation in _OWN_REPOSITORY and any(place.zone not in ("ground", "inside") for place in places):
        yield Finding("git.elsewhere", places[0].path or "it works on")


def _named(ref: Word) -> str:
    return ref.text if ref.text is not None else "an unknown branch"


def _environment(effect: Environment) -> Iterator[Finding]:
    rule = setting(effect.name, effect.value) if effect.action == "set" else showing(effect.name)
    if rule:
        yield Finding(f"environment.{rule}", effect.name)
