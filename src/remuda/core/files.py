"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from remuda.core.ids import ulid

PRIVATE = 0o600
_LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def private_folder(path: Path) -> Path:
    """Make sure of a folder; it and its parents, where they are new, may be entered by their owner only."""
    if not path.is_dir():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def write_new(path: Path, data: bytes, mode: int = PRIVATE) -> Path:
    """Create a file that was not there, with this mode whatever the umask, and make it durable."""
    with os.fdopen(os.open(path, _CREATE, PRIVATE), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    return path


def read_left(path: Path, most: int) -> bytes | None:
    """What somebody may have left in a file, up to so many bytes; nothing where it is no file, but a link or
    something that keeps its readers waiting."""
    try:
        with os.fdopen(os.open(path, _LOOK), "rb") as stream:
            return stream.read(most) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else None
    except OSError:
        return None


def write_atomic(path: Path, data: bytes, mode: int | None = None) -> None:
    """Replace a file's content by temp file, fsync and rename.

    A symlink stays a symlink and its target is replaced. An existing file keeps its mode unless ``mode`` is
    given; a new one is private.
    """
    target = Path(os.path.realpath(path))
    private_folder(target.parent)
    with contextlib.suppress(FileNotFoundError):
        mode = mode if mode is not None else stat.S_IMODE(target.stat().st_mode)
    beside = target.with_name(f".{target.name}.{ulid()}")
    try:
        write_new(beside, data, PRIVATE if mode is None else mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the file system can."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def append_line(path: Path, line: bytes) -> None:
    """Append one line to a private file in a single write, so that writers do not interleave."""
    private_folder(path.parent)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    try:
        os.write(handle, line.rstrip(b"\n") + b"\n")
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time is in such a block; the lock is a private file that stays."""
    import fcntl

    private_folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
