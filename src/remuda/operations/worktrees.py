"""The worktrees of isolated runs: which there are, what is in them, and which can go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core import clock, log
from remuda.core.events import Work
from remuda.core.files import locked
from remuda.operations.isolation import records_folder, repository_name
from remuda.operations.world import World
from remuda.worktrees import trees
from remuda.worktrees.git import GitError
from remuda.worktrees.records import Record, Records

State = Literal["running", "left", "handed back", "clean", "gone"]
"""Somebody works in it; whoever did was killed; its work is on its branch; nothing was done in it; the folder
is not there any more."""

_DAY = 86400.0
_WITHIN = "there are repositories or submodules in it, whose content its branch does not have"


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree of an isolated run. ``dirty``: it holds what no commit has."""

    session: str
    agent: str
    state: State
    dirty: bool
    repository: str
    branch: str
    base: str
    path: str
    commits: int
    created_at: str
    age: float


class Worktrees(msgspec.Struct, frozen=True):
    """The answer of ``remuda worktree list``."""

    worktrees: tuple[Worktree, ...]


class Kept(msgspec.Struct, frozen=True):
    """A worktree that stays, and why."""

    session: str
    path: str
    reason: str


class Removed(msgspec.Struct, frozen=True):
    """A worktree that went, and the branch that has its work; none where there was no work."""

    session: str
    path: str
    branch: str | None


class Collected(msgspec.Struct, frozen=True):
    """The answer of ``remuda worktree gc``."""

    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]
    dry_run: bool


def worktrees(world: World) -> Worktrees:
    """All worktrees of isolated runs, oldest first."""
    return Worktrees(tuple(_seen(world, record) for record in Records(records_folder(world))))


def _seen(world: World, record: Record) -> Worktree:
    dirty = _dirty(world, record)
    return Worktree(
        session=record.session,
        agent=record.agent,
        state=_state(record, worked=dirty or trees.has_work(world.environ, record)),
        dirty=dirty,
        repository=record.repository,
        branch=record.branch,
        base=record.base,
        path=record.path,
        commits=trees.work_of(world.environ, record).commits,
        created_at=record.created_at,
        age=max(0.0, clock.now() - clock.seconds(record.created_at)),
    )


def _dirty(world: World, record: Record) -> bool:
    """Whether a worktree holds what no commit has; where git cannot tell, it does."""
    if not Path(record.path).is_dir():
        return False
    try:
        return trees.dirty(trees.in_tree(world.environ, record))
    except GitError:
        return True


def _state(record: Record, *, worked: bool) -> State:
    if record.running:
        return "running"
    if not Path(record.path).is_dir():
        return "gone"
    if not worked:
        return "clean"
    return "handed back" if record.handed_back_at else "left"


def hand_back(world: World, session: str) -> Work | None:
    """Bring what is in a run's worktree onto its branch, and put that on record. What git would not take
    stays in the worktree, and that is said."""
    records = Records(records_folder(world))
    record = records.find(session)
    if record is None:
        return None
    with locked(records.lock(repository_name(Path(record.common)))):
        work, trouble = _handed_back(world, records, record)
    if trouble is not None:
        log.warn(f"not all that is in the worktree is on its branch: {trouble}", path=record.path)
    return work


def _handed_back(world: World, records: Records, record: Record) -> tuple[Work, str | None]:
    """The same, for whoever holds the repository's lock; the work, and what keeps it from being all."""
    trouble = _committed(world, record)
    work = trees.work_of(world.environ, record)
    if trouble is None:
        now = clock.rfc3339(clock.now())
        records.keep(msgspec.structs.replace(record, handed_back_at=now, work=work))
    else:
        records.keep(msgspec.structs.replace(record, holder="", handed_back_at=None))
    return work, trouble


def _committed(world: World, record: Record) -> str | None:
    """What keeps a worktree's content from being all on its branch."""
    if not Path(record.path).is_dir():
        return None
    try:
        trouble = trees.commit_all(world.environ, record)
        return trouble or (_WITHIN if trees.holds_repositories(world.environ, record) else None)
    except GitError as error:
        return error.reason


def collect(world: World, *, older_than_days: float = 0, dry_run: bool = False) -> Collected:
    """Remove the worktrees that nobody works in and whose every change is on their branch; those with changes
    are committed first. A branch stays, unless it has nothing of its own."""
    latest = clock.now() - older_than_days * _DAY
    told = [
        _collected(world, record, dry_run=dry_run)
        for record in Records(records_folder(world))
        if clock.seconds(record.handed_back_at or record.created_at) <= latest
    ]
    return Collected(
        tuple(each for each in told if isinstance(each, Removed)),
        tuple(each for each in told if isinstance(each, Kept)),
        dry_run,
    )


def _collected(world: World, record: Record, *, dry_run: bool) -> Removed | Kept:
    """What becomes of one. Nobody takes it up again meanwhile: that needs the same lock."""
    records = Records(records_folder(world))
    try:
        with locked(records.lock(repository_name(Path(record.common)))):
            now = records.find(record.session)
            if reason := "somebody else has removed it" if now is None else _obstacle(now):
                return Kept(record.session, record.path, reason)
            assert now is not None
            return _gone(world, records, now, dry_run=dry_run)
    except GitError as error:
        return Kept(record.session, record.path, error.reason)


def _gone(world: World, records: Records, record: Record, *, dry_run: bool) -> Removed | Kept:
    """Remove one that nobody works in. It is handed back once more: somebody may have worked in it since, and
    have left its HEAD on no branch."""
    if dry_run:
        trouble = _WITHIN if trees.holds_repositories(world.environ, record) else None
    else:
        _, trouble = _handed_back(world, records, record)
        if trouble is None and _dirty(world, record):
            trouble = "not all that is in it could be committed"
    if trouble is not None:
        return Kept(record.session, record.path, trouble)
    empty = not trees.has_work(world.environ, record) and not _dirty(world, record)
    if not dry_run:
        trees.remove(world.environ, record, empty=empty)
        records.drop(record.session)
    return Removed(record.session, record.path, None if empty else record.branch)


def _obstacle(record: Record) -> str | None:
    """Who keeps a worktree from going."""
    if record.running:
        return "a run works in it"
    pid = next(_inside(Path(record.path)), None)
    return f"process {pid} works in it" if pid else None


def _inside(path: Path) -> Iterator[int]:
    """The processes that have a folder as their own, where the system tells."""
    real = os.path.realpath(path)
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            folder = (entry / "cwd").readlink()
        except OSError:
            continue
        if folder.is_relative_to(real):
            yield int(entry.name)
