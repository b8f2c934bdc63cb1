"""Mounts as rules for Landlock, which can only leave things out: what would have to be put on top of others
cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from remuda.sandbox.mounts import Mount, covering, layered
from remuda.sandbox.profile import UnresolvableError
from remuda.sandbox.spec import Rule

_RIGHTS = {"rw": 2, "ro": 1}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def rules_of(mounts: Iterable[Mount]) -> tuple[Rule, ...]:
    """The rules that say the same as a set of mounts; where none do, the sandbox is refused."""
    ordered = layered(mounts)
    by_path = {mount.path: mount for mount in ordered}
    for mount in ordered:
        above = covering(by_path, mount.path)
        more = _RIGHTS.get(above.kind, 0) if above else 0
        if mount.kind != "link" and _RIGHTS.get(mount.kind, 0) < more:
            raise UnresolvableError(
                f"Landlock cannot keep {mount.path} from being {'changed' if more == 2 else 'read'}",
                "Install bubblewrap ('bwrap').",
            )
    return (*_granted(ordered), Rule("/proc", False), *_devices())


def _granted(ordered: tuple[Mount, ...]) -> Iterator[Rule]:
    for mount in ordered:
        if mount.kind in _RIGHTS:
            yield Rule(mount.origin, mount.kind == "rw")


def _devices() -> Iterator[Rule]:
    for name in _DEVICES:
        if Path("/dev", name).exists():
            yield Rule(f"/dev/{name}", True)
