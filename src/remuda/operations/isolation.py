"""Runs in a git worktree of their own: what they leave there becomes a branch, and is never thrown away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core import clock, log
from remuda.core.errors import NotFoundError, UsageError
from remuda.core.events import Work
from remuda.core.files import locked
from remuda.core.identity import identity
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World
from remuda.runtimes.base import Runtime

if TYPE_CHECKING:
    from remuda.worktrees.records import Record, Records
    from remuda.worktrees.repository import Repository


class Isolated:
    """Where a run works. Once it was entered, ``plan`` works there and ``request`` is bound to it;
    ``handed_back`` tells what was done there, once the agent has ended."""

    def __init__(self, plan: Plan, request: RunRequest) -> None:
        self.plan = plan
        self.request = request

    def enter(self) -> None:
        """Be there, before the first agent is started; the second time changes nothing."""

    def bound(self, request: RunRequest, _runtime: Runtime) -> RunRequest:
        """A request as a runtime is held to the worktree; as it is where the run was not isolated."""
        return request

    def handed_back(self) -> Work | None:
        """The work as a branch; None where the run was not isolated."""
        return None


class _InTree(Isolated):
    """One that has a worktree: that of an earlier turn, or one that is made when it is entered, so that none
    is made for a run that has to wait for its turn and does not get it."""

    def __init__(
        self, plan: Plan, request: RunRequest, world: World, records: Records, before: Record | None
    ) -> None:
        super().__init__(plan, request)
        self._world = world
        self._records = records
        self._before = before
        self._record: Record | None = None
        self._work: Work | None = None

    def enter(self) -> None:
        if self._record is not None:
            return
        before = self._before
        record = _taken_up(self._records, before) if before else _made(self._world, self._records, self.plan)
        self._record = record
        self.plan = msgspec.structs.replace(self.plan, cwd=Path(record.folder))
        self.request = self.bound(self.request, self.plan.runtime)

    def bound(self, request: RunRequest, runtime: Runtime) -> RunRequest:
        """Only one that asks can be held to the whole worktree, wherever in it the agent works."""
        if self._record is None:
            return request
        place = self._record.path if runtime.guarding.by == "approval" else self._record.folder
        return msgspec.structs.replace(request, isolated=True, worktree=Path(place))

    def handed_back(self) -> Work | None:
        """Commit what was left uncommitted, the first time, and tell what is on the branch."""
        from remuda.operations.worktrees import hand_back

        if self._record is not None:
            self._work = self._work or hand_back(self._world, self._record.session)
        return self._work


@contextmanager
def isolated(world: World, request: RunRequest, plan: Plan) -> Iterator[Isolated]:
    """A worktree for this run where it asks for one, or goes on in one, to be entered; its plan as it is,
    otherwise. What is left in it when the block ends is handed back."""
    again = plan.resume and records_folder(world).is_dir()
    if not request.isolated and not again:
        yield Isolated(plan, request)
        return
    from remuda.worktrees.records import Records

    records = Records(records_folder(world))
    record = records.find(plan.session) if plan.resume else None
    if record is None and not request.isolated:
        yield Isolated(plan, request)
        return
    if request.worktree is not None:
        raise UsageError("an isolated run has a worktree of its own", "Leave out --worktree or --isolated.")
    inside = _InTree(plan, request, world, records, record)
    try:
        yield inside
    finally:
        inside.handed_back()


def _made(world: World, records: Records, plan: Plan) -> Record:
    """A new worktree, which is on record before it is there: whatever dies, it is found again."""
    from remuda.worktrees import trees
    from remuda.worktrees.git import GitError
    from remuda.worktrees.repository import repository, uncommitted

    found = repository(world.environ, plan.cwd)
    record = _record(world, plan, found)
    with locked(records.lock(repository_name(found.common))):
        records.keep(record)
        try:
            trees.add(world.environ, found, record)
        except GitError as error:
            records.drop(record.session)
            raise UsageError(
                f"git cannot make a worktree: {error.reason}", "Mend that, then try again."
            ) from None
    if uncommitted(world.environ, plan.cwd):
        log.warn("the isolated run does not see the uncommitted changes here", repository=record.repository)
    return record


def _record(world: World, plan: Plan, found: Repository) -> Record:
    from remuda.worktrees import trees
    from remuda.worktrees.records import Record

    path = world.folders.worktrees / repository_name(found.common) / plan.session
    try:
        f"{found.root}{path}{found.below}".encode()
    except UnicodeEncodeError:
        raise UsageError("the path of this repository is not UTF-8", "Move it to one that is.") from None
    return Record(
        session=plan.session,
        agent=plan.agent.name,
        repository=str(found.root),
        common=str(found.common),
        git_dir=str(trees.git_folder(found.common, path)),
        path=str(path),
        folder=str(path / found.below),
        branch=trees.branch_name(plan.agent.name, plan.session),
        base=found.head,
        holder=identity(os.getpid()),
        created_at=clock.rfc3339(clock.now()),
    )


def _taken_up(records: Records, record: Record) -> Record:
    """The worktree of an earlier turn, once more."""
    with locked(records.lock(repository_name(Path(record.common)))):
        now = records.find(record.session)
        if now is None or not Path(now.folder).is_dir():
            raise NotFoundError(
                f"the worktree of this session is gone; its work is on the branch {record.branch}",
                "Start a new session from that branch.",
            )
        if now.running:
            raise UsageError("another run works in this session's worktree", "Wait until it has ended.")
        again = msgspec.structs.replace(now, holder=identity(os.getpid()), handed_back_at=None)
        records.keep(again)
    return again


def repository_name(common: Path) -> str:
    """A short name for a repository, which no other one has."""
    import hashlib

    return hashlib.sha256(os.fsencode(os.path.realpath(common))).hexdigest()[:16]


def records_folder(world: World) -> Path:
    """Where isolated runs are on record."""
    return world.folders.state / "worktrees"
