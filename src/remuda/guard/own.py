"""The policy of one's own: compiled rules, gates, refs to push to, and what they make of a tool call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from remuda.guard.gates import Gate, passes
from remuda.guard.matching import ALWAYS, MAYBE, Degree, Glob, word_span
from remuda.guard.model import AnyEffect, Capability, Command, Context, Execute, Git
from remuda.guard.paths import Place
from remuda.guard.policy import Review
from remuda.guard.rules import Rule, Scene, of_call, of_effect, plain_ref
from remuda.guard.table import TABLE, Finding

_BEYOND_REFS = ("all", "branches", "tags", "follow-tags", "mirror", "prune", "delete", "force")
"""Options of a push that change more than the refs it names."""


class Push(msgspec.Struct, frozen=True):
    """A ref that mergers may push to."""

    remote: Glob
    ref: Glob
    origin: str


class Policy(msgspec.Struct, frozen=True):
    """What the user and the project say about the guard."""

    rules: tuple[Rule, ...] = ()
    gates: tuple[Gate, ...] = ()
    pushes: tuple[Push, ...] = ()
    branch_prefix: str | None = None

    def __bool__(self) -> bool:
        return bool(self.rules or self.gates or self.pushes)

    def completed(self, context: Context) -> Context:
        """The context, with the prefix for branches where none is given."""
        if context.branch_prefix or not self.branch_prefix:
            return context
        prefix = self.branch_prefix.replace("{agent}", context.agent or "{agent}")
        return msgspec.structs.replace(context, branch_prefix=prefix)


NO_POLICY = Policy()


def added_to_call(policy: Policy, capability: Capability, scene: Scene) -> tuple[Finding, ...]:
    """What rules find about a call as such."""
    return tuple(
        _finding(rule, degree)
        for rule in policy.rules
        if rule.decision != "allow" and rule.concerns(capability) and (degree := of_call(rule, scene))
    )


def added(
    policy: Policy, effect: AnyEffect, places: Sequence[Place], capability: Capability, scene: Scene
) -> Iterator[Finding]:
    """What rules find about an effect."""
    for rule in policy.rules:
        if rule.decision == "allow" or not rule.effects or not rule.concerns(capability):
            continue
        if degree := of_effect(rule, effect, places, scene).best:
            yield _finding(rule, degree)


def _finding(rule: Rule, degree: Degree) -> Finding:
    return Finding("policy.unknown" if degree == MAYBE else rule.row, rule.reason, rule.origin)


def reviewer(policy: Policy, capability: Capability, scene: Scene, effects: Sequence[AnyEffect]) -> Review:
    """A policy, ready to be applied to the effects of one call."""
    lifting = Lifting(policy, capability, scene, effects)

    def review(
        effect: AnyEffect, places: tuple[Place, ...], findings: tuple[Finding, ...]
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        held: list[Finding] = []
        lifted: list[Finding] = []
        for finding in findings:
            stops = finding.decision(capability) != "allow"
            origin = lifting.origin(finding, effect, places) if stops else ""
            if origin:
                lifted.append(msgspec.structs.replace(finding, origin=origin))
            else:
                held.append(finding)
        return (*held, *added(policy, effect, places, capability, scene)), tuple(lifted)

    return review


class Lifting(msgspec.Struct, frozen=True):
    """Who lifts findings about one effect."""

    policy: Policy
    capability: Capability
    scene: Scene
    effects: Sequence[AnyEffect]

    def origin(self, finding: Finding, effect: AnyEffect, places: Sequence[Place]) -> str:
        """The rule that lifts a finding; empty if there is none."""
        if TABLE[finding.rule].fixed:
            return ""
        for rule in self.policy.rules:
            if self._lifts(rule, finding) and of_effect(rule, effect, places, self.scene).worst == ALWAYS:
                return rule.origin
        if isinstance(effect, Execute):
            for gate in self.policy.gates:
                if finding.rule in gate.lifts and passes(gate, effect, self.effects, self.scene):
                    return gate.origin
        if isinstance(effect, Git) and finding.rule == "git.push" and self.capability == "merger":
            return next((push.origin for push in self.policy.pushes if self._pushes(push, effect)), "")
        return ""

    def _lifts(self, rule: Rule, finding: Finding) -> bool:
        allows = rule.decision == "allow" and rule.concerns(self.capability)
        return allows and (not rule.lifts or finding.rule in rule.lifts)

    def _pushes(self, push: Push, effect: Git) -> bool:
        """Whether a push goes to this ref of this remote, and nowhere else, without any force."""
        if effect.forced or effect.detail or not effect.refs:
            return False
        if not all(word_span((push.ref,), ref, plain_ref).worst == ALWAYS for ref in effect.refs):
            return False
        inner = [
            each for each in self.scene.commands if each.source == effect.source and each.via == effect.via
        ]
        return bool(inner) and all(_to_remote(push, each) for each in inner)


def _to_remote(push: Push, command: Command) -> bool:
    """Whether a command is a plain push to a remote by its name, of which every word is known."""
    from remuda.guard.commands.gitremote import PUSH_OPTIONS
    from remuda.guard.commands.options import parse

    texts = [word.text for word in command.argv]
    if texts[:2] != ["git", "push"] or None in texts:
        return False
    parsed = parse(PUSH_OPTIONS, command.argv[2:])
    if parsed.strange or parsed.has(*_BEYOND_REFS) or parsed.values("repo") or not parsed.operands:
        return False
    return word_span((push.remote,), parsed.operands[0]).worst == ALWAYS
