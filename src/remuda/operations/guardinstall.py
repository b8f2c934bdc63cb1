"""Put the guard into the settings of agent CLIs, for a person's everyday sessions, and take it out again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.clock import now, rfc3339
from remuda.dispatch import installation
from remuda.hooks import staging
from remuda.hooks.settings import disk
from remuda.hooks.settings.ledger import Record
from remuda.operations.wired import Wired, consents, ledger, planned, unplanned, why_not, wired
from remuda.operations.world import World
from remuda.runtimes.base import Runtime
from remuda.runtimes.wiring import Scope as Scope

State = Literal["installed", "removed", "unchanged", "skipped"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """For which runtimes (all that are installed, if none is named), in which settings, and whether only to
    show what would be done. ``trust``: the user agrees to the hooks, where a CLI wants that."""

    runtimes: tuple[str, ...] = ()
    scope: Scope = "user"
    dry_run: bool = False
    trust: bool = False


class File(msgspec.Struct, frozen=True):
    """A settings file that changes, with the difference; the whole difference if it comes or goes."""

    path: str
    diff: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was done for a runtime, or would be. ``notes`` tell the user what else has to be so."""

    runtime: str
    scope: Scope
    state: State
    files: list[File] = []
    notes: list[str] = []


class Outcomes(msgspec.Struct, frozen=True):
    """The answer of ``remuda guard install`` and ``remove``."""

    dry_run: bool
    outcomes: list[Outcome]


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    wired: Wired
    targets: tuple[disk.Target, ...]
    notes: list[str] = []

    @property
    def changed(self) -> list[disk.Target]:
        return [target for target in self.targets if target.before != target.after]


def install(world: World, request: Request) -> Outcomes:
    """Everything is planned before anything is changed: a file that cannot be understood stops it all."""
    return _each(world, request, _planned_installation, _install, "installed")


def remove(world: World, request: Request) -> Outcomes:
    """Take the guard out of the settings again, with all that was made for it."""
    return _each(world, request, _planned_removal, _remove, "removed")


def _each(
    world: World,
    request: Request,
    plan: Callable[[World, Request, Runtime], _Plan],
    carry_out: Callable[[World, _Plan], None],
    state: State,
) -> Outcomes:
    with contextlib.nullcontext() if request.dry_run else ledger(world).locked():
        chosen = [*_chosen(world, request)]
        plans = [plan(world, request, each) if isinstance(each, Runtime) else each for each in chosen]
        outcomes = []
        for each in plans:
            if isinstance(each, Outcome):
                outcomes.append(each)
                continue
            if not request.dry_run:
                carry_out(world, each)
            outcomes.append(_outcome(each, state))
    return Outcomes(request.dry_run, outcomes)


def _chosen(world: World, request: Request) -> Iterator[Runtime | Outcome]:
    """The runtimes that are named, or those that are installed; of these, some may have to be skipped."""
    if request.runtimes:
        yield from (world.herd.get(name) for name in dict.fromkeys(request.runtimes))
        return
    for runtime in world.herd.survey().runtimes:
        if installation.find(runtime, world.environ, world.config) is None:
            continue
        if runtime.wiring is None:
            yield _skipped(runtime, request, why_not(runtime))
        elif request.scope not in runtime.wiring.scopes:
            yield _skipped(runtime, request, f"{runtime.title} has no hooks of a project")
        else:
            yield runtime


def _skipped(runtime: Runtime, request: Request, why: str) -> Outcome:
    return Outcome(runtime=runtime.name, scope=request.scope, state="skipped", notes=[why])


def _planned_installation(world: World, request: Request, runtime: Runtime) -> _Plan:
    each = wired(world, runtime, request.scope)
    targets = [planned(path, each, each.edits) for path in each.paths]
    agreed = consents(each, {target.path: target.after for target in targets})
    if request.trust:
        targets += [planned(path, each, agreed) for path in dict.fromkeys(edit.path for edit in agreed)]
    condition = each.wiring.condition.get(request.scope)
    notes = [*each.wiring.switched_off(each.site)]
    if condition and not (request.trust and agreed):
        notes.append(condition)
    return _Plan(wired=each, targets=tuple(targets), notes=notes)


def _planned_removal(world: World, request: Request, runtime: Runtime) -> _Plan:
    each = wired(world, runtime, request.scope)
    agreed = consents(each, {path: each.read(path) for path in each.paths})
    edits = (*each.edits, *agreed)
    recorded = [Path(done.path) for done in each.record.changes] if each.record else []
    paths = dict.fromkeys((*each.paths, *(edit.path for edit in agreed), *recorded))
    return _Plan(wired=each, targets=tuple(unplanned(path, each, edits) for path in paths))


def _install(world: World, plan: _Plan) -> None:
    """The programs first, then the record, then the settings that name the programs."""
    each = plan.wired
    staging.stage(world.folders.data, each.runtime.name, each.wiring.dialect, world.herd)
    if not plan.changed:
        return
    done = {target.change.path: target.change for target in plan.targets if target.change}
    earlier = each.record.changes if each.record else ()
    folders = (
        *(each.record.folders if each.record else ()),
        *disk.missing_folders(target.path for target in plan.changed),
    )
    record = Record(
        runtime=each.runtime.name,
        scope=each.site.scope,
        installed_at=rfc3339(now()),
        changes=(*(old for old in earlier if old.path not in done), *done.values()),
        folders=tuple(dict.fromkeys(folders)),
    )
    ledger(world).store(record, each.paths)
    try:
        disk.carry_out(plan.changed)
    except BaseException:
        if each.record is None:
            ledger(world).forget(each.runtime.name, each.site.scope, each.paths)
        raise


def _remove(world: World, plan: _Plan) -> None:
    """The settings first, so that nothing ever names a program that is gone."""
    each = plan.wired
    records = ledger(world)
    disk.carry_out(plan.changed)
    if each.record:
        disk.remove_folders(each.record.folders)
    records.forget(each.runtime.name, each.site.scope, each.paths)
    if not records.others(each.runtime.name, each.site.scope, each.paths):
        staging.unstage(world.folders.data, each.runtime.name, world.herd)


def _outcome(plan: _Plan, state: State) -> Outcome:
    return Outcome(
        runtime=plan.wired.runtime.name,
        scope=plan.wired.site.scope,
        state=state if plan.changed else "unchanged",
        files=[File(str(target.path), _diff(target)) for target in plan.changed],
        notes=plan.notes,
    )


def _diff(target: disk.Target) -> str:
    old, new = ("/dev/null" if data is None else str(target.path) for data in (target.before, target.after))
    lines = unified_diff(_lines(target.before), _lines(target.after), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _lines(data: bytes | None) -> Sequence[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
