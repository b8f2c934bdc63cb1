"""The resident process: answers hooks over a unix socket, so that they need not load the guard themselves.

It loads the guard after it has the lock, so that those that come too late leave early. A verdict is made by
the same function as everywhere else. Who says something else than a hook at the socket is handed over to a
host, which is loaded by the first of them and answers in threads of its own.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Protocol

from remuda import __version__
from remuda.core.clock import now, rfc3339
from remuda.core.config import load_user
from remuda.core.paths import Folders, folders
from remuda.hooks import standing, wire

if TYPE_CHECKING:
    from remuda.hooks.answer import Answer

MOST = 32
"""Connections at a time; who comes on top of them is told to judge itself."""

DEADLINE = 2.25
"""Seconds for a request, from its first byte to its answer; less than a client waits."""

_TICK, _BRIEF = 1.0, 0.05
_BACKLOG = 128
_PACKAGE = Path(__file__).resolve().parent.parent
_CLIENT = str(Path(__file__).with_name("client.py"))
_WATCHED = ("core", "guard", "hooks")
_EVERYTHING = (".",)
_ELSEWHERE = wire.message(wire.ELSEWHERE, b"", b"", b"")


class Code:
    """The code that this process has loaded, or may load yet, as it was when it started."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        files = [each for part in parts for each in (_PACKAGE / part).rglob("*.py")]
        self._known = {str(path): _stamp(str(path)) for path in (_PACKAGE / "__init__.py", *files)}

    def replaced(self) -> bool:
        """Whether any of it has changed since."""
        return any(_stamp(path) != stamp for path, stamp in self._known.items())


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - for a hundred files at every request
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Host(Protocol):
    """Answers what is no hook."""

    def take(self, peer: socket.socket) -> None:
        """Answer a client whose first bytes have not been read yet. Never waits for it."""

    def busy(self) -> bool:
        """Whether something is under way."""

    def close(self) -> None:
        """End what is under way, and take no more."""


class Connection:
    """One client. It gets one answer, from the thread that judges or from the one that watches the time."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._lock = Lock()
        self._over = False
        self._deadline = time.monotonic() + DEADLINE
        self.refusal = b""
        """What is said when the time is up; empty as long as nothing is being judged."""

    def recv(self, size: int) -> bytes:
        """Some bytes, as long as there is time."""
        self._peer.settimeout(max(self._deadline - time.monotonic(), 0.001))
        return self._peer.recv(size)

    def asks(self) -> bool:
        """Whether it begins as a hook's request does; what it says is left to be read."""
        self._peer.settimeout(DEADLINE)
        return self._peer.recv(1, socket.MSG_PEEK) in (b"", wire.MAGIC[:1])

    def detached(self) -> socket.socket:
        """Its socket, for somebody else to answer."""
        with self._lock:
            self._over = True
        self._peer.settimeout(None)
        return self._peer

    def end(self, message: bytes) -> bool:
        """Answer and hang up, or without a message only hang up; whether nobody had done so before."""
        with self._lock:
            if self._over:
                return False
            self._over = True
        with contextlib.suppress(OSError), self._peer:
            if message:
                self._peer.settimeout(DEADLINE)
                self._peer.sendall(message)
        return True

    def overdue(self) -> bool:
        """Whether judging has taken too long; the client is denied then."""
        return bool(self.refusal) and time.monotonic() > self._deadline and self.end(self.refusal)


