"""The judge: a tool call in, a verdict out. Total and bounded: whatever goes wrong inside is a deny."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remuda.guard.model import AnyEffect, Command, Context, Tool, Verdict
from remuda.guard.paths import Observer, Terrain
from remuda.guard.policy import Review, Weighed, explain, strictest, weigh
from remuda.guard.table import TABLE, Finding
from remuda.guard.tools import Script, ToolCall, normalise

if TYPE_CHECKING:
    from remuda.guard.own import Policy

_NOTHING = "allow"
"""The rule of a call about which nothing is found."""


class Hearing(msgspec.Struct, frozen=True):
    """A verdict with everything it rests on: the sources, each effect with its findings, and what a policy of
    one's own finds about the call as such."""

    verdict: Verdict
    sources: tuple[str, ...] = ()
    weighed: tuple[Weighed, ...] = ()
    own: tuple[Finding, ...] = ()


def judge(call: ToolCall, context: Context, observer: Observer, policy: Policy | None = None) -> Verdict:
    """What may become of a tool call."""
    return hear(call, context, observer, policy).verdict


def hear(call: ToolCall, context: Context, observer: Observer, policy: Policy | None = None) -> Hearing:
    """What may become of a tool call, and why. An error inside is a deny, never an exception."""
    try:
        return _heard(call, context if policy is None else policy.completed(context), observer, policy)
    except Exception:
        row = TABLE["guard.error"]
        return Hearing(Verdict(decision="deny", rule="guard.error", reason=row.reason, hint=row.hint))


def _heard(call: ToolCall, context: Context, observer: Observer, policy: Policy | None) -> Hearing:
    placed = call.cwd.startswith("/")
    parts = list(normalise(call, context.home)) if placed else [Tool(name=call.tool, kind="malformed")]
    effects: list[AnyEffect] = []
    commands: list[Command] = []
    for part in parts:
        if isinstance(part, Script):
            _follow(part, context, observer, effects, commands)
        else:
            effects.append(part)
    terrain = Terrain(context, call.cwd, observer)
    review: Review | None = None
    own: tuple[Finding, ...] = ()
    if policy:
        from remuda.guard.own import added_to_call, reviewer
        from remuda.guard.rules import Scene
        from remuda.guard.toolinput import tools_of

        scene = Scene(tools_of(call.tool, call.input), tuple(commands), terrain, observer)
        review = reviewer(policy, context.capability, scene, effects)
        own = added_to_call(policy, context.capability, scene)
    weighed = tuple(weigh(effects, context, terrain, review))
    sources = tuple(part.source for part in parts if isinstance(part, Script))
    return Hearing(_verdict(weighed, own, context, terrain.ground), sources, weighed, own)


def _follow(
    part: Script, context: Context, observer: Observer, effects: list[AnyEffect], commands: list[Command]
) -> None:
    """Add what a shell does with a source; its grammar is only loaded for one."""
    from remuda.guard.shell.interpret import follow
    from remuda.guard.shell.state import Surroundings

    variables = {"TMPDIR": "/tmp", "PWD": part.cwd}  # noqa: S108
    if context.home:
        variables["HOME"] = context.home
    root = context.worktree or context.project_root
    where = Surroundings(
        cwd=part.cwd, home=context.home, root=root, variables=variables, observe=observer.folder
    )
    followed = follow(part.source, where)
    effects += followed.effects
    commands += followed.commands


def _verdict(
    weighed: tuple[Weighed, ...], own: tuple[Finding, ...], context: Context, ground: str | None
) -> Verdict:
    """The strictest finding of all, and among equals the first."""
    findings = [*(finding for each in weighed for finding in each.findings), *own]
    decision = strictest(finding.decision(context.capability) for finding in findings)
    effects = tuple(each.effect for each in weighed)
    lifted = next((finding for each in weighed for finding in each.lifted), None)
    for finding in findings:
        if decision != "allow" and finding.decision(context.capability) == decision:
            reason, hint = explain(finding, context, ground)
            return Verdict(decision=decision, rule=finding.rule, reason=reason, hint=hint, effects=effects)
    if lifted is not None:
        reason, _ = explain(Finding("policy.allow", lifted.origin), context, ground)
        return Verdict(decision="allow", rule="policy.allow", reason=reason, effects=effects)
    reason = f"nothing in it is out of bounds for {context.capability}"
    return Verdict(decision="allow", rule=_NOTHING, reason=reason, effects=effects)
