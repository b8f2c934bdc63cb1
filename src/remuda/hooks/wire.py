"""What the hook's client and the resident process say to each other, and where they meet.

Nothing is imported here but what is built in: the client's time is mostly that of its imports. A message is
``RMD1``, four bytes of length, and as many bytes of fields, each of which has four bytes of length in front
of it; all numbers are big-endian.

A request: the installation that asks (the path of its client), the event, the dialect, the runtime, the
working folder, the environment (``NAME=VALUE``, NUL between them), the payload.

An answer: a status and, where that is ``ANSWERED``, the exit code in one byte, standard output and standard
error.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAGIC = b"RMD1"
"""How a message of this protocol begins; whatever begins otherwise on the same socket is another one."""

LARGEST = 4 * 1024 * 1024
"""The longest payload that is read at all, in bytes."""

MOST = LARGEST + 1024 * 1024
"""The longest message: a payload with everything around it."""

ANSWERED, ELSEWHERE, ANEW = b"A", b"E", b"N"
"""Statuses: answered; judge it yourself; judge it yourself, and start another resident process."""

REQUEST, ANSWER = 7, 4
"""How many fields they have."""

ENVIRONMENT = 5
"""Which field of a request that is."""

SOCKET, LOCK = "serve.sock", "serve.lock"
LONGEST_PATH = 107
"""The longest path that fits into the address of a unix socket, in bytes."""

ASKER = ("REMUDA_CAPABILITY", "REMUDA_WORKTREE", "REMUDA_PROJECT_ROOT", "REMUDA_BRANCH_PREFIX")
"""The variables that tell of an agent what it is there for, and where."""

CARRIED = (
    *ASKER,
    *("HOME", "REMUDA_HOME"),
    *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    *("PATH", "USER", "LOGNAME", "LANG", "TMPDIR"),
)
"""The variables that a verdict, its record, or another judge may depend on. Nothing else travels."""

ENGINES = ("REMUDA_HOOK_ENGINE", "AMPLIHACK_HOOK_ENGINE")
"""The variables that choose who judges; the first that is set counts."""


class BrokenError(Exception):
    """What came is not a message."""


def carried(environ: "Mapping[str, str]") -> dict[str, str]:
    """The part of an environment that travels."""
    return {name: environ[name] for name in CARRIED if name in environ}


def engine(environ: "Mapping[str, str]") -> str:
    """Who is to judge: ``auto``, the resident process where there is one; ``python``, this process alone.
    There is no engine in Rust here: who asks for the fast one gets ``auto``."""
    chosen = next((environ[name] for name in ENGINES if environ.get(name)), "auto").lower()
    return "auto" if chosen == "rust" else chosen


def runtime_folder(environ: "Mapping[str, str]") -> str | None:
    """The folder that ``core.paths`` calls the runtime folder; None where finding it takes more than this."""
    if override := environ.get("REMUDA_HOME"):
        return f"{override}/runtime" if override.startswith("/") else None
    base = environ.get("XDG_RUNTIME_DIR", "")
    if not base.startswith("/"):
        state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
        if not state.startswith("/"):
            if not home.startswith("/"):
                return None
            state = f"{home}/.local/state"
        base = f"{state}/remuda/run"
    return f"{base}/remuda"


def address(folder: str) -> tuple[str, int | None]:
    """How to name the socket of a folder: by its path or, where that is too long for a unix socket, through a
    handle of the folder, which is to be closed afterwards."""
    path = f"{folder}/{SOCKET}"
    if len(encoded(path)) <= LONGEST_PATH:
        return path, None
    handle = posix.open(folder, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    return f"/proc/self/fd/{handle}/{SOCKET}", handle


def encoded(text: str) -> bytes:
    """A text of the system's as the bytes that it was."""
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def decoded(data: bytes) -> str:
    """Bytes of the system's as text."""
    return data.decode(sys.getfilesystemencoding(), "surrogateescape")


def message(*fields: bytes) -> bytes:
    """The fields as one message."""
    body = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return MAGIC + len(body).to_bytes(4, "big") + body


def receive(recv: "Callable[[int], bytes]", count: int) -> list[bytes]:
    """The fields of the message that comes; anything else is a broken one."""
    head = _exactly(recv, 8)
    size = int.from_bytes(head[4:], "big")
    if head[:4] != MAGIC or size > MOST:
        raise BrokenError
    body, fields, place = _exactly(recv, size), [], 0
    while place < size:
        end = place + 4 + int.from_bytes(body[place : place + 4], "big")
        fields.append(body[place + 4 : end])
        place = end
    if place != size or len(fields) != count:
        raise BrokenError
    return fields


def _exactly(recv: "Callable[[int], bytes]", size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = recv(min(size, 1 << 18))
        if not piece:
            raise BrokenError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def packed(environ: "Mapping[str, str]") -> bytes:
    """An environment as a field."""
    return b"\0".join(encoded(f"{name}={value}") for name, value in carried(environ).items())


def unpacked(field: bytes) -> dict[str, str]:
    """The environment in a field; names that do not travel are dropped."""
    pairs = (decoded(entry).partition("=") for entry in field.split(b"\0"))
    return {name: value for name, _, value in pairs if name in CARRIED}