class Server:
    """Accepts clients until it is idle, told to end, or no longer what is installed. Made before the guard is
    loaded, it sees every change of that since."""

    def __init__(self, folder: Path, idle: float | None, hosting: Callable[[], Host] | None = None) -> None:
        self._folder, self._idle = folder, idle
        self._socket = str(folder / wire.SOCKET)
        self._code = Code(_WATCHED)
        self._clients: set[Connection] = set()
        self._others = Others(hosting)
        self._ending = False
        self._woken, self._alarm = os.pipe()
        os.set_blocking(self._alarm, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._end())

    def run(self, ready: Callable[[], None]) -> None:
        """Serve, and finish what has been begun."""
        self._quiet = time.monotonic()
        with standing.listen(self._folder, _BACKLOG) as listener:
            self._stamp = _stamp(self._socket)
            ready()
            while not self._over():
                coming, _, _ = select.select([listener.fileno(), self._woken], [], [], self._pause())
                if listener.fileno() in coming:
                    self._accept(listener)
                elif not self._clients and (self._code.replaced() or self._others.replaced()):
                    self._end()
                self._watch()
            if _stamp(self._socket) == self._stamp:
                os.unlink(self._socket)  # noqa: PTH108
        self._others.close()
        last = time.monotonic() + DEADLINE
        while self._clients and time.monotonic() < last:
            time.sleep(_BRIEF)
            self._watch()

    def _end(self) -> None:
        self._ending = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._alarm, b"!")

    def _pause(self) -> float:
        if self._clients:
            return _BRIEF
        left = _TICK if self._idle is None else self._quiet + self._idle - time.monotonic()
        return min(max(left, 0), _TICK)

    def _over(self) -> bool:
        if self._clients or self._others.busy():
            self._quiet = time.monotonic()
        idle = self._idle is not None and time.monotonic() - self._quiet >= self._idle
        return self._ending or idle or _stamp(self._socket) != self._stamp

    def _watch(self) -> None:
        """Deny whom a verdict does not reach in time. A thread that hangs cannot be ended, a process can."""
        if [client for client in [*self._clients] if client.overdue()]:
            self._end()

    def _accept(self, listener: socket.socket) -> None:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        self._quiet = time.monotonic()
        client = Connection(peer)
        if _user(peer) != os.geteuid():
            client.end(b"")
        elif len(self._clients) >= MOST:
            client.end(_ELSEWHERE)
        else:
            self._clients.add(client)
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: Connection) -> None:
        """Answer a client; one that says what nobody understands is left without an answer."""
        said = b""
        try:
            if not client.asks():
                self._others.take(client.detached(), lambda: self._clients.discard(client))
                return
            said = self._said(client, wire.receive(client.recv, wire.REQUEST))
        except (OSError, wire.BrokenError):
            pass
        finally:
            client.end(said)
            self._clients.discard(client)

    def _said(self, client: Connection, fields: list[bytes]) -> bytes:
        from remuda.hooks.program import Request, late, respond

        installation, event, dialect, runtime, cwd = map(wire.decoded, fields[:5])
        if _stamp(installation) != _stamp(_CLIENT):
            return _ELSEWHERE
        if self._code.replaced():
            self._end()
            return wire.message(wire.ANEW, b"", b"", b"")
        request = Request(event, dialect, runtime, cwd)
        if request.of_session:
            return _ELSEWHERE
        client.refusal = _message(late(request))
        return _message(respond(request, lambda: fields[6], wire.unpacked(fields[wire.ENVIRONMENT])))


class Others:
    """Those who ask for something else than a verdict. They hold no place among the clients, and the first of
    them loads who answers them."""

    def __init__(self, hosting: Callable[[], Host] | None) -> None:
        self._hosting = hosting
        self._host: Host | None = None
        self._code: Code | None = None
        self._lock = Lock()
        self._coming: set[socket.socket] = set()

    def take(self, peer: socket.socket, leave: Callable[[], None]) -> None:
        """Hand one over. ``leave`` is called before anything is waited for."""
        self._coming.add(peer)
        leave()
        try:
            self._loaded().take(peer)
        except Exception:
            peer.close()
        finally:
            self._coming.discard(peer)

    def _loaded(self) -> Host:
        with self._lock:
            if self._host is None:
                if self._hosting is None:
                    raise wire.BrokenError
                self._code = Code(_EVERYTHING)
                self._host = self._hosting()
            return self._host

    def busy(self) -> bool:
        """Whether any of them is being answered."""
        return bool(self._coming) or (self._host is not None and self._host.busy())

    def replaced(self) -> bool:
        """Whether any code has changed since they began to need more of it than hooks do."""
        return self._code is not None and self._code.replaced()

    def close(self) -> None:
        """Answer nobody any more."""
        self._hosting = None
        if self._host is not None:
            self._host.close()


def _message(given: Answer) -> bytes:
    return wire.message(wire.ANSWERED, bytes([given.code]), given.stdout, given.stderr.encode())


def _user(peer: socket.socket) -> int:
    """The user whose process is at the other end."""
    known = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user: int = struct.unpack("3i", known)[1]
    return user


def serve(
    where: Folders,
    *,
    idle: float | None,
    ready: Callable[[], None] = lambda: None,
    hosting: Callable[[], Host] | None = None,
) -> bool:
    """Be the resident process until there is nothing more to do; False when there is one already. Without an
    ``idle`` time in seconds it stays. ``hosting`` loads who answers what is no hook, when it is needed."""
    standing.prepare(where.runtime)
    handle = standing.lock(where.runtime)
    if handle is None:
        return False
    standing.sign(handle, standing.Holder(os.getpid(), __version__, rfc3339(now()), idle is None))
    server = Server(where.runtime, idle, hosting)
    _load()
    server.run(ready)
    return True  # the lock stays until the process has ended: whoever waits for the one waits for the other


def _load() -> None:
    """Load what most verdicts need, by reaching one."""
    from remuda.guard.model import Context
    from remuda.guard.tools import ToolCall
    from remuda.hooks import program
    from remuda.hooks.judging import verdict_on

    assert program
    verdict_on(ToolCall("Bash", {"command": "git status"}, "/"), Context())


def main(hosting: Callable[[], Host] | None = None) -> None:
    """Be started on demand: without a terminal, a folder, or anybody who listens."""
    try:
        os.umask(0o077)
        os.chdir("/")
        where = folders(os.environ)
        serve(where, idle=load_user(where.config_file).serve.idle, hosting=hosting)
    finally:
        os._exit(0)
