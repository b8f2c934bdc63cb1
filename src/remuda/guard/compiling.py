"""From what a configuration says to a policy: patterns are compiled once, and paths put where they belong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import msgspec

from remuda.core.guardconfig import GuardConfig, RuleConfig, several, words_of
from remuda.guard.gates import ANY_PROGRAM, OWN_CODE, Gate
from remuda.guard.globs import is_glob
from remuda.guard.matching import Glob, PathGlob, glob, path_glob
from remuda.guard.model import Capability, Decision
from remuda.guard.own import Policy, Push
from remuda.guard.rules import Argv, Rule, plain_host

_ROWS: dict[Decision, str] = {"allow": "policy.allow", "ask": "policy.ask", "deny": "policy.deny"}
_REASONS: dict[Decision, str] = {
    "allow": "",
    "ask": "a rule wants a person to agree to this",
    "deny": "a rule forbids this",
}


class Ground(msgspec.Struct, frozen=True):
    """Where a file's rules hold: relative paths are meant from ``bases``, a tilde is ``home``. ``resolve``
    follows symbolic links. ``own``: the file is the user's, and not a project's."""

    file: str
    bases: tuple[str, ...]
    home: str
    resolve: Callable[[str], str]
    own: bool


def compiled(config: GuardConfig, ground: Ground) -> Policy:
    """The policy of one file."""
    return Policy(
        rules=(
            *(_rule(each, ground, place) for place, each in enumerate(config.rules)),
            *(_protecting(each, ground, place) for place, each in enumerate(config.protect)),
            *(_fetching(each, ground, place) for place, each in enumerate(config.network)),
        ),
        gates=tuple(
            Gate(
                words_of(each, "gates"),
                ground.bases[-1],
                _origin(ground, "gates", place),
                ANY_PROGRAM if ground.own else OWN_CODE,
            )
            for place, each in enumerate(config.gates)
        ),
        pushes=tuple(_push(each, ground, place) for place, each in enumerate(config.push)),
        branch_prefix=config.branch_prefix,
    )


def joined(policies: Sequence[Policy]) -> Policy:
    """Several policies as one: everything that any of them says, and the last prefix."""
    prefixes = [each.branch_prefix for each in policies if each.branch_prefix]
    return Policy(
        rules=tuple(rule for each in policies for rule in each.rules),
        gates=tuple(gate for each in policies for gate in each.gates),
        pushes=tuple(push for each in policies for push in each.pushes),
        branch_prefix=prefixes[-1] if prefixes else None,
    )


def _origin(ground: Ground, key: str, place: int) -> str:
    return f"{ground.file}: guard.{key}[{place}]"


def _rule(config: RuleConfig, ground: Ground, place: int) -> Rule:
    folds = config.decision != "allow"
    return Rule(
        decision=config.decision,
        row=_ROWS[config.decision],
        origin=_origin(ground, "rules", place),
        reason=config.reason or _REASONS[config.decision],
        capabilities=frozenset(cast(tuple[Capability, ...], several(config.capability))),
        effects=config.effects,
        paths=tuple(_paths(several(config.path), ground, folds=folds)),
        hows=frozenset(several(config.how)),
        hosts=_hosts(several(config.host)),
        direction=config.direction,
        operations=frozenset(several(config.operation)),
        refs=_globs(several(config.ref), folds=folds),
        kinds=frozenset(several(config.kind)),
        variables=_globs(several(config.variable), folds=folds),
        commands=tuple(
            Argv(program, _globs(words_of(each, "argv")[1:], folds=False))
            for each in several(config.argv)
            for program in _program(words_of(each, "argv")[0], ground, folds=folds)
        ),
        programs=tuple(
            program for each in several(config.program) for program in _program(each, ground, folds=folds)
        ),
        tools=_globs(several(config.tool), folds=True),
    )


def _protecting(pattern: str, ground: Ground, place: int) -> Rule:
    return Rule(
        decision="deny",
        row="policy.protect",
        origin=_origin(ground, "protect", place),
        reason=f"{pattern} is protected, and agents leave it alone",
        effects=frozenset(("write",)),
        paths=tuple(_paths((pattern,), ground, folds=True)),
    )


def _fetching(pattern: str, ground: Ground, place: int) -> Rule:
    return Rule(
        decision="allow",
        row="policy.allow",
        origin=_origin(ground, "network", place),
        effects=frozenset(("network",)),
        hosts=_hosts((pattern,)),
        direction="get",
        lifts=frozenset(("network.get", "network.local")),
    )


def _push(text: str, ground: Ground, place: int) -> Push:
    remote, ref = text.split()
    return Push(glob(remote, folds=False), glob(ref, folds=False), _origin(ground, "push", place))


def _globs(patterns: Sequence[str], *, folds: bool) -> tuple[Glob, ...]:
    return tuple(glob(each, folds=folds) for each in patterns)


def _hosts(patterns: Sequence[str]) -> tuple[Glob, ...]:
    return _globs([plain_host(each.removesuffix(":*")) for each in patterns], folds=True)


def _program(text: str, ground: Ground, *, folds: bool) -> Iterator[Glob | PathGlob]:
    if "/" in text:
        yield from _paths((text,), ground, folds=folds)
    else:
        yield glob(text, folds=folds)


def _paths(patterns: Sequence[str], ground: Ground, *, folds: bool) -> Iterator[PathGlob]:
    """Patterns as absolute ones, with links resolved as far as they are written out. What forbids (and so
    folds capitals) means the links themselves, too."""
    for pattern in patterns:
        for text in _absolute(pattern, ground):
            parts = text.split("/")
            plain = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
            head, tail = "/".join(parts[:plain]) or "/", parts[plain:]
            forms = dict.fromkeys((ground.resolve(head), head) if folds else (ground.resolve(head),))
            for form in forms:
                yield path_glob("/".join((form, *tail)), folds=folds)


def _absolute(pattern: str, ground: Ground) -> Iterator[str]:
    if pattern.startswith("~/"):
        yield ground.home + pattern[1:]
    elif pattern.startswith("/"):
        yield pattern
    else:
        yield from (f"{base}/{pattern}" for base in ground.bases)
