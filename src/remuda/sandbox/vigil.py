"""Looks whether what is held in a sandbox still is.

A file that somebody outside replaces takes along what is mounted on it, and the new one could be changed, or
read, from inside. Then the sandbox ends. Runs without any packages.
"""

import _thread
import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_LOOK = 5000
"""Milliseconds between two looks where nothing is told: a folder that is renamed takes its mounts along
without a word."""

_CHUNK = 1 << 16
_SPELLED = {b"\\": b"\\134", b" ": b"\\040", b"\t": b"\\011", b"\n": b"\\012"}


def keep_watch(first: int, held: "tuple[str, ...]") -> None:
    """Watch over the mounts of a sandbox, whose first process this is, in the background."""
    inside = os.pidfd_open(first)
    _thread.start_new_thread(_watch, (inside, first, {spelled(path): path for path in held}))


def _watch(inside: int, first: int, held: "dict[bytes, str]") -> None:
    """Look at each change; a list that was opened before the walls stood would not show what is in them."""
    seen: set[bytes] = set()
    while True:
        try:
            mounts = os.open(f"/proc/{first}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            there = held.keys() & mounted(mounts)
            if lost := seen - there:
                _end(inside, held[min(lost)])
                return
            seen |= there
            if _changed(mounts, inside):
                return
        finally:
            os.close(mounts)


def _changed(mounts: int, inside: int) -> bool:
    """Wait until there may be something to see; whether that is the end of the sandbox."""
    changes = select.poll()
    changes.register(mounts, select.POLLPRI)
    changes.register(inside, select.POLLIN)
    return any(handle == inside for handle, _ in changes.poll(_LOOK))


def _end(inside: int, where: str) -> None:
    text = f"remuda: {where} was replaced from outside: the sandbox does not hold any more, and was ended\n"
    os.write(2, text.encode(errors="replace"))
    signal.pidfd_send_signal(inside, signal.SIGKILL)


def mounted(handle: int) -> "set[bytes]":
    """Where anything is mounted, as the kernel spells it."""
    text = b""
    while piece := os.read(handle, _CHUNK):
        text += piece
    return {line.split(b" ", 5)[4] for line in text.splitlines()}


def spelled(path: str) -> bytes:
    """A path as the kernel spells it in a list of mounts."""
    return b"".join(_SPELLED.get(each, each) for each in map(_byte, os.fsencode(path)))


def _byte(number: int) -> bytes:
    return bytes((number,))
