"""Sockets in the network of a sandbox, held by a process outside of it.

A socket belongs to the network in which it was made. So a helper enters the sandbox's own, listens there, and
hands what it made to us; nothing of ours runs inside.
"""

import array
import ctypes
import fcntl
import os
import socket
import time

_USER, _NET = 0x10000000, 0x40000000
_OWNER = 0xB701
"""Asks for the user namespace that a namespace belongs to."""

_PATIENCE = 5.0
_BACKLOG = 128
_PLACES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


class Outpost:
    """The helper in a sandbox's network, which listens at ports there."""

    def __init__(self, pid: int) -> None:
        self._peer, theirs = socket.socketpair()
        self._helper = os.fork()
        if self._helper == 0:
            self._peer.close()
            _serve(theirs, pid)
        theirs.close()

    def listen(self, port: int) -> list[socket.socket]:
        """Listeners at a port of the sandbox's loopback; none where it is taken."""
        self._peer.sendall(port.to_bytes(2, "big"))
        said, handles, _, _ = socket.recv_fds(self._peer, 1, len(_PLACES))
        if not said:
            raise OSError("the sandbox's network cannot be entered")
        return [socket.socket(fileno=handle) for handle in handles]

    def close(self) -> None:
        """No more ports."""
        self._peer.close()
        os.waitpid(self._helper, 0)


def _serve(peer: socket.socket, pid: int) -> None:
    """The helper's life: ports in, listeners out, until nobody asks any more."""
    try:
        _enter(pid)
        while port := peer.recv(2):
            made = _listeners(int.from_bytes(port, "big"))
            if made:
                socket.send_fds(peer, [b"!"], [each.fileno() for each in made])
            else:
                peer.sendall(b"?")
            for each in made:
                each.close()
    finally:
        os._exit(0)


def _enter(pid: int) -> None:
    """Go into the network of a process, by way of the user namespace that it belongs to."""
    libc = ctypes.CDLL(None, use_errno=True)
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(network, _OWNER)
    if os.fstat(owner).st_ino != os.stat("/proc/self/ns/user").st_ino:  # noqa: PTH116 - no pathlib here
        _join(libc, owner, _USER)
    _join(libc, network, _NET)


def _join(libc: ctypes.CDLL, handle: int, kind: int) -> None:
    if libc.setns(handle, kind) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter a namespace")


def _listeners(port: int) -> list[socket.socket]:
    """Sockets at a port, as soon as the loopback interface is up."""
    made: list[socket.socket] = []
    end = time.monotonic() + _PATIENCE
    while not (made := [each for place in _PLACES if (each := _listener(*place, port))]):
        if time.monotonic() > end or not _coming_up():
            break
        time.sleep(0.001)
    return made


def _listener(family: socket.AddressFamily, address: str, port: int) -> socket.socket | None:
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        return None
    return made


def _coming_up() -> bool:
    """Whether the loopback interface is still down."""
    flags = array.array("B", b"lo".ljust(16, b"\0") + bytes(24))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, 0x8913, flags, True)
    return not flags[16] & 1
