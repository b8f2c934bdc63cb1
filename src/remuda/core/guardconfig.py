"""What ``[guard]`` in a configuration may say: shapes, bounded and checked when they are read.

The names are the guard's own (``guard/model.py``); a test holds them equal.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

DecisionName = Literal["allow", "ask", "deny"]
CapabilityName = Literal["scout", "reviewer", "lead", "coordinator", "builder", "merger", "supervised"]
EffectName = Literal[
    "read", "write", "execute", "evaluate", "network", "git", "system", "environment", "tool", "unknown"
]
HowName = Literal["create", "truncate", "append", "edit", "delete", "delete-tree", "mode", "link", "rename"]
DirectionName = Literal["get", "query", "send"]
OperationName = Literal[
    "read", "fetch", "index", "commit", "merge", "branch", "tag", "stash", "worktree", "clone",
    "push", "remote", "discard", "rewrite", "shared", "config", "execute",
]  # fmt: skip
SystemName = Literal[
    "privilege", "process", "service", "schedule", "mount", "user", "device", "package", "publish",
    "container", "cluster", "cloud", "database", "power", "network", "agent", "credential",
]  # fmt: skip

Pattern = Annotated[str, Meta(min_length=1, max_length=512)]
Reason = Annotated[str, Meta(min_length=1, max_length=200)]
Several = Annotated[tuple[Pattern, ...], Meta(max_length=64)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=256)]
Prefix = Annotated[str, Meta(max_length=100)]

T = TypeVar("T")

_SEPARATORS = str.maketrans("/-_.", "0000")

FIELDS: dict[str, frozenset[str]] = {
    "path": frozenset(("read", "write", "execute", "git")),
    "how": frozenset(("write",)),
    "host": frozenset(("network",)),
    "direction": frozenset(("network",)),
    "operation": frozenset(("git",)),
    "ref": frozenset(("git",)),
    "kind": frozenset(("system",)),
    "variable": frozenset(("environment",)),
}
"""Which effects have a field that a rule may speak of."""

NEEDED: dict[str, tuple[str, ...]] = {
    "read": ("path",),
    "write": ("path",),
    "network": ("host",),
    "git": ("operation",),
    "environment": ("variable",),
    "tool": ("tool",),
    "system": ("kind", "program", "argv"),
    "execute": ("path", "program", "argv"),
    "evaluate": ("program", "argv"),
}
"""What an allow has to say, so that nobody opens more than was meant: one of these."""


class RuleConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule of one's own: a decision for whatever fits everything that the rule says. Where a field has
    several values, one of them has to fit."""

    decision: DecisionName
    reason: Reason | None = None
    capability: CapabilityName | tuple[CapabilityName, ...] = ()
    effect: EffectName | tuple[EffectName, ...] = ()
    path: Pattern | Several = ()
    how: HowName | tuple[HowName, ...] = ()
    host: Pattern | Several = ()
    direction: DirectionName | None = None
    operation: OperationName | tuple[OperationName, ...] = ()
    ref: Pattern | Several = ()
    kind: SystemName | tuple[SystemName, ...] = ()
    variable: Pattern | Several = ()
    program: Pattern | Several = ()
    argv: Pattern | Several = ()
    tool: Pattern | Several = ()

    def __post_init__(self) -> None:
        """A rule that can never fit is a mistake, and so is an allow for more than it names."""
        if not self.effects and (self.effect or any(getattr(self, name) for name in FIELDS)):
            raise ValueError("the fields of this rule belong to different effects, so that it never fits")
        if self.decision == "allow":
            self._check_allow()
        for name in self.__struct_fields__:
            for text in several(getattr(self, name)):
                check_text(text or "", name)
        for name in ("argv", "program"):
            for pattern in several(getattr(self, name)):
                words_of(pattern, name)
        for pattern in several(self.path):
            check_path(pattern, "path")
        for pattern in several(self.host):
            check_host(pattern, "host")

    def _check_allow(self) -> None:
        if not (self.effects or self.program or self.argv or self.tool):
            raise ValueError("an allow has to say what for")
        for effect in sorted(self.effects):
            needed = NEEDED.get(effect, ())
            if not any(getattr(self, name) for name in needed):
                said = " or ".join(needed) or "another effect: nothing lifts this one"
                raise ValueError(f"effect: an allow of this kind has to name {said}")

    @property
    def effects(self) -> frozenset[str]:
        """The effects that this rule may speak of; none, when it speaks of calls as such. A path alone allows
        nobody to run what lies there."""
        given = [FIELDS[name] for name in FIELDS if getattr(self, name)]
        if self.effect:
            given.append(frozenset(several(self.effect)))
        elif self.path and self.decision == "allow":
            given.append(frozenset(("read", "write")))
        return frozenset.intersection(*given) if given else frozenset()


