"""What a capability is to an agent: a bound where only tools can be taken away, and a note for its model."""

from __future__ import annotations

from typing import get_args

from remuda.core.errors import UsageError
from remuda.guard.model import Capability
from remuda.runtimes.base import Access

CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

_ACCESS: dict[Capability, Access] = {
    "scout": "read",
    "reviewer": "read",
    "lead": "read",
    "coordinator": "read",
    "builder": "workspace",
    "merger": "workspace",
}
_READS = "You read, search and report; you change no files, make no commits and send nothing anywhere."
_BUILDS = (
    "You may change files below {worktree} only, and commit there; you never push, never throw work away "
    "(reset --hard, clean, checkout of files) and leave settings and hooks of agents alone."
)
DUTIES: dict[Capability, str] = {
    "scout": _READS,
    "reviewer": _READS,
    "lead": _READS,
    "coordinator": _READS,
    "builder": _BUILDS,
    "merger": _BUILDS + " You merge branches.",
    "supervised": "You do nothing destructive: no forced pushes, no discarded work, no removed trees.",
}


def capability_of(name: str | None) -> Capability | None:
    """A capability by its name."""
    if name is None:
        return None
    found = next((each for each in CAPABILITIES if each == name), None)
    if found is None:
        raise UsageError(f"there is no capability {name!r}", f"Known: {', '.join(CAPABILITIES)}.")
    return found


def access_for(capability: Capability) -> Access | None:
    """The access bound that stands for a capability; None where no bound would do."""
    return _ACCESS.get(capability)


def note(capability: Capability, worktree: str, branch_prefix: str | None) -> str:
    """What a model is told of its bounds, where a refusal itself cannot tell."""
    branches = f" New branches are called {branch_prefix}…." if branch_prefix else ""
    return (
        f"You work here as a {capability}. {DUTIES[capability].format(worktree=worktree)}{branches} A guard "
        "refuses tool calls that go beyond this. When one is refused, do not try to get around it: do what "
        "you may, and say in your answer what is left for others to do."
    )
