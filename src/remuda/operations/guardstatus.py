"""Tell where the guard is installed, and what keeps it from being asked."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core import evidence
from remuda.core.errors import RemudaError
from remuda.dispatch import installation
from remuda.hooks import staging
from remuda.hooks.settings import disk
from remuda.hooks.wrapper import Call, script
from remuda.operations.wired import Wired, consents, holds, why_not, wired
from remuda.operations.world import World
from remuda.runtimes.base import Runtime
from remuda.runtimes.wiring import Scope

CLAIM = "guard.hook"
"""What the evidence for a hook that holds is called."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How the guard stands in one scope of a runtime's settings.

    ``program``: whether the hook program is there, missing, or not the one that would be installed now.
    ``problems`` keep the guard from being asked although it is installed; ``condition`` is what else has to
    be so.
    """

    scope: Scope
    installed: Literal["yes", "no", "partly", "unknown"]
    program: Literal["there", "missing", "outdated"]
    files: list[str]
    problems: list[str]
    condition: str = ""


class RuntimeStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime's standings; none, with the reason, where no hook would hold. ``proof`` is what was last seen
    on the installed version."""

    runtime: str
    present: bool
    version: str | None
    scopes: list[Standing]
    why_not: str = ""
    proof: evidence.Evidence | None = None


class Status(msgspec.Struct, frozen=True):
    """The answer of ``remuda guard status``."""

    runtimes: list[RuntimeStanding]


def status(world: World, names: tuple[str, ...]) -> Status:
    """The named runtimes, or all."""
    runtimes = [world.herd.get(name) for name in names] if names else world.herd.survey().runtimes
    return Status([_runtime(world, runtime) for runtime in runtimes])


def _runtime(world: World, runtime: Runtime) -> RuntimeStanding:
    found = installation.find(runtime, world.environ, world.config)
    version = installation.known_version(runtime, found, world.folders.cache) if found else None
    return RuntimeStanding(
        runtime=runtime.name,
        present=found is not None,
        version=version,
        scopes=[_standing(world, runtime, scope) for scope in runtime.wiring.scopes]
        if runtime.wiring
        else [],
        why_not="" if runtime.wiring else why_not(runtime),
        proof=evidence.latest(world.folders.evidence_file, runtime.name, version).get(CLAIM),
    )


def _standing(world: World, runtime: Runtime, scope: Scope) -> Standing:
    each = wired(world, runtime, scope)
    seen = [holds(edit) for edit in each.edits]
    installed: Literal["yes", "no", "partly", "unknown"] = (
        "unknown" if None in seen else "yes" if all(seen) else "partly" if any(seen) else "no"
    )
    program, missing = _program(world, each)
    problems = [] if installed == "no" else [*missing, *each.wiring.switched_off(each.site), *_consent(each)]
    return Standing(
        scope=scope,
        installed=installed,
        program=program,
        files=[str(path) for path in each.paths],
        problems=problems,
        condition=each.wiring.condition.get(scope, ""),
    )


def _program(world: World, each: Wired) -> tuple[Literal["there", "missing", "outdated"], list[str]]:
    """The hook program before tools, and the error that says so if there is none."""
    name = each.runtime.name
    try:
        path = staging.hook_path(world.folders.data, name, "PreToolUse", world.herd)
    except RemudaError as error:
        return "missing", [str(error)]
    text = script(Call(runtime=name, event="PreToolUse", dialect=each.wiring.dialect))
    if path.read_bytes() == text.encode():
        return "there", []
    return "outdated", [f"{path} is not as this version of Remuda makes it: install it again"]


def _consent(each: Wired) -> list[str]:
    """That the user has not agreed to the hooks, where the CLI wants that."""
    try:
        agreed = consents(each, {path: disk.read(path) for path in each.paths})
    except RemudaError:
        return []
    if all(holds(edit) for edit in agreed):
        return []
    return [f"nobody has agreed to the hooks yet, and {each.runtime.title} skips them"]
