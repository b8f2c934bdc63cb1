"""Rules of one's own: what they add to the findings about a tool call, and which findings they lift.

Deny wins over ask, ask over allow, and the order of rules does not matter. An allow only lifts what the table
finds, except for rows that nobody lifts. Where it cannot be told whether a deny fits, it is an ask.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remuda.guard.matching import (
    ALWAYS,
    MAYBE,
    NEVER,
    NO,
    UNTOLD,
    YES,
    Degree,
    Glob,
    PathGlob,
    Span,
    both,
    over,
    path_span,
    whether,
    word_span,
)
from remuda.guard.model import (
    AnyEffect,
    Capability,
    Command,
    Decision,
    Environment,
    Git,
    Network,
    Read,
    System,
    Tool,
    Word,
    Write,
    literal,
)
from remuda.guard.paths import Observer, Place, Terrain

_WHOLE = frozenset(("delete-tree", "rename", "mode"))
"""What is done to a folder and to everything below."""
_BY_CALL_ALONE = frozenset(("execute", "system", "tool"))
"""The effects that an allow lifts which only names a program or a tool: not the files, hosts and refs that
come with it, for a redirection's file belongs to the same command."""
SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"))


class Argv(msgspec.Struct, frozen=True):
    """A pattern for a command: its program and the words behind it."""

    program: Glob | PathGlob
    words: tuple[Glob, ...] = ()


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled rule. ``row`` is the row of the table that its decision is shown as; ``lifts`` are the only
    rows that it lifts, if there are any."""

    decision: Decision
    row: str
    origin: str
    reason: str = ""
    capabilities: frozenset[Capability] = frozenset()
    effects: frozenset[str] = frozenset()
    paths: tuple[PathGlob, ...] = ()
    hows: frozenset[str] = frozenset()
    hosts: tuple[Glob, ...] = ()
    direction: str | None = None
    operations: frozenset[str] = frozenset()
    refs: tuple[Glob, ...] = ()
    kinds: frozenset[str] = frozenset()
    variables: tuple[Glob, ...] = ()
    commands: tuple[Argv, ...] = ()
    programs: tuple[Glob | PathGlob, ...] = ()
    tools: tuple[Glob, ...] = ()
    lifts: frozenset[str] = frozenset()

    def concerns(self, capability: Capability) -> bool:
        return not self.capabilities or capability in self.capabilities


class Scene(msgspec.Struct, frozen=True):
    """What rules are applied to, beside the effects: the names of the tools that are called, the commands of
    a shell, and the land."""

    tools: tuple[str, ...]
    commands: tuple[Command, ...]
    terrain: Terrain
    observer: Observer


def of_call(rule: Rule, scene: Scene) -> Degree:
    """How surely a rule that names no effect fits the call."""
    if rule.effects:
        return NEVER
    conditions = []
    if rule.tools:
        conditions.append(over([word_span(rule.tools, literal(name)) for name in scene.tools]))
    if rule.commands or rule.programs:
        found = [_commanded(rule, command, scene) for command in scene.commands]
        conditions.append(over(found))
    return both(conditions).best


def of_effect(rule: Rule, effect: AnyEffect, places: Sequence[Place], scene: Scene) -> Span:
    """How surely a rule fits an effect."""
    name = str(effect.__struct_config__.tag)
    if rule.effects and name not in rule.effects:
        return NO
    if not rule.effects and name not in _BY_CALL_ALONE:
        return NO
    conditions = list(_own(rule, effect, places, scene))
    if both(conditions) == NO:
        return NO
    if rule.commands or rule.programs:
        conditions.append(_called(rule, effect, scene))
    if rule.tools:
        named = (effect.name,) if isinstance(effect, Tool) else scene.tools
        conditions.append(over([word_span(rule.tools, literal(each)) for each in named]))
    return both(conditions)


def _own(rule: Rule, effect: AnyEffect, places: Sequence[Place], scene: Scene) -> Sequence[Span]:
    """How the fields of an effect fit."""
    spans = []
    if rule.paths:
        path = effect.path if isinstance(effect, Read | Write) else None
        spans.append(
            path_span(
                rule.paths,
                places,
                pattern=path is not None and path.pattern,
                below=scene.observer if _whole(effect) else None,
            )
        )
    if isinstance(effect, Write) and rule.hows:
        spans.append(whether(effect.how in rule.hows))
    if isinstance(effect, Network):
        spans += [_certain(word_span(rule.hosts, effect.host, plain_host), effect.host)] if rule.hosts else []
        spans.append(whether(rule.direction in (None, effect.direction)))
    if isinstance(effect, Git):
        spans.append(whether(not rule.operations or effect.operation in rule.operations))
        spans += [_certain(YES, ref) for ref in effect.refs]
        spans += [_referred(rule.refs, effect.refs)] if rule.refs else []
    if isinstance(effect, System) and rule.kinds:
        spans.append(whether(effect.kind in rule.kinds))
    if isinstance(effect, Environment) and rule.variables:
        span = word_span(rule.variables, literal(effect.name))
        spans.append(UNTOLD if effect.name == "*" and span == NO else span)
    return spans


def _certain(span: Span, word: Word) -> Span:
    """How a host or a ref fits: one that is not known may be worse than its name, and so never surely."""
    return span if word.values and not word.pattern else Span(NEVER, span.best)


def _whole(effect: AnyEffect) -> bool:
    if isinstance(effect, Read):
        return not effect.names
    return isinstance(effect, Write) and effect.how in _WHOLE


def plain_host(host: str) -> str:
    """A host without what only spelling adds."""
    return host.strip("[]").rstrip(".").lower()


def plain_ref(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


def _referred(globs: tuple[Glob, ...], refs: tuple[Word, ...]) -> Span:
    """Refs that are not named may be any."""
    return over([word_span(globs, ref, plain_ref) for ref in refs]) if refs else UNTOLD


def _called(rule: Rule, effect: AnyEffect, scene: Scene) -> Span:
    """How the commands fit that an effect comes from: those of the same piece, and those around it. For the
    worst case only the innermost count, all of which must fit."""
    near = [
        command
        for command in scene.commands
        if command.via == effect.via[: len(command.via)]
        and (command.source == effect.source or _goes_through(command, effect))
    ]
    inner = [command for command in near if command.source == effect.source and command.via == effect.via]
    return Span(
        over([_commanded(rule, command, scene) for command in inner]).worst,
        over([_commanded(rule, command, scene) for command in near]).best,
    )


def _goes_through(command: Command, effect: AnyEffect) -> bool:
    """Whether an effect is reached through a command that stands around it."""
    ahead = effect.via[len(command.via) :]
    name = command.argv[0].text
    return bool(ahead) and (name is None or name.rpartition("/")[2] == ahead[0])


def _commanded(rule: Rule, command: Command, scene: Scene) -> Span:
    """How a command fits the programs and the argument lists of a rule."""
    spans = []
    if rule.programs:
        spans.append(_either([_programmed(each, command, scene) for each in rule.programs]))
    if rule.commands:
        spans.append(_either([_argued(each, command, scene) for each in rule.commands]))
    return both(spans)


def _either(spans: Sequence[Span]) -> Span:
    return Span(max(span.worst for span in spans), max(span.best for span in spans))


def _programmed(pattern: Glob | PathGlob, command: Command, scene: Scene) -> Span:
    """How a program fits: by its name, wherever it lies, or by its path. In the worst case a name is only one
    that is looked for where programs of the system are."""
    word = command.argv[0]
    if isinstance(pattern, PathGlob):
        return _located(pattern, command, scene)
    span = word_span((pattern,), word, lambda text: text.rpartition("/")[2])
    astray = any("/" in each and each.rpartition("/")[0] not in SYSTEM_FOLDERS for each in word.values)
    return Span(NEVER, span.best) if astray else span


def _located(pattern: PathGlob, command: Command, scene: Scene) -> Span:
    word, folder = command.argv[0], command.cwd.text
    if not word.values or word.pattern or folder is None:
        return UNTOLD
    paths = [each if each.startswith("/") else f"{folder}/{each}" for each in word.values if "/" in each]
    places = [scene.terrain.place(path) for path in paths]
    return path_span((pattern,), places)


def _argued(pattern: Argv, command: Command, scene: Scene) -> Span:
    """How the words of a command fit. At best, others may stand between them, as options do; at worst they
    must be the first."""
    program = _programmed(pattern.program, command, scene)
    first = command.argv[1 : len(pattern.words) + 1]
    exact = [word_span((each,), word) for each, word in zip(pattern.words, first, strict=False)]
    complete = len(first) == len(pattern.words)
    worst = min((program.worst, *(span.worst for span in exact))) if complete else NEVER
    return Span(worst, min(program.best, _scattered(pattern.words, command.argv[1:])))


def _scattered(wanted: tuple[Glob, ...], words: tuple[Word, ...]) -> Degree:
    """How well words are found one after the other, with anything between them. A word that may be anything
    may be several."""
    reached: list[Degree] = [ALWAYS, *(NEVER for _ in wanted)]
    for word in words:
        for at in range(len(wanted) - 1, -1, -1):
            if not word.values and reached[at]:
                reached[-1] = max(reached[-1], MAYBE)
            fits = word_span((wanted[at],), word).best
            reached[at + 1] = max(reached[at + 1], min(reached[at], fits))
    return reached[-1]
