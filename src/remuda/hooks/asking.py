"""The hook's client: asks the resident process and, where that does not answer, judges in this one.

Only what is built in is imported until then, for a hook runs before every tool call of an agent.
"""

import posix
import sys
import time

from remuda.hooks import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import NoReturn
else:
    import _signal as signal

SECONDS = 5
"""How long a hook may take; less than any CLI waits, for most of them run the tool when a hook is late."""

PATIENCE = 2.5
"""How long the resident process may take; the rest is for a verdict of our own."""

DENIED = 2
ENDINGS = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CREDENTIALS = 12
"""The size of what the system says about a peer: process, user, group."""


def parse(arguments: "Sequence[str]") -> tuple[str, str | None, str, str]:
    """Event, payload, dialect and runtime in ``EVENT [JSON] [--dialect NAME] [--runtime NAME]``. What cannot
    be understood is for no event."""
    places: list[str] = []
    options = {"--dialect": "claude", "--runtime": ""}
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.partition("=")
        if name in options:
            options[name] = value if equals else next(rest, "?")
        elif each.startswith("-"):
            return "", None, "claude", ""
        else:
            places.append(each)
    if not 1 <= len(places) <= 2:
        return "", None, "claude", ""
    return places[0], places[1] if len(places) > 1 else None, options["--dialect"], options["--runtime"]


def answer(arguments: "Sequence[str]", installation: str) -> "NoReturn":
    """Answer on standard output and standard error, in time, and leave."""
    event, given, dialect, runtime = parse(arguments)

    def give_up(_number: int, _frame: "FrameType | None") -> None:
        """Have the program say that it is too late, at the latest in a second."""
        signal.signal(signal.SIGALRM, lambda *_: posix._exit(DENIED))
        signal.alarm(1)
        complete()
        from remuda.hooks.program import Request, stop

        stop(Request(event, dialect, runtime))

    for each in ENDINGS:
        signal.signal(each, give_up)
    signal.alarm(SECONDS)
    environ = {wire.decoded(name): wire.decoded(value) for name, value in posix.environ.items()}
    payload, here = received(given), folder()
    asked = [wire.encoded(each) for each in (installation, event, dialect, runtime, here)]
    said = _told(environ, wire.message(*asked, wire.packed(environ), payload))
    if said and said[0] == wire.ANSWERED:
        put(1, said[2])
        put(2, said[3])
        posix._exit(said[1][0])
    complete()
    from remuda.hooks.program import Request, run
    from remuda.hooks.starting import start

    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    code = run(Request(event, dialect, runtime, here), lambda: payload, left)
    if not said or said[0] == wire.ANEW:
        start(environ)
    posix._exit(code)


def complete() -> None:
    """Make of this an interpreter that finds installed packages, and load the guard's foundations."""
    import gc

    gc.set_threshold(100_000)  # loading makes no garbage
    if "site" not in sys.modules:
        import site

        site.main()
    from remuda.core import foundations

    foundations.load()


def received(given: str | None) -> bytes:
    """The payload: the argument, or else standard input up to a byte more than is understood."""
    if given is not None:
        return wire.encoded(given)
    pieces, size = [], 0
    try:
        while size <= wire.LARGEST and (piece := posix.read(0, min(1 << 18, wire.LARGEST + 1 - size))):
            pieces.append(piece)
            size += len(piece)
    except OSError:
        return b""
    return b"".join(pieces)


def folder() -> str:
    """The working folder; empty when there is none any more."""
    try:
        return posix.getcwd()
    except OSError:
        return ""


def put(handle: int, data: bytes) -> bool:
    """Write as far as anybody reads it, and whether that was all; the exit code holds in any case."""
    try:
        while data:
            data = data[posix.write(handle, data) :]
    except OSError:
        return False
    return True


def _told(environ: "Mapping[str, str]", message: bytes) -> list[bytes] | None:
    """What the resident process says to a message; None where there is none, or where it makes no sense."""
    place = wire.runtime_folder(environ) if wire.engine(environ) == "auto" else None
    if place is None or len(message) > wire.MOST:
        return None
    try:
        said = _exchanged(place, message)
    except (OSError, wire.BrokenError):
        return None
    return said if said[0] != wire.ANSWERED or len(said[1]) == 1 else None


def _exchanged(place: str, message: bytes) -> list[bytes]:
    """Send a message and wait for the answer to it, from a process of the same user only."""
    import _socket

    end = time.monotonic() + PATIENCE
    peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)

    def recv(size: int) -> bytes:
        peer.settimeout(max(end - time.monotonic(), 0.001))
        return peer.recv(size)

    path, handle = wire.address(place)
    try:
        peer.settimeout(PATIENCE)
        peer.connect(path)
        known = peer.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS)
        if int.from_bytes(known[4:8], sys.byteorder) != posix.geteuid():
            raise wire.BrokenError
        peer.sendall(message)
        return wire.receive(recv, wire.ANSWER)
    finally:
        peer.close()
        if handle is not None:
            posix.close(handle)
