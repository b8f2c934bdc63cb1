"""Lets go of tasks that ended long ago, beside the work: a worker does not wait for it."""

from __future__ import annotations

import asyncio
import time

from remuda.core import log
from remuda.core.sql import Database
from remuda.dispatch.tasks import store
from remuda.dispatch.tasks.engine import Engine

_HOUR = 3600.0


class Tidying:
    """What is old goes once an hour, from our record and from the engine's."""

    def __init__(self, database: Database, engine: Engine, days: float) -> None:
        self._database = database
        self._engine = engine
        self._days = days
        self._due = 0.0
        self._under_way: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Begin, if it is time to."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _HOUR
            self._under_way = asyncio.create_task(self._tried())

    async def _tried(self) -> None:
        try:
            await self._tidy()
        except Exception as error:  # the next hour comes
            log.warn("old tasks could not be let go of", error=type(error).__name__)

    async def _tidy(self) -> None:
        while gone := await asyncio.to_thread(store.sweep, self._database, self._days):
            await self._engine.forget(gone)
        old = await self._engine.older(self._days)
        kept = await asyncio.to_thread(store.revisions, self._database, tuple(old)) if old else {}
        if gone := [task for task in old if task not in kept]:
            await self._engine.forget(gone)
