"""Where the resident process stands: its folder, its lock and its socket, and who holds them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import stat
import time
from pathlib import Path

import msgspec

from remuda.core.errors import RemudaError
from remuda.core.files import private_folder
from remuda.hooks import wire

_PRIVATE = 0o700


class Holder(msgspec.Struct, frozen=True):
    """Who holds the lock, as written into it."""

    pid: int
    version: str
    since: str
    keep: bool


def prepare(folder: Path) -> None:
    """Make sure of a folder that nobody else can enter."""
    private_folder(folder)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RemudaError(f"{folder} is not a folder of yours", "Move it away, or set REMUDA_HOME.")
    if stat.S_IMODE(found.st_mode) != _PRIVATE:
        folder.chmod(_PRIVATE)


def lock(folder: Path) -> int | None:
    """Take the lock for as long as this process lives; None when another one has it."""
    handle = os.open(folder / wire.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for pause in (0.005, 0.02, 0):  # who only looks whether it is held takes it for a moment
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
        else:
            return handle
    os.close(handle)
    return None


def sign(handle: int, holder: Holder) -> None:
    """Write into the lock who holds it."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, msgspec.json.encode(holder), 0)


def held(folder: Path) -> bool:
    """Whether a process holds the lock."""
    try:
        handle = os.open(folder / wire.LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def holder(folder: Path) -> Holder | None:
    """Who holds the lock, if anybody does."""
    if not held(folder):
        return None
    try:
        return msgspec.json.decode((folder / wire.LOCK).read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def listen(folder: Path, backlog: int) -> socket.socket:
    """A socket in the place of whatever is there: who holds the lock may do so."""
    with contextlib.suppress(FileNotFoundError):
        (folder / wire.SOCKET).unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    path, handle = wire.address(str(folder))
    try:
        listener.bind(path)
    finally:
        os.umask(before)
        if handle is not None:
            os.close(handle)
    listener.listen(backlog)
    return listener


def clear(folder: Path) -> None:
    """Take away what a process that has ended left in its folder, and the folder with it."""
    for name in (wire.SOCKET, wire.LOCK):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def indirect(folder: Path) -> bool:
    """Whether the socket's path is too long to be named, so that it is reached through its folder."""
    return len(os.fsencode(folder / wire.SOCKET)) > wire.LONGEST_PATH


def answers(folder: Path) -> bool:
    """Whether somebody listens at the socket."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(1)
    try:
        path, handle = wire.address(str(folder))
        try:
            peer.connect(path)
        finally:
            if handle is not None:
                os.close(handle)
    except OSError:
        return False
    finally:
        peer.close()
    return True


def end(folder: Path, grace: float) -> bool:
    """End the process that holds the lock and wait until it has; whether there was one."""
    found = holder(folder)
    if found is None:
        return False
    try:
        handle = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return _free(folder, grace)
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if holder(folder) == found:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
            if _free(folder, grace):
                return True
    finally:
        os.close(handle)
    raise RemudaError(f"process {found.pid} does not end", "Look at it with ps.")


def _free(folder: Path, seconds: float) -> bool:
    """Wait until nobody holds the lock."""
    end = time.monotonic() + seconds
    while held(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
