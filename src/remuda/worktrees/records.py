"""What is on record of isolated runs: outside their worktrees, in which nothing of ours lies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.core.events import Work
from remuda.core.files import write_atomic
from remuda.core.identity import lives


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An isolated run's worktree. ``repository`` is where its checkout was asked for, ``common`` and
    ``git_dir`` are the Git folders, ``folder`` is where in the worktree the agent works, ``holder`` the
    process that runs it. ``work`` is what was handed back."""

    session: str
    agent: str
    repository: str
    common: str
    git_dir: str
    path: str
    folder: str
    branch: str
    base: str
    holder: str
    created_at: str
    handed_back_at: str | None = None
    work: Work | None = None

    @property
    def running(self) -> bool:
        """Whether somebody works in it at this moment."""
        return self.handed_back_at is None and lives(self.holder)


class Records(msgspec.Struct, frozen=True):
    """A folder of records, a file for each."""

    folder: Path

    def find(self, session: str) -> Record | None:
        """The record of a session."""
        return _read(self._file(session))

    def keep(self, record: Record) -> None:
        """Put a record into its place."""
        write_atomic(self._file(record.session), msgspec.json.encode(record))

    def drop(self, session: str) -> None:
        """Forget a record."""
        self._file(session).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[Record]:
        """All of them, oldest first; what cannot be read is passed over."""
        for path in sorted(self.folder.glob("*.json")):
            if record := _read(path):
                yield record

    def lock(self, name: str) -> Path:
        """The file that is locked while something changes in the repository of this name."""
        return self.folder / f"{name}.lock"

    def _file(self, session: str) -> Path:
        return self.folder / f"{session}.json"


def _read(path: Path) -> Record | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Record)
    return None
