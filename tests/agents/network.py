"""Agent CLIs must not reach anybody: tells whether this process has a network."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys

_SIOCGIFFLAGS = 0x8913
_IFF_UP = 0x1


def interfaces_up() -> list[str]:
    """The network interfaces that are up, other than loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:

        def flags(name: str) -> int:
            answer = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
            return int.from_bytes(answer[16:18], sys.byteorder)

        return [name for _, name in socket.if_nameindex() if name != "lo" and flags(name) & _IFF_UP]


def objection() -> str | None:
    """Why agent CLIs must not be run here, if that is so."""
    up = interfaces_up()
    if not up:
        return None
    return (
        f"agent CLIs must not run with a network here ({', '.join(up)} is up): use the make targets, "
        "or put 'python tools/loopback.py' in front of the command"
    )
