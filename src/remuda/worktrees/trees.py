"""Worktrees of isolated runs: made on a branch of their own, handed back as that branch, removed when nothing
would be lost."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from remuda.core.events import Work
from remuda.core.files import private_folder
from remuda.worktrees.git import STATUS, Git, GitError, Place
from remuda.worktrees.records import Record
from remuda.worktrees.repository import Repository

_GITLINK = "160000"


def branch_name(agent: str, session: str) -> str:
    """The branch of a run; an agent's name may hold what a branch's may not."""
    return f"remuda/{re.sub(r'[^a-z0-9_-]+', '-', agent)}/{session}"


def git_folder(common: Path, path: Path) -> Path:
    """Where git keeps what is a worktree's own, for one whose name no other has."""
    return common / "worktrees" / path.name


def add(environ: Mapping[str, str], found: Repository, record: Record) -> None:
    """Make a worktree on a new branch. What a failure left of it is taken back; what was there before is
    not touched."""
    git, path, ref = Git(environ, Place(found.root)), Path(record.path), f"refs/heads/{record.branch}"
    if path.exists() or git.asks("rev-parse", "--verify", "--quiet", ref):
        raise GitError(f"there is a worktree or a branch of this session already: {record.branch}")
    private_folder(path.parent)
    try:
        git("worktree", "add", "--quiet", "--no-track", "-b", record.branch, "--", record.path, record.base)
    except GitError:
        git.asks("worktree", "remove", "--force", "--", record.path)
        git.asks("update-ref", "-d", ref, record.base)
        raise
    path.chmod(0o700)
    Path(record.folder).mkdir(parents=True, exist_ok=True)


def in_tree(environ: Mapping[str, str], record: Record) -> Git:
    """Git in a run's worktree."""
    return Git(environ, Place(Path(record.path), Path(record.git_dir), Path(record.common)))


def dirty(git: Git) -> bool:
    """Whether a worktree holds anything that is not committed: changed, or new."""
    return bool(git(*STATUS))


def commit_all(environ: Mapping[str, str], record: Record) -> str | None:
    """Bring everything that is in a worktree onto its branch, wherever the agent has left its HEAD; what
    could not be taken is told.

    Where the agent went elsewhere, the branch gets both histories, and the files as they are now.
    """
    git = in_tree(environ, record)
    ref = f"refs/heads/{record.branch}"
    with contextlib.suppress(OSError):
        (Path(record.git_dir) / "index.lock").unlink()
    _look_at_all(git, Path(record.path))
    trouble = _added(git)
    tree = git("write-tree")
    tip = git.asks("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    here = git.asks("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or tip or record.base
    new = here if git("rev-parse", f"{here}^{{tree}}") == tree else _commit(git, record, tree, here)
    if tip is not None and git.asks("merge-base", "--is-ancestor", tip, new) is None:
        new = _commit(git, record, tree, tip, new)
    if new != tip:
        git("update-ref", "-m", "remuda: handed back", ref, new, *([tip] if tip else []))
    if git.asks("symbolic-ref", "--quiet", "HEAD") != ref:
        git("symbolic-ref", "-m", "remuda: handed back", "HEAD", ref)
    return trouble


def _look_at_all(git: Git, path: Path) -> None:
    """Have git look at the files that it was told to pass over: as never changed, or, though they are there,
    as no part of the checkout."""
    listed = [(entry[0], entry[2:]) for entry in git("ls-files", "-v", "-z").split("\0") if entry]
    unchanging = [name for tag, name in listed if tag.islower()]
    left_out = [name for tag, name in listed if tag.upper() == "S" and os.path.lexists(path / name)]
    for flag, names in (("assume-unchanged", unchanging), ("skip-worktree", left_out)):
        if names:
            git("update-index", f"--no-{flag}", "-z", "--stdin", stdin=os.fsencode("\0".join(names)))


def _added(git: Git) -> str | None:
    """Put all into the index; where something cannot be, all else, and what git said. Of a repository within
    it is the commit: ``git add`` would look at its files, by its own settings."""
    within = _repositories(git)
    paths = os.fsencode("\0".join((".", *(f":(exclude,literal){name}" for name in within))))
    add = ("add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
    try:
        git(*add, stdin=paths)
        git("update-index", "--remove", "-z", "--stdin", stdin=os.fsencode("\0".join(within)))
    except GitError as error:
        git.asks(*add, "--ignore-errors", stdin=paths)
        return error.reason
    return None


def _repositories(git: Git) -> list[str]:
    """The paths at which a worktree's index has a repository, or a submodule."""
    entries = (entry.partition("\t") for entry in git("ls-files", "--stage", "-z").split("\0"))
    return [name for mode, _, name in entries if mode.startswith(_GITLINK)]


def _commit(git: Git, record: Record, tree: str, *parents: str) -> str:
    message = f"What {record.agent} left uncommitted\n\nRemuda-Session: {record.session}\n"
    given = (part for parent in parents for part in ("-p", parent))
    return git("commit-tree", tree, *given, "-F", "-", stdin=message.encode())


def work_of(environ: Mapping[str, str], record: Record) -> Work:
    """What there is on a run's branch by now."""
    git = Git(environ, Place(Path(record.common)))
    ref = f"refs/heads/{record.branch}"
    commits = git.asks("rev-list", "--count", f"{record.base}..{ref}", "--") or "0"
    numbers = git.asks("diff-tree", "-r", "-z", "--numstat", "--no-renames", record.base, ref, "--") or ""
    counted = [entry.split("\t")[:2] for entry in numbers.split("\0") if "\t" in entry]
    return Work(
        branch=record.branch,
        base=record.base,
        path=record.path,
        commits=int(commits),
        files=len(counted),
        insertions=sum(int(added) for added, _ in counted if added.isdigit()),
        deletions=sum(int(gone) for _, gone in counted if gone.isdigit()),
    )


def has_work(environ: Mapping[str, str], record: Record) -> bool:
    """Whether a run's branch has any commit that its base has not; where git cannot tell, it has."""
    git, ref = Git(environ, Place(Path(record.common))), f"refs/heads/{record.branch}"
    if git.asks("rev-parse", "--verify", "--quiet", ref) is None:
        return False
    return git.asks("merge-base", "--is-ancestor", ref, record.base) is None


def holds_repositories(environ: Mapping[str, str], record: Record) -> bool:
    """Whether there are repositories within a worktree, whose content no commit of it has."""
    path = Path(record.path)
    if not path.is_dir():
        return False
    return any(_filled(path / name) for name in _repositories(in_tree(environ, record)))


def _filled(folder: Path) -> bool:
    return folder.is_dir() and next(folder.iterdir(), None) is not None


def remove(environ: Mapping[str, str], record: Record, *, empty: bool) -> None:
    """Remove a worktree that is clean, which git checks once more; an ``empty`` branch goes with it."""
    git = Git(environ, Place(Path(record.common)))
    if Path(record.path).exists() or Path(record.git_dir).exists():
        git("worktree", "remove", "--", record.path)
    if empty and not git.asks("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{record.branch}"):
        git.asks("update-ref", "-d", f"refs/heads/{record.branch}", record.base)
