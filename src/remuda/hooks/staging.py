"""Hook programs as files: where they lie, how they get there, and what is said when one is missing."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Collection
from pathlib import Path
from textwrap import fill

from remuda.core.errors import NotFoundError, RefusedError
from remuda.core.files import private_folder, write_atomic
from remuda.hooks.answer import Dialect
from remuda.hooks.events import FILES, Event
from remuda.hooks.wrapper import Call, script

_PROGRAM = 0o700
_UNBROKEN = "\0"
_FIRST = ("claude", "copilot", "codex", "amplifier")


class MissingHookError(NotFoundError):
    """A runtime has no hook program for an event. No other runtime's takes its place."""

    def __init__(self, binary: str, event: Event, expected_path: Path, known: Collection[str]) -> None:
        self.binary, self.event, self.expected_path = binary, event, expected_path
        self.remediation = _remediation(known)
        super().__init__(
            f"No {event} hook registered for active agent binary '{binary}'.\nExpected at: {expected_path}",
            self.remediation,
        )


def _remediation(known: Collection[str]) -> str:
    """What to do, in lines of a terminal's width; a command is never broken."""
    names = [*(name for name in _FIRST if name in known), *sorted({*known} - {*_FIRST})]
    choices = " / ".join(f"'remuda{_UNBROKEN}{name}'" for name in names)
    text = (
        "To fix: install the hook at the expected path, switch binaries by re-launching with one of: "
        f"{choices}, or set REMUDA_AGENT_BINARY explicitly for a single invocation."
    )
    return fill(text, width=79, break_on_hyphens=False).replace(_UNBROKEN, " ")


def hooks_folder(home: Path) -> Path:
    """The folder of all hook programs, below Remuda's data folder."""
    return home / "hooks"


def expected_path(home: Path, binary: str, event: Event, known: Collection[str]) -> Path:
    """Where a hook program has to be; a name that is no runtime's never becomes a part of a path."""
    if binary not in known:
        raise NotFoundError("there is no such agent binary", f"There are: {', '.join(sorted(known))}.")
    path = hooks_folder(home) / binary / FILES[event]
    if not path.resolve().is_relative_to(hooks_folder(home).resolve()):
        raise RefusedError(
            f"the {event} hook of '{binary}' lies outside Remuda's hooks folder: {path}",
            "Remove the symbolic link on the way there, then install the hook again.",
        )
    return path


def hook_path(home: Path, binary: str, event: Event, known: Collection[str]) -> Path:
    """The hook program of a runtime for an event, which is there."""
    path = expected_path(home, binary, event, known)
    if not path.is_file():
        raise MissingHookError(binary, event, path, known)
    return path.resolve()


def stage(home: Path, binary: str, dialect: Dialect, known: Collection[str]) -> dict[Event, Path]:
    """Put the programs of a runtime in their places, for every event; those that are right already stay."""
    paths = {event: expected_path(home, binary, event, known) for event in FILES}
    for event, path in paths.items():
        text = script(Call(runtime=binary, event=event, dialect=dialect)).encode()
        private_folder(path.parent)
        if path.is_symlink() or not _holds(path, text):
            path.unlink(missing_ok=True)
            write_atomic(path, text, _PROGRAM)
    return paths


def _holds(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes() == text and stat.S_IMODE(path.stat().st_mode) == _PROGRAM
    except OSError:
        return False


def unstage(home: Path, binary: str, known: Collection[str]) -> None:
    """Take the programs of a runtime away, and their folders where nothing else is left in them."""
    paths = [expected_path(home, binary, event, known) for event in FILES]
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in (paths[0].parent, hooks_folder(home)):
        with contextlib.suppress(OSError):
            folder.rmdir()