class TighteningRuleConfig(RuleConfig, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule of a project."""

    def __post_init__(self) -> None:
        if self.decision == "allow":
            raise ValueError("a project may ask and deny, but not allow")
        super().__post_init__()


class ProjectGuardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may say about the guard: it may be somebody else's, so it tightens. Its gates allow no
    more than to run its own code."""

    gates: Patterns = ()
    rules: Annotated[tuple[TighteningRuleConfig, ...], Meta(max_length=256)] = ()
    protect: Patterns = ()
    branch_prefix: Prefix | None = None

    def __post_init__(self) -> None:
        check_lists(self.gates, self.protect)
        check_prefix(self.branch_prefix)


class GuardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may say about the guard; ``resident``: whether hooks and guarded runs may keep a process
    around that answers faster."""

    gates: Patterns = ()
    rules: Annotated[tuple[RuleConfig, ...], Meta(max_length=256)] = ()
    protect: Patterns = ()
    push: Patterns = ()
    network: Patterns = ()
    branch_prefix: Prefix | None = None
    resident: bool = True

    def __post_init__(self) -> None:
        check_lists(self.gates, self.protect)
        check_prefix(self.branch_prefix)
        for place, pattern in enumerate(self.network):
            check_host(pattern, f"network[{place}]")
        for place, pattern in enumerate(self.push):
            check_text(pattern, f"push[{place}]")
            if len(pattern.split()) != 2:
                raise ValueError(f"push[{place}]: this names a remote and a ref, as in 'origin release/*'")


def several(value: T | tuple[T, ...]) -> tuple[T, ...]:
    """One or several, as several."""
    return value if isinstance(value, tuple) else (value,)


def check_text(text: str, name: str) -> None:
    """Refuse what cannot be shown in a line."""
    if not text.isprintable():
        raise ValueError(f"{name}: this has characters that cannot be shown")


def check_prefix(prefix: str | None) -> None:
    """Refuse a prefix that is no part of a branch's name, or one that could be the whole of one."""
    if prefix is None:
        return
    plain = prefix.replace("{agent}", "agent")
    if not plain.isascii() or not plain.translate(_SEPARATORS).isalnum() or prefix[-1] not in "/-_":
        raise ValueError(
            "branch_prefix: this ends with '/', '-' or '_' and has nothing but letters, digits, '.'"
        )


def words_of(text: str, name: str) -> tuple[str, ...]:
    """The words of a command that is written plainly; ``name`` is the key that an error is about."""
    import shlex

    check_text(text, name)
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        words = ()
    if not words or not words[0]:
        raise ValueError(f"{name}: this is not one plain command")
    return words


def check_path(pattern: str, name: str) -> None:
    """Refuse a pattern that no resolved path can have."""
    check_text(pattern, name)
    if ".." in pattern.split("/") or (pattern.startswith("~") and not pattern.startswith("~/")):
        raise ValueError(f"{name}: a path has no '..' here and names no other user's home")


def check_host(pattern: str, name: str) -> None:
    """Refuse a port: the guard judges hosts."""
    check_text(pattern, name)
    _, colon, port = pattern.rpartition(":")
    if (colon and port != "*" and "[" not in pattern) or "/" in pattern:
        raise ValueError(f"{name}: this names a host, of which any port is meant")


def check_lists(gates: tuple[str, ...], protect: tuple[str, ...]) -> None:
    """Refuse gates that are no plain commands, and protected paths that are no paths."""
    for place, gate in enumerate(gates):
        if "=" in words_of(gate, f"gates[{place}]")[0]:
            raise ValueError(f"gates[{place}]: a gate begins with a program, not with a variable")
    for place, pattern in enumerate(protect):
        check_path(pattern, f"protect[{place}]")
