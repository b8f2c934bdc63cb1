"""Watches the loopback interface for attempts to reach anybody else, or to look up a name."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Self

from remuda.operations.verification.enclosure import LOOPBACK

_TCP, _UDP, _DNS = 6, 17, 53
_SYN, _ACK = 0x02, 0x10
_EVERYTHING = 0x0003
_SO_ATTACH_FILTER, _SOL_PACKET, _PACKET_STATISTICS = 26, 263, 6
_SETTLE = 0.2
_SHORT_ONLY = ((0x80, 0, 0, 0), (0x25, 1, 0, 1500), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0))
"""A packet filter: load the length; if it is over 1500, take nothing, else all. Long packets would fill
the queue; the ones that open connections or look up names are short."""


def attempt(packet: bytes) -> str | None:
    """What an IP packet says of an attempt to reach somebody, if it is one."""
    with contextlib.suppress(IndexError, struct.error, ValueError):
        version = packet[0] >> 4
        if version == 4:
            return _tried(packet[9], packet[16:20], packet[(packet[0] & 15) * 4 :])
        if version == 6:
            return _tried(packet[6], packet[24:40], packet[40:])
    return None


def _tried(protocol: int, to: bytes, payload: bytes) -> str | None:
    address = ipaddress.ip_address(to)
    (port,) = struct.unpack_from("!H", payload, 2)
    if protocol == _UDP and port == _DNS:
        return f"looked up {_question(payload[20:])}"
    if address.is_loopback:
        return None
    where = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
    if protocol == _TCP and payload[13] & (_SYN | _ACK) == _SYN:
        return f"tried to connect to {where}"
    return f"sent a datagram to {where}" if protocol == _UDP else None


def _question(labels: bytes) -> str:
    """The name that a DNS request asks for, which begins behind the two headers."""
    parts = []
    while size := labels[0]:
        parts.append(labels[1 : size + 1].decode("ascii", "replace"))
        labels = labels[size + 1 :]
    return ".".join(parts) or "the root"


class Lookout:
    """Notes attempts between entering and leaving its context, and on which occasion each was first made."""

    def __init__(self, occasion: str) -> None:
        self.occasion = occasion

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERYTHING))
        _attach(self._socket)
        self._socket.bind((LOOPBACK, _EVERYTHING))
        self._socket.settimeout(0.1)
        self._attempts: dict[str, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _watch(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                if seen := attempt(self._socket.recv(1500)):
                    self._attempts.setdefault(seen, self.occasion)

    def attempts(self) -> tuple[str, ...]:
        """What was tried so far, each once and in order."""
        time.sleep(_SETTLE)
        return tuple(f"{seen} ({occasion})" for seen, occasion in self._attempts.items())

    def missed(self) -> int:
        """How many packets went by unseen, because there were too many."""
        counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", counts)[1])


def _attach(handle: socket.socket) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in _SHORT_ONLY))
    program = struct.pack("@HP", len(_SHORT_ONLY), ctypes.addressof(code))
    handle.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
