"""The launcher context: the file in a repository that says which agent was launched there last.

It outlives environments that tmux or a detached process drop. Its readers trust nothing about it: a file that
is odd in any way is passed over, with its reason, and the next folder upwards is asked.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import msgspec

from remuda.core.clock import rfc3339_seconds
from remuda.core.errors import RefusedError, RemudaError
from remuda.core.files import PRIVATE, write_atomic
from remuda.dispatch.names import Rejected, check_name

PLACE = Path(".claude/runtime/launcher_context.json")
MAX_FOLDERS = 32
MAX_BYTES = 64 * 1024
MAX_AGE = 24 * 60 * 60
MAX_NESTING = 64

_MAX_GIT_FILE = 4096
_BOM = b"\xef\xbb\xbf"
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|([\[{])|([\]}])', re.DOTALL)
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.[0-9]+)?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


class LauncherContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is written; of these, only ``launcher`` and ``started_at`` are ever read back."""

    launcher: str
    session_id: str
    cwd: str
    started_at: str
    amplihack_version: str
    remuda_version: str


class Candidate(msgspec.Struct, frozen=True):
    """A context file that was found: the agent it names, or why it cannot be used."""

    path: Path
    verdict: str | Rejected


class Content(msgspec.Struct, frozen=True):
    """A context file's bytes and when they were written."""

    data: bytes
    mtime: float


def candidates(cwd: Path, names: Collection[str], now: float) -> Iterator[Candidate]:
    """The context files that count for a folder, nearest first, up to the first that can be used."""
    for folder in _folders(cwd):
        path = folder / PLACE
        content = _read(path, folder)
        if content is None:
            continue
        verdict = content if isinstance(content, Rejected) else judge(content, names, now)
        yield Candidate(path, verdict)
        if isinstance(verdict, str):
            return


def judge(content: Content, names: Collection[str], now: float) -> str | Rejected:
    """Decide what a context file says. Pure, and total: no bytes make it raise."""
    if now - content.mtime >= MAX_AGE:
        return Rejected("stale")
    fields = _parse(content.data)
    if isinstance(fields, Rejected):
        return fields
    launcher = fields.get("launcher")
    if not isinstance(launcher, str):
        return Rejected("no_launcher")
    if "started_at" in fields:
        started = _epoch(fields["started_at"])
        if started is None:
            return Rejected("unknown_age")
        if now - started >= MAX_AGE:
            return Rejected("stale")
    return check_name(launcher, names) or Rejected("no_launcher")


def _parse(data: bytes) -> dict[str, object] | Rejected:
    """A JSON object without duplicate keys; objects inside it stay unread."""
    if data.startswith(_BOM):
        return Rejected("byte_order_mark")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Rejected("not_utf8")
    if _nesting(text) > MAX_NESTING:
        return Rejected("nested_too_deeply")
    try:
        # Objects become tuples of pairs, which show duplicates; numbers stay text, whatever their length.
        document: object = json.loads(
            text, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=_no_constant
        )
    except ValueError:
        return Rejected("bad_json")
    if not isinstance(document, tuple):
        return Rejected("not_an_object")
    fields = dict(document)
    return fields if len(fields) == len(document) else Rejected("duplicate_key")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _nesting(text: str) -> int:
    """How deep the brackets go; known before the parser runs, whose recursion it bounds."""
    level = deepest = 0
    for token in _BRACKET.finditer(text):
        level += bool(token[1]) - bool(token[2])
        deepest = max(deepest, level)
    return deepest


def _epoch(value: object) -> float | None:
    """The second an RFC 3339 timestamp names."""
    match = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    try:
        return datetime.fromisoformat((match[1] + match[2]).upper()).timestamp() if match else None
    except ValueError:
        return None


def _folders(cwd: Path) -> Iterator[Path]:
    """A folder and those above it, to the repository's root; behind a linked worktree its main checkout."""
    try:
        start = cwd.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return
    for folder in (start, *start.parents)[:MAX_FOLDERS]:
        yield folder
        mode = _mode(folder / ".git")
        if mode is not None:
            main = _main_checkout(folder) if stat.S_ISREG(mode) else None
            if main is not None:
                yield main
            return


def _main_checkout(worktree: Path) -> Path | None:
    """The checkout that a linked worktree belongs to; None for a submodule or a bare repository."""
    link = _git_file(worktree / ".git")
    if link is None or not link.startswith("gitdir: "):
        return None
    gitdir = worktree / link.removeprefix("gitdir: ")
    common = _git_file(gitdir / "commondir")
    if common is None:
        return None
    try:
        repository = (gitdir / common).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return repository.parent if repository.name == ".git" and repository.is_dir() else None


def _git_file(path: Path) -> str | None:
    """The one line of a small file of git's."""
    content = read_regular(path, _MAX_GIT_FILE)
    if isinstance(content, Content) and b"\0" not in content.data:
        return os.fsdecode(content.data.removesuffix(b"\n"))
    return None


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _read(path: Path, folder: Path) -> Content | Rejected | None:
    """A context file that truly lies in its folder; None when there is none."""
    try:
        real = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError):
        return Rejected("unreadable")
    if not real.is_relative_to(folder):
        return Rejected("symlink_escape")
    return read_regular(real, MAX_BYTES)


def read_regular(path: Path, limit: int) -> Content | Rejected | None:
    """Read a regular file of bounded size, without ever waiting on a pipe; None when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return Rejected("unreadable")
    try:
        return _content(handle, limit)
    except OSError:
        return Rejected("unreadable")
    finally:
        os.close(handle)


def _content(handle: int, limit: int) -> Content | Rejected:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return Rejected("not_a_regular_file")
    with os.fdopen(handle, "rb", closefd=False) as stream:
        data = stream.read(limit + 1)
    return Content(data, status.st_mtime) if len(data) <= limit else Rejected("too_large")


def repo_root(cwd: Path) -> Path:
    """The nearest folder upwards that has a ``.git``, or the folder itself."""
    start = cwd.resolve()
    return next((f for f in (start, *start.parents) if _mode(f / ".git") is not None), start)


def persist(root: Path, launcher: str, session_id: str, cwd: Path, now: float, version: str) -> Path:
    """Write down which agent was launched; refused when a symlink leads the file out of the repository."""
    path = _inside(root)
    context = LauncherContext(
        launcher=launcher,
        session_id=session_id,
        cwd=path_text(cwd),
        started_at=rfc3339_seconds(now),
        amplihack_version=version,
        remuda_version=version,
    )
    document = msgspec.json.format(msgspec.json.encode(context), indent=2) + b"\n"
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(path, document, PRIVATE)
    except OSError as error:
        raise RemudaError(
            f"cannot write {path_text(path)}: {error.strerror or 'unknown error'}",
            "Check the folder's permissions; without the file the agent is still found by the environment.",
        ) from None
    return path


def _inside(root: Path) -> Path:
    """Where a repository's context file truly lies, as long as that is in the repository."""
    base = root.resolve()
    try:
        path = (base / PLACE).resolve()
    except (OSError, RuntimeError):
        path = None
    if path is None or not path.is_relative_to(base):
        raise RefusedError(
            f"{path_text(base / PLACE)} leads out of its repository",
            "Replace the symlink among .claude, runtime and launcher_context.json by a plain folder or file.",
        )
    return path


def path_text(path: Path) -> str:
    """A path as text that any encoder takes, also when its bytes are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")
