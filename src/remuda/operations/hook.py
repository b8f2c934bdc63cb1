"""Answer an agent CLI's hook: the same program, whichever way it is called; or tell where that program is."""

from __future__ import annotations

from pathlib import Path

from remuda.core.errors import NotFoundError, UsageError
from remuda.dispatch.names import check_name
from remuda.hooks import staging
from remuda.hooks.asking import received
from remuda.hooks.events import COMMANDS, event_of
from remuda.hooks.program import Request, run
from remuda.operations.agents import which
from remuda.operations.world import World


def hook(event: str, payload: str | None, dialect: str, runtime: str = "") -> int:
    """Read a payload, judge it, answer; the exit code. The answer goes out before this returns, so that
    nothing which happens later can turn a deny into something else."""
    return run(Request(event, dialect, runtime), lambda: received(payload))


def hook_path(world: World, event: str, agent: str | None) -> Path:
    """The hook program of an agent, or of the active one. Where it is missing, no other takes its place."""
    meant = event_of(event)
    if meant is None:
        raise UsageError(f"there is no hook event {event!r}", f"There are: {', '.join(COMMANDS.values())}.")
    name = which(world).agent if agent is None else check_name(agent, world.herd)
    if not isinstance(name, str):
        raise NotFoundError("there is no agent of that name", f"There are: {', '.join(world.herd)}.")
    return staging.hook_path(world.folders.data, name, meant, world.herd)
