"""The command line of bubblewrap for a set of walls. Pure: nothing is looked up here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from remuda.sandbox.mounts import Mount, layered

_ALWAYS = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--cap-drop", "ALL"),
)
MASK = ("--unshare-user", "--uid", "10001", "--gid", "10001")
"""Root is somebody else inside. Without that, programs could not build walls of their own within ours: a root
that has no rights may not do what any other user may. Nor is it nobody, whom programs take for a mistake."""

_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
"""What of /proc is the machine's and not a process's. Root may write to it without any rights, masked too:
``core_pattern`` names a program."""

_ROOT = (
    *("--proc", "/proc"),
    *(part for name in _KERNEL for part in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
    *("--dev", "/dev"),
)


class Walls(msgspec.Struct, frozen=True, kw_only=True):
    """What bubblewrap is to build: mounts, whether the network is shared with the machine, whether the agent
    has a terminal of ours, and whether its user is masked."""

    mounts: tuple[Mount, ...]
    cwd: Path
    network: bool
    terminal: bool = False
    masked: bool = False


def arguments(walls: Walls) -> tuple[str, ...]:
    """The options, up to the program. Every path is absolute and the operand of an option, so that none is
    taken for one."""
    network = () if walls.network else ("--unshare-net",)
    session = () if walls.terminal else ("--new-session",)
    mounts = layered(walls.mounts)
    mounted = (part for mount in mounts for part in _mount(mount))
    empty = (mount.path for mount in mounts if mount.kind in ("empty", "hidden"))
    sealed = (part for path in (*empty, "/") for part in ("--remount-ro", path))
    mask = MASK if walls.masked else ()
    return (*_ALWAYS, *mask, *network, *session, *_ROOT, *mounted, *sealed, "--chdir", _path(str(walls.cwd)))


def _mount(mount: Mount) -> Iterable[str]:
    path, origin = _path(mount.path), mount.origin
    match mount.kind:
        case "ro":
            return ("--ro-bind", _path(origin), path)
        case "rw":
            return ("--bind", _path(origin), path)
        case "hidden-file":
            return ("--ro-bind", "/dev/null", path)
        case "empty" | "hidden" | "private":
            return ("--tmpfs", path)
        case "link":
            return ("--symlink", _target(origin), path)


def _path(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ValueError("a path inside a sandbox has to be absolute")
    return path


def _target(target: str) -> str:
    """Where a link leads; one that looks like an option gets the folder it is in in front."""
    return f"./{target}" if target.startswith("-") else target
