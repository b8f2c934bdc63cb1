"""The Git repository that a working folder is in: what of it an agent needs to commit, and what it must not
change, because programs outside would run it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.sandbox.mounts import Kind, Mount
from remuda.sandbox.profile import UnresolvableError

_LONGEST = 4096
_FIXED = ("config", "config.worktree", "hooks", "modules", "info/attributes", "commondir", "gitdir")
"""What makes Git start programs, or look elsewhere for that; those of submodules are in ``modules``."""

_BLANK = {"config.worktree": "", "commondir": ".\n"}
"""What is put where such a file is missing, for an agent could put it there. It changes nothing."""

_NOBODYS = ("/", "/tmp", "/var/tmp")  # noqa: S108
"""Folders that are no work trees, whoever has put a Git folder into them."""


class Repository(msgspec.Struct, frozen=True):
    """A work tree, its own Git folder, and the one that it shares with others (often the same)."""

    top: Path
    own: Path
    common: Path


def repository_of(cwd: Path) -> Repository | None:
    """The repository around a folder. What its files say is not trusted: a Git folder elsewhere has to name
    this work tree as its own."""
    for top in (cwd, *cwd.parents):
        entry = top / ".git"
        if entry.is_symlink() or not _ours(entry):
            return None
        if entry.is_dir():
            return Repository(top, entry, entry) if (entry / "HEAD").is_file() else None
        if entry.is_file():
            return _linked(top, entry)
    return None


def _ours(entry: Path) -> bool:
    """Whether a Git folder or file can be believed, if it is there."""
    try:
        owner = entry.lstat().st_uid
    except OSError:
        return True
    return str(entry.parent) not in _NOBODYS and owner in (os.geteuid(), 0)


def _linked(top: Path, entry: Path) -> Repository | None:
    """The repository of a linked worktree or of a submodule."""
    said = _said(entry)
    if not said.startswith("gitdir:"):
        return None
    own = (top / said.removeprefix("gitdir:").strip()).resolve()
    if not (own / "HEAD").is_file():
        return None
    back, common = _said(own / "gitdir"), _said(own / "commondir")
    if back and common:
        shared = (own / common).resolve()
        ours = own.parent == shared / "worktrees" and Path(back).resolve() == entry.resolve()
        return Repository(top, own, shared) if ours else None
    return Repository(top, own, own) if _submodule(top.resolve(), own) else None


def _submodule(top: Path, own: Path) -> bool:
    """Whether a Git folder is that of a submodule below the work tree that it belongs to."""
    return any(own.is_relative_to(above / ".git" / "modules") for above in top.parents)


def _said(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_LONGEST).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def repository_mounts(found: Repository, *, writable: bool) -> Iterator[Mount]:
    """The work tree is shown; commits are possible where the folder may be changed, hooks and settings are
    not. Of a shared Git folder, what belongs to other work trees stays as it is."""
    kind: Kind = "rw" if writable else "ro"
    if writable:
        _complete(found)
    yield _at(found.top, "ro")
    yield _at(found.common, kind)
    if found.common != found.top / ".git":
        yield _at(found.top / ".git", "ro")
    if found.own != found.common:
        for name in ("worktrees", "HEAD", "index"):
            if (found.common / name).exists():
                yield msgspec.structs.replace(_at(found.common / name, "ro"), loose=name != "worktrees")
        yield _at(found.own, kind)
    elif (found.common / "worktrees").is_dir():
        yield from (_at(tree, "ro") for tree in (found.common / "worktrees").iterdir() if tree.is_dir())
    for folder in {found.common, found.own}:
        for name in _FIXED:
            if (folder / name).exists():
                yield _at(folder / name, "ro")


def unbelieved_mounts(cwd: Path) -> Iterator[Mount]:
    """What stands for a repository in a folder and is not believed stays what it is: Git, outside, would go
    by whatever an agent put in its place."""
    if os.path.lexists(cwd / ".git"):
        yield _at(cwd / ".git", "ro")


def _complete(found: Repository) -> None:
    """Make what could otherwise be made by an agent."""
    (found.common / "hooks").mkdir(exist_ok=True)
    for folder in {found.common, found.own}:
        for name, text in _BLANK.items():
            if not os.path.lexists(folder / name):
                (folder / name).write_text(text)


def _at(path: Path, kind: Kind) -> Mount:
    if path.is_symlink():
        raise UnresolvableError(
            f"{path} is a link, which an agent could replace by programs of its own",
            "Put what it leads to in its place, or set core.hooksPath.",
        )
    return Mount(str(path), kind, str(path.resolve()))
