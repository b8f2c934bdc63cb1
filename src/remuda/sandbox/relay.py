"""Passes connections on: from a listener inside a sandbox to one target outside, both ways, until both ends
have said all."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

_CHUNK = 64 * 1024
_MOST = 256
"""How many connections there are at a time; more are turned away."""

_EXHAUSTED = 0.1
"""Seconds until it is tried again where this process can have no more files."""

Serve = Callable[[socket.socket], None]
"""Serves one connection and returns when it is over."""


def attend(listeners: "list[socket.socket]", serve: Serve) -> None:
    """Serve whoever connects, in the background, for as long as this process lives."""
    free = threading.Semaphore(_MOST)
    for listener in listeners:
        threading.Thread(target=_accept, args=(listener, serve, free), daemon=True).start()


def _accept(listener: socket.socket, serve: Serve, free: threading.Semaphore) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            if listener.fileno() < 0:
                return
            time.sleep(_EXHAUSTED)
            continue
        if not free.acquire(blocking=False):
            peer.close()
            continue
        try:
            threading.Thread(target=_attended, args=(peer, serve, free), daemon=True).start()
        except RuntimeError:  # there can be no more threads
            peer.close()
            free.release()


def _attended(peer: socket.socket, serve: Serve, free: threading.Semaphore) -> None:
    try:
        with contextlib.suppress(OSError), peer:
            serve(peer)
    finally:
        free.release()


def here(port: int) -> Serve:
    """Passes connections on to a port of this machine's own loopback."""

    def serve(peer: socket.socket) -> None:
        with _loopback(port) as target:
            exchange(peer, target)

    return serve


def _loopback(port: int) -> socket.socket:
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return socket.create_connection(("::1", port))


def exchange(one: socket.socket, other: socket.socket) -> None:
    """Pass on what either says, until both have ended."""
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)
    back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
