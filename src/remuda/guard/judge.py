"""The judge: a tool call in, a verdict out. Total and bounded: whatever goes wrong inside is a deny."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from remuda.guard.model import AnyEffect, Context, Tool, Verdict
from remuda.guard.paths import Observer, Terrain
from remuda.guard.policy import Weighed, explain, strictest, weigh
from remuda.guard.table import TABLE
from remuda.guard.tools import Script, ToolCall, normalise

_NOTHING = "allow"
"""The rule of a call about which nothing is found."""


class Hearing(msgspec.Struct, frozen=True):
    """A verdict with everything it rests on: the sources, and each effect with its findings."""

    verdict: Verdict
    sources: tuple[str, ...] = ()
    weighed: tuple[Weighed, ...] = ()


def judge(call: ToolCall, context: Context, observer: Observer) -> Verdict:
    """What may become of a tool call."""
    return hear(call, context, observer).verdict


def hear(call: ToolCall, context: Context, observer: Observer) -> Hearing:
    """What may become of a tool call, and why. An error inside is a deny, never an exception."""
    try:
        return _heard(call, context, observer)
    except Exception:
        row = TABLE["guard.error"]
        return Hearing(Verdict(decision="deny", rule="guard.error", reason=row.reason, hint=row.hint))


def _heard(call: ToolCall, context: Context, observer: Observer) -> Hearing:
    placed = call.cwd.startswith("/")
    parts = list(normalise(call, context.home)) if placed else [Tool(name=call.tool, kind="malformed")]
    effects = [effect for part in parts for effect in _effects(part, context, observer)]
    terrain = Terrain(context, call.cwd, observer)
    weighed = tuple(weigh(effects, context, terrain))
    sources = tuple(part.source for part in parts if isinstance(part, Script))
    return Hearing(_verdict(weighed, context, terrain.ground), sources, weighed)


def _effects(part: AnyEffect | Script, context: Context, observer: Observer) -> Iterator[AnyEffect]:
    """The effects of one part of a call; a shell's grammar is only loaded for a shell's source."""
    if not isinstance(part, Script):
        yield part
        return
    from remuda.guard.shell.interpret import effects
    from remuda.guard.shell.state import Surroundings

    variables = {"TMPDIR": "/tmp", "PWD": part.cwd}  # noqa: S108
    if context.home:
        variables["HOME"] = context.home
    root = context.worktree or context.project_root
    where = Surroundings(
        cwd=part.cwd, home=context.home, root=root, variables=variables, observe=observer.folder
    )
    yield from effects(part.source, where)


def _verdict(weighed: tuple[Weighed, ...], context: Context, ground: str | None) -> Verdict:
    """The strictest finding of all, and among equals the first."""
    decision = strictest(each.decision for each in weighed)
    effects = tuple(each.effect for each in weighed)
    for each in weighed:
        for finding in each.findings:
            if decision != "allow" and TABLE[finding.rule].decision(context.capability) == decision:
                reason, hint = explain(finding, context, ground)
                return Verdict(
                    decision=decision, rule=finding.rule, reason=reason, hint=hint, effects=effects
                )
    reason = f"nothing in it is out of bounds for {context.capability}"
    return Verdict(decision="allow", rule=_NOTHING, reason=reason, effects=effects)
