"""A place without a network: only loopback is there, and every address leads to it.

A program that tries to reach anybody gets a refusal at once, and the packet shows whom it tried to reach.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from remuda.core.errors import RemudaError

LOOPBACK = "lo"
HINT = (
    "It needs Linux, 'unshare' (util-linux) and the right to make namespaces: be root, or allow unprivileged "
    "user namespaces."
)

_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_UP, _UP_RUNNING = 0x1, 0x41
_NEW_ROUTE, _REQUEST_ACK_CREATE_EXCL = 24, 0x605
_LOCAL_TABLE, _BY_BOOT, _HOST_SCOPE, _LOCAL = 255, 3, 254, 2
_OUTPUT_INTERFACE = 4
_NAME_SERVICES = ("/run/systemd/resolve", "/run/nscd", "/run/dbus")
"""Folders of the sockets by which a program could have another one look up a name for it."""


class EnclosureError(RemudaError):
    """There is no place without a network here; nothing was run."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"cannot verify: {reason}", HINT)


def entrance(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that another command is put behind, to run in namespaces of its own."""
    unshare = shutil.which("unshare", path=environ.get("PATH"))
    if not sys.platform.startswith("linux") or unshare is None:
        raise EnclosureError("there is no 'unshare' here, and agents are never verified with a network")
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    return (unshare, "--net", "--mount", *user)


def place() -> tuple[str, ...]:
    """The namespaces that this process is in."""
    return tuple(str(Path("/proc/self/ns", kind).readlink()) for kind in ("net", "mnt"))


def close(outside: Sequence[str]) -> None:
    """Called inside, given the place outside: only loopback is up, and every address leads there."""
    if set(place()) & set(outside):
        raise EnclosureError("'unshare' made no namespaces, and agents are never verified with a network")
    others = [name for _, name in socket.if_nameindex() if name != LOOPBACK and _flags(name) & _UP]
    if others:
        raise EnclosureError(f"{', '.join(others)} is up, and agents are never verified with a network")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh", LOOPBACK.encode(), _UP_RUNNING))
    _hide_name_services()
    _lead_here(socket.AF_INET)
    if Path("/proc/net/if_inet6").exists():
        _lead_here(socket.AF_INET6)


def _flags(name: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        answer = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
    return int.from_bytes(answer[16:18], sys.byteorder)


def _hide_name_services() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for folder in filter(os.path.isdir, _NAME_SERVICES):
        if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None) != 0:
            raise EnclosureError(f"cannot hide {folder}: {os.strerror(ctypes.get_errno())}")


def _lead_here(family: int) -> None:
    """Add a route that makes every address of a family one of this machine's own."""
    route = struct.pack("=8BI", family, 0, 0, 0, _LOCAL_TABLE, _BY_BOOT, _HOST_SCOPE, _LOCAL, 0)
    route += struct.pack("=HHi", 8, _OUTPUT_INTERFACE, socket.if_nametoindex(LOOPBACK))
    header = struct.pack("=IHHII", 16 + len(route), _NEW_ROUTE, _REQUEST_ACK_CREATE_EXCL, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as netlink:
        netlink.send(header + route)
        (error,) = struct.unpack_from("=i", netlink.recv(4096), 16)
    if error:
        raise EnclosureError(f"cannot catch what leaves for elsewhere: {os.strerror(-error)}")
