"""Lets hook programs inside a sandbox ask the resident process outside, and lets nothing else through.

The resident process does more than to judge at the same socket; whoever does not ask as hooks do is turned
away. It judges by the settings that an environment leads to, and those may name programs: so that is the one
which the agent was started with, whatever is said inside.
"""

import os
import socket

from remuda.hooks import wire
from remuda.sandbox.relay import attend, exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 5.0


def attend_hooks(place: str, resident: str) -> None:
    """Listen at a place for hook programs, and pass on what they ask."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        _at(place, listener.bind)
    finally:
        os.umask(before)
    listener.listen(64)
    environment = wire.packed(os.environ)

    def serve(peer: socket.socket) -> None:
        peer.settimeout(_PATIENCE)
        try:
            asked = wire.receive(peer.recv, wire.REQUEST)
        except wire.BrokenError:
            return
        asked[wire.ENVIRONMENT] = environment
        peer.settimeout(None)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as target:
            _at(resident, target.connect)
            target.sendall(wire.message(*asked))
            exchange(peer, target)

    attend([listener], serve)


def _at(place: str, act: "Callable[[str], object]") -> None:
    """Do something with a path that may be too long for a socket's address: then by way of its folder."""
    if len(os.fsencode(place)) <= wire.LONGEST_PATH:
        act(place)
        return
    folder, _, name = place.rpartition("/")
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        act(f"/proc/self/fd/{handle}/{name}")
    finally:
        os.close(handle)
