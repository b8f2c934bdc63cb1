"""What a worker puts on record of a task that it carries out: which agent is called, and what it says."""

from __future__ import annotations

import asyncio
import contextlib
from threading import Lock

from remuda.core.events import Event
from remuda.core.sql import Database, StoreGoneError
from remuda.dispatch.tasks import carrying, events, store
from remuda.dispatch.tasks.model import Calling, Claimed, Held
from remuda.operations.requests import Plan

BATCH = 64
"""So many events are written at once, or those that came in a moment."""

_MOMENT = 0.075
_PAUSE = 0.5


class LostError(Exception):
    """The task is somebody else's now: whatever is done for it here ends, and nothing more is said of it."""


class Record:
    """One holder's word about a task. Events wait for a moment, to be written together; what cannot be
    written waits for longer, because the database may only be restarting."""

    def __init__(self, database: Database, claimed: Claimed) -> None:
        self.held: Held = claimed.held
        self._database = database
        self._seq = claimed.task.last_seq
        self._calling: Calling | None = None
        self._answered = False
        self._pending: list[Event] = []
        self._unsure = 0
        self._lock = Lock()
        self._writing: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """Whether an agent may have been started by this holder."""
        return self._calling is not None

    def announce(self, plan: Plan) -> None:
        """An agent is about to be started; with the second one the next attempt begins."""
        calling = Calling(plan.agent.name, plan.session, plan.runtime_session)
        with self._lock:
            if self._calling is None:
                if not carrying.move(self._database, self.held, "starting", calling):
                    raise LostError
            else:
                self._write()
                then = carrying.another(self._database, self.held, "elsewhere", calling)
                if then is None:
                    raise LostError
                self.held = then
            self._calling, self._answered = calling, False

    async def add(self, event: Event) -> None:
        """Put an event on record, soon."""
        self._pending.append(event)
        if self._writing is not None and self._writing.done():
            self._writing.result()
            self._writing = None
        if len(self._pending) >= BATCH and self._writing is None:
            await self.flush()
        elif self._writing is None:
            self._writing = asyncio.create_task(self._soon())

    async def _soon(self) -> None:
        await asyncio.sleep(_MOMENT)
        await self._written()

    async def flush(self) -> None:
        """Put everything on record now."""
        if self._writing is not None:
            await self._writing
            self._writing = None
        await self._written()

    async def _written(self) -> None:
        while self._pending:
            try:
                await asyncio.to_thread(self._locked)
            except StoreGoneError:
                await asyncio.sleep(_PAUSE)

    def _locked(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        self._make_sure()
        batch = self._pending[:BATCH]
        if not batch:
            return
        if self._calling is not None and not self._answered:
            if not carrying.move(self._database, self.held, "answering"):
                raise LostError
            self._answered = True
        self._unsure = len(batch)
        if events.append(self._database, self.held, batch) != self._seq + len(batch):
            raise LostError
        self._wrote()

    def _make_sure(self) -> None:
        """Where the connection broke and nobody knows whether events are on record, the task's own count
        tells."""
        if not self._unsure:
            return
        if store.look(self._database, self.held.task).last_seq == self._seq + self._unsure:
            self._wrote()
        self._unsure = 0

    def _wrote(self) -> None:
        del self._pending[: self._unsure]
        self._seq += self._unsure
        self._unsure = 0

    async def close(self) -> None:
        """Nothing more is said here."""
        if self._writing is not None:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError, LostError):
                await self._writing
