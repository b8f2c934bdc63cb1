"""Ends every process of a run, even when Remuda itself was killed.

Run as a program (``python -I -S reaper.py MARK``), it reads the run's process group from standard input and
waits. ``done`` means the run was cleaned up; an end of file without it means that Remuda died, and the run's
processes are ended here. Imported,
it lends :func:`sweep` to the module that starts children. Only cheap modules are imported.
"""

import contextlib
import os
import signal
import sys
import time

MARK = "REMUDA_MARK"
"""Environment variable that every process of a run inherits: ids joined by '/', the innermost last."""

GRACE = 2.0
_MOMENTS, _MOMENT, _SURE = 100, 0.002, 3


def _read(pid: str, what: str) -> bytes:
    """A file that tells of a process; nothing where that is gone or somebody else's."""
    try:
        with open(f"/proc/{pid}/{what}", "rb") as stream:  # noqa: PTH123 - pathlib would triple the start time
            return stream.read()
    except OSError:
        return b""


def _environ(pid: str) -> bytes:
    """The environment that a process was started with. One that is becoming another program has none for a
    moment, and would pass for nobody's: it is looked at again, until it has arguments and still none."""
    sure = 0
    for _ in range(_MOMENTS):
        if (found := _read(pid, "environ")) or sure == _SURE or not _has_program(pid):
            return found
        if _read(pid, "cmdline"):
            sure += 1
        else:
            time.sleep(_MOMENT)
    return b""


def _has_program(pid: str) -> bool:
    """Whether a process runs a file, as those of the kernel, and those that end, do not."""
    try:
        os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except OSError:
        return False
    return True


def _marks(pid: str) -> list[bytes]:
    """The marks that a process was started with in its environment."""
    prefix = MARK.encode() + b"="
    for entry in _environ(pid).split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].split(b"/")
    return []


def _carries(pid: str, mark: bytes) -> bool:
    return mark in _marks(pid)


def _running(pid: str) -> bool:
    """Whether a process is more than a zombie waiting for its parent."""
    state = _read(pid, "stat").rpartition(b")")[2].split()[:1]
    return bool(state) and state[0] not in (b"Z", b"X")


def marked(mark: str) -> list[int]:
    """The living processes of a run, this one excepted."""
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return []
    wanted, own = mark.encode(), str(os.getpid())
    return [
        int(pid)
        for pid in os.listdir("/proc")  # noqa: PTH208
        if pid.isdigit() and pid != own and _carries(pid, wanted) and _running(pid)
    ]


def marks() -> set[str]:
    """All marks that living processes carry."""
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return set()
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]  # noqa: PTH208
    return {mark.decode("utf-8", "replace") for pid in pids if _running(pid) for mark in _marks(pid)}


def kill_marked(mark: str, number: int) -> list[int]:
    """Signal every process of a run through a pidfd, so that a recycled pid is never hit."""
    hit = []
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if _carries(str(pid), mark.encode()):
                    signal.pidfd_send_signal(handle, number)
                    hit.append(pid)
            finally:
                os.close(handle)
    return hit


def kill_group(group: int, number: int) -> None:
    """Signal a process group; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def sweep(mark: str, grace: float = GRACE) -> None:
    """TERM, wait, KILL until no process of the run is left."""
    kill_marked(mark, signal.SIGTERM)
    end = time.monotonic() + grace
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.02)
    for _ in range(100):
        if not kill_marked(mark, signal.SIGKILL):
            return
        time.sleep(0.02)


def main() -> None:
    """Wait for the parent's word or its death."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    word = b""
    while True:
        piece = os.read(0, 64)
        if not piece:
            break
        word += piece
    if word.endswith(b"done"):
        return
    if word:
        kill_group(int(word), signal.SIGTERM)
    sweep(sys.argv[1])
    if word:
        kill_group(int(word), signal.SIGKILL)


if __name__ == "__main__":
    main()
    os._exit(0)  # somebody waits for us: no time is spent on tearing the interpreter down
