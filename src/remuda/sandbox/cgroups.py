"""Control groups: how much memory and how many processes all of an agent may have together.

Which groups there can be is decided from what the system says of itself; the launcher makes them, goes into
them, and takes them away. Only what is built in is imported.
"""

import contextlib
import os
from typing import NamedTuple

from remuda.sandbox.spec import Cgroup

PREFIX = "remuda-"

_FILES = {
    2: {"memory": "memory.max", "pids": "pids.max", "cpu": "cpu.weight"},
    1: {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.shares"},
}
"""The file that bounds each thing, by the version of the interface."""

_SWAP = {2: ("memory.swap.max", "0"), 1: ("memory.memsw.limit_in_bytes", "")}
"""What keeps an agent from taking in swap what it may not have in memory, where that is offered."""


class Hierarchy(NamedTuple):
    """Where groups of a controller are made, and the one that this process is in."""

    version: int
    base: str
    own: str


def hierarchies(mounts: str, own: str) -> "dict[str, Hierarchy]":
    """The hierarchies by controller, from /proc/self/mountinfo and /proc/self/cgroup."""
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, Hierarchy] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, options = after.split(" ")[0], after.split(" ")[-1].split(",")
        root, point = before.split(" ")[3:5]
        if kind == "cgroup2" and "" in paths:
            group = _below(point, root, paths[""])
            base = group.rpartition("/")[0] if group != point else point
            for controller in _FILES[2]:
                found.setdefault(controller, Hierarchy(2, base, group))
        elif kind == "cgroup":
            for controller in {*options} & {*_FILES[1]} & {*paths}:
                group = _below(point, root, paths[controller])
                found[controller] = Hierarchy(1, group, group)
    return found


def _below(point: str, root: str, path: str) -> str:
    """The folder of a group, where only the part below a root is mounted."""
    inner = path.removeprefix(root) if root != "/" else path
    return f"{point}/{inner.strip('/')}".rstrip("/")


def usable(controller: str, place: Hierarchy) -> bool:
    """Whether a group with this controller can be made here."""
    if not os.access(place.base, os.W_OK | os.X_OK):
        return False
    if place.version == 1:
        return os.access(f"{place.base}/cgroup.procs", os.W_OK)
    try:
        with open(f"{place.base}/cgroup.subtree_control") as stream:  # noqa: PTH123 - no pathlib here
            return controller in stream.read().split() and os.access(f"{place.base}/cgroup.procs", os.W_OK)
    except OSError:
        return False


def groups(found: "dict[str, Hierarchy]", wanted: "dict[str, int]") -> "tuple[Cgroup, ...]":
    """The groups that hold an agent to these amounts, by controller."""
    settings: dict[Hierarchy, list[tuple[str, str]]] = {}
    for controller, amount in wanted.items():
        place = found[controller]
        lines = settings.setdefault(place, [])
        lines.append((_FILES[place.version][controller], str(_scaled(place.version, controller, amount))))
        if controller == "memory":
            file, value = _SWAP[place.version]
            lines.append((f"{file}?", value or str(amount)))
    return tuple(Cgroup(place.base, place.own, tuple(lines)) for place, lines in settings.items())


def _scaled(version: int, controller: str, amount: int) -> int:
    """Shares of the processor are counted from 2 to 262144, weights from 1 to 10000."""
    if controller != "cpu":
        return amount
    shares = min(max(amount, 2), 262144)
    return shares if version == 1 else 1 + (shares - 2) * 9999 // 262142


def enter(wanted: "tuple[Cgroup, ...]") -> None:
    """Make groups and go into them. A setting whose name ends in ``?`` may be missing."""
    for group in wanted:
        _clear(group.base)
        folder = _own_folder(group)
        os.mkdir(folder)  # noqa: PTH102
        for name, value in group.settings:
            _write(f"{folder}/{name.rstrip('?')}", value, optional=name.endswith("?"))
        _write(f"{folder}/cgroup.procs", str(os.getpid()))


def leave(wanted: "tuple[Cgroup, ...]") -> None:
    """Go out of groups and take them away. What cannot be taken away now is by whoever comes next."""
    for group in wanted:
        _write(f"{group.own}/cgroup.procs", str(os.getpid()), optional=True)
        _remove(_own_folder(group))


def _own_folder(group: Cgroup) -> str:
    return f"{group.base}/{PREFIX}{os.getpid()}"


def _clear(base: str) -> None:
    """Take away the groups of launchers that were killed, and of one that had our number before us."""
    ours = str(os.getpid())
    for name in os.listdir(base):  # noqa: PTH208
        owner = name.removeprefix(PREFIX)
        left = owner == ours or not os.path.exists(f"/proc/{owner}")  # noqa: PTH110
        if owner != name and owner.isdigit() and left:
            _remove(f"{base}/{name}")


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):  # one that somebody is in stays
        os.rmdir(folder)  # noqa: PTH106


def _write(path: str, value: str, *, optional: bool = False) -> None:
    try:
        with open(path, "w") as stream:  # noqa: PTH123
            stream.write(value)
    except OSError:
        if not optional:
            raise
