"""Finds and reads the policy that holds for a tool call: the user's, and that of the projects around it.

Without a file there is nothing to load, and hooks pay for nothing. A file that cannot be read denies.
"""

from __future__ import annotations

import os
import os.path
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from remuda.core.paths import PROJECT_FILE
from remuda.guard.model import Context, Verdict
from remuda.guard.table import TABLE

if TYPE_CHECKING:
    from remuda.core.guardconfig import GuardConfig
    from remuda.guard.own import Policy

_MOST = 64
"""So many policies are kept; then all are forgotten."""

_UNREADABLE = -1
"""The size of what is no file."""

Stamp = tuple[str, int, int, int]
"""A file at one time: its path, its inode, its size and when it was changed."""


class Loader:
    """Loads policies, and each of them once as long as its files stay as they are. ``file`` is the user's
    configuration."""

    def __init__(self, file: str, home: str | None) -> None:
        self._file = file
        self._home = home
        self._read: dict[Stamp, GuardConfig] = {}
        self._policies: dict[tuple[object, ...], Policy | None] = {}

    def load(self, cwd: str, context: Context) -> Policy | Verdict | None:
        """The policy for a call in a folder; none where nobody has said anything, and a deny where what was
        said cannot be read."""
        root = context.worktree or context.project_root
        own = _stamp(self._file)
        projects = [stamp for stamp in map(_stamp, _project_files(cwd, root)) if stamp]
        if own is None and not projects:
            return None
        start = root or cwd
        nearest = next((stamp[0] for stamp in projects if _around(_folder(stamp[0]), start)), None)
        base = root or _checkout(cwd) or (_folder(nearest) if nearest else cwd)
        key = (own, *projects, base, nearest, context.home)
        if key not in self._policies:
            if len(self._policies) >= _MOST:
                self._policies.clear()
                self._read.clear()
            made = self._made(own, projects, base, nearest, context.home or self._home)
            if isinstance(made, Verdict):
                return made
            self._policies[key] = made
        return self._policies[key]

    def _made(
        self, own: Stamp | None, projects: list[Stamp], base: str, nearest: str | None, home: str | None
    ) -> Policy | Verdict:
        from remuda.core.config import MisreadError
        from remuda.guard.compiling import Ground, compiled, joined

        at_home = home or os.path.expanduser("~")  # noqa: PTH111 - the hook does not load pathlib for this
        policies = []
        for stamp in (own, *reversed(projects)):
            if stamp is None:
                continue
            mine = stamp is own
            try:
                config = self._config(stamp, own=mine)
            except MisreadError as error:
                return misread(f"{stamp[0]}, line {error.line}")
            bases = (_real(base),) if mine else _bases(_folder(stamp[0]), base)
            policy = compiled(config, Ground(stamp[0], bases, _real(at_home), _real, mine))
            policies.append(policy if mine or stamp[0] == nearest else _tightening(policy))
        return joined(policies)

    def _config(self, stamp: Stamp, *, own: bool) -> GuardConfig:
        from remuda.core.config import MisreadError, read_guard

        if stamp[2] == _UNREADABLE:
            raise MisreadError(1)
        if stamp not in self._read:
            self._read[stamp] = read_guard(stamp[0], own=own)
        return self._read[stamp]


def line_of_origin(origin: str) -> int | None:
    """The line of a rule that is named by its file and its place there; None when it cannot be told."""
    from remuda.core.tomlplaces import line_of

    file, _, where = origin.rpartition(": guard.")
    key, _, place = where.rstrip("]").partition("[")
    try:
        with open(file, encoding="utf-8-sig") as stream:  # noqa: PTH123 - the hook does not load pathlib for this
            return line_of(stream.read(), ("guard", key, int(place)))
    except (OSError, ValueError):
        return None


def misread(what: str) -> Verdict:
    """The verdict on everything where a policy cannot be read."""
    row = TABLE["guard.policy"]
    reason = row.reason.format_map({"what": what})
    return Verdict(decision="deny", rule="guard.policy", reason=reason, hint=row.hint)


def _tightening(policy: Policy) -> Policy:
    """What a project says that is not the one the work is in: another's gates and names are not meant here,
    but what it forbids is."""
    from msgspec.structs import replace

    return replace(policy, gates=(), branch_prefix=None)


def _stamp(path: str) -> Stamp | None:
    """A file as it is now. What lies there and is no plain file, or may not be looked at, counts, too."""
    try:
        found = os.stat(path)  # noqa: PTH116 - the hook does not load pathlib for this
    except PermissionError:
        return path, 0, _UNREADABLE, 0
    except (OSError, ValueError):
        return None
    plain = stat.S_ISREG(found.st_mode)
    return path, found.st_ino, found.st_size if plain else _UNREADABLE, found.st_mtime_ns


def _project_files(cwd: str, root: str | None) -> Iterator[str]:
    """The places of projects' files around the folder of a call and around the worktree, nearest first."""
    seen: dict[str, None] = {}
    for start in (cwd, root or cwd):
        folder = start.rstrip("/")
        while folder:
            seen[folder] = None
            folder = folder.rpartition("/")[0]
        seen[""] = None
    for folder in sorted(seen, key=len, reverse=True):
        yield f"{folder}/{PROJECT_FILE}"


def _folder(path: str) -> str:
    return path[: -len(PROJECT_FILE) - 1]


def _around(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _bases(folder: str, base: str) -> tuple[str, ...]:
    """Where relative paths of a project's file are meant: in its folder, and in a checkout further down."""
    below = _around(folder, base)
    return tuple(dict.fromkeys((_real(folder or "/"), _real(base)))) if below else (_real(folder or "/"),)


def _checkout(cwd: str) -> str | None:
    """The checkout that a folder is in."""
    folder = cwd.rstrip("/")
    while folder:
        if os.path.lexists(f"{folder}/.git"):
            return folder
        folder = folder.rpartition("/")[0]
    return None


def _real(path: str) -> str:
    return os.path.realpath(path)
