"""The repository that a folder belongs to, as far as a run of its own worktree needs to know."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core.errors import UsageError
from remuda.worktrees.git import STATUS, Git, GitError, Place

_HINT = "Run it without --isolated, or in a Git repository with a commit."


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as seen from a folder: what all its worktrees share, the commit that is checked out, and
    where below the root the folder is. ``root`` is the bare repository itself where there is no tree."""

    common: Path
    root: Path
    head: str
    below: Path


def repository(environ: Mapping[str, str], folder: Path) -> Repository:
    """The repository around a folder."""
    git = Git(environ, Place(folder))
    try:
        told = git("rev-parse", "--path-format=absolute", "--git-common-dir", "--is-bare-repository")
    except GitError as error:
        raise UsageError(f"{folder} is not in a Git repository ({error.reason})", _HINT) from None
    common, _, bare = told.rpartition("\n")
    head = git.asks("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head is None:
        raise UsageError(f"the repository around {folder} has no commit to start from", _HINT)
    if bare == "true":
        return Repository(common=Path(common), root=Path(common), head=head, below=Path())
    root = git.asks("rev-parse", "--path-format=absolute", "--show-toplevel")
    if not root:
        raise UsageError(f"{folder} is inside a repository's Git folder", "Choose the folder of its files.")
    below = Path(os.path.realpath(folder)).relative_to(os.path.realpath(root))
    return Repository(common=Path(common), root=Path(root), head=head, below=below)


def uncommitted(environ: Mapping[str, str], folder: Path) -> bool:
    """Whether a checkout holds changes that no commit has."""
    told = Git(environ, Place(folder)).asks(*STATUS)
    return bool(told)
