"""The names of sessions, as the store has them: for completion, which has no time to look at each."""

from __future__ import annotations

from remuda.operations.world import World
from remuda.sessions import store


def running(world: World) -> list[str]:
    """The sessions that are on record as running."""
    return [row.name or row.id for row in store.listed(world.folders.database) if row.mode != "headless"]


def ended(world: World) -> list[str]:
    """Those that can be resumed, each name once, the newest first."""
    rows = store.listed(world.folders.database, all_=True)
    taken = {row.name for row in rows if row.state != "exited"}
    over = (row for row in rows if row.state == "exited" and row.mode != "headless")
    return list(dict.fromkeys(row.name or row.id for row in over if row.name not in taken))
