"""The resident process: be it, ask about it, end it, see to it that there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from remuda.core.errors import RemudaError
from remuda.core.paths import Folders
from remuda.hooks import standing, starting, wire
from remuda.operations.world import World

if TYPE_CHECKING:
    from remuda.hooks.resident import Host

_GRACE = 5.0


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is a resident process, and where it is reached. ``version`` is that of its code."""

    running: bool
    pid: int | None
    socket: str
    version: str | None = None
    since: str | None = None
    keep: bool = False
    note: str = ""


def serve(
    world: World,
    idle: float | None,
    *,
    keep: bool,
    ready: Callable[[Status], None],
    hosting: Callable[[], Host],
) -> None:
    """Be the resident process until it is idle for that long, or without end. ``hosting`` loads the surface
    that answers whatever is no hook."""
    from remuda.hooks.resident import serve as resident

    seconds = world.config.serve.idle if idle is None else idle
    if not resident(
        world.folders,
        idle=None if keep else seconds,
        ready=lambda: ready(status(world.folders)),
        hosting=hosting,
    ):
        found = status(world.folders)
        who = f" as process {found.pid}" if found.pid else ""
        raise RemudaError(f"it runs already{who}", "Look with 'remuda serve --status'; end it with --stop.")


def status(folders: Folders) -> Status:
    """Who answers hooks."""
    holder = standing.holder(folders.runtime)
    note = "its path is too long for a unix socket; it is reached through a handle of its folder"
    return Status(
        running=standing.held(folders.runtime),
        pid=holder.pid if holder else None,
        socket=str(folders.runtime / wire.SOCKET),
        version=holder.version if holder else None,
        since=holder.since if holder else None,
        keep=holder.keep if holder else False,
        note=note if standing.indirect(folders.runtime) else "",
    )


def stop(folders: Folders) -> bool:
    """End the resident process and wait until it has ended; whether there was one."""
    return standing.end(folders.runtime, _GRACE)


def ensure(world: World) -> None:
    """See to it that hooks will find a resident process, where the user wants one. Nothing waits for it, and
    without it hooks judge for themselves."""
    if not standing.held(world.folders.runtime):
        starting.start(world.environ)
