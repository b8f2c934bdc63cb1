"""Starts the resident process, detached from whoever does so, and without waiting for it."""

import posix
import sys

from remuda.hooks import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NULL = "/dev/null"
_PROGRAM = (
    "from remuda.hooks.asking import complete; complete(); from remuda.hooks.resident import main; "
    "from remuda.surfaces.http import hosting; main(hosting)"
)
COMMAND = (sys.executable, "-I", "-c", _PROGRAM)
"""The resident process, as it is started on demand."""


def start(environ: "Mapping[str, str]") -> bool:
    """Start one that answers later calls, where the user wants one and there is room for it; whether that was
    done. It gets a session and an environment of its own, in which it is no part of an agent, and no handle
    of ours: who reads our output must not have to wait for it. Never raises."""
    try:
        place = wire.runtime_folder(environ)
        if place is None or not _writable(place) or not wanted(environ):
            return False
        own = {name: value for name, value in wire.carried(environ).items() if name not in wire.ASKER}
        posix.posix_spawn(
            sys.executable,
            COMMAND,
            own,
            file_actions=_actions(),
            setsid=True,
            setsigmask=(),
        )
    except Exception:
        return False
    return True


def wanted(environ: "Mapping[str, str]") -> bool:
    """Whether the user wants a resident process. Where that cannot be read, verdicts are denies, which need
    none."""
    if wire.engine(environ) != "auto":
        return False
    from remuda.core.paths import folders

    file = folders(environ).config_file
    if not file.exists():
        return True
    from remuda.core.config import load_user
    from remuda.core.errors import ConfigError

    try:
        return load_user(file).guard.resident
    except ConfigError:
        return False


def _writable(folder: str) -> bool:
    """Whether a folder can be written to, or made."""
    while folder and not posix.access(folder, posix.F_OK):
        folder = folder.rpartition("/")[0]
    return posix.access(folder or "/", posix.W_OK)


def _actions() -> list[tuple[int, ...] | tuple[int, int, str, int, int]]:
    """What becomes of our handles in the new process: the standard ones lead nowhere, others are closed."""
    handles = [int(name) for name in posix.listdir("/proc/self/fd")]
    return [
        (posix.POSIX_SPAWN_OPEN, 0, _NULL, posix.O_RDONLY, 0),
        (posix.POSIX_SPAWN_OPEN, 1, _NULL, posix.O_WRONLY, 0),
        (posix.POSIX_SPAWN_OPEN, 2, _NULL, posix.O_WRONLY, 0),
        *((posix.POSIX_SPAWN_CLOSE, handle) for handle in handles if handle > 2),
    ]
