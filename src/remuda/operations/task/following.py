"""Waits for tasks and follows their events, from whatever process carries them out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import msgspec

from remuda.core import clock
from remuda.core.events import Event, Failure, Result, StopReason
from remuda.core.sql import Database, StoreGoneError
from remuda.dispatch.tasks import events, store
from remuda.dispatch.tasks.model import FINAL, Task, TaskState
from remuda.operations.task.looking import opened, shown
from remuda.operations.task.requests import Ids, Seconds, Seq, TaskShown, Waited, WaitRequest, check, failure
from remuda.operations.worker.waking import Attendant
from remuda.operations.world import World
from remuda.sessions.job import VERSION

_OFTEN, _SELDOM = 0.1, 0.25
"""Seconds between looks at a task that changes, and at one that does not."""

_PATIENCE = 120.0
"""Seconds that a database may be away while somebody looks at it."""

_ANSWER = 5.0
"""Seconds that a database has to answer, however little time there is: one that is slow is not gone."""

_PAUSE = 0.5
_FOREVER = float("inf")
_T = TypeVar("_T")


async def _patiently(end: float, look: Callable[..., _T], *arguments: object) -> _T:
    """Look at the database; one that is started again is back soon, and nothing is missed by then. Nobody is
    kept beyond the end of their own time but for an answer."""
    end = min(end, time.monotonic() + _PATIENCE)
    while True:
        try:
            async with asyncio.timeout(max(end - time.monotonic(), _ANSWER)):
                return await asyncio.to_thread(look, *arguments)
        except TimeoutError:
            raise StoreGoneError("the database does not answer", "Try again.") from None
        except StoreGoneError:
            if time.monotonic() + _PAUSE > end:
                raise
            await asyncio.sleep(_PAUSE)


async def wait(world: World, request: WaitRequest) -> Waited:
    """Wait until all of these tasks have ended, or the first of them, or the time is up. Whoever stops
    waiting changes nothing: the tasks go on."""
    check("ids", Ids, request.ids)
    check("timeout", Seconds | None, request.timeout)
    end = _FOREVER if request.timeout is None else time.monotonic() + request.timeout
    over: dict[str, TaskShown] = {}
    with opened(world) as database:
        found = [await _patiently(end, store.find, database, name) for name in request.ids]
        left = tuple(dict.fromkeys(found))
        attendant = Attendant(world, database)
        while True:
            for ident in await _patiently(end, _ended, database, left):
                over[ident] = await _patiently(_FOREVER, shown, database, ident)
            left = tuple(ident for ident in left if ident not in over)
            done, pause = not left or bool(request.first and over), min(_OFTEN, end - time.monotonic())
            if done or pause <= 0:
                break
            await asyncio.to_thread(attendant.look, left)
            await asyncio.sleep(pause)
        others = [await _patiently(_FOREVER, shown, database, ident) for ident in left]
        return Waited([*over.values(), *others], timed_out=not done)


def _ended(database: Database, ids: tuple[str, ...]) -> list[str]:
    """Those of the tasks that have ended; one that is gone before that is an error."""
    store.expire_due(database)
    found = store.revisions(database, ids)
    for ident in ids:
        if ident not in found:
            store.look(database, ident)
    return [ident for ident in ids if found[ident][1] in FINAL]


async def watch(world: World, name: str, since: int = 0) -> AsyncGenerator[Event]:
    """The events of a task behind a sequence number, as they come, to the result that ends them. To go on
    later, give the number of the last one that was seen."""
    check("since", Seq, since)
    with opened(world) as database:
        ident = await _patiently(_FOREVER, store.find, database, name)
        seen, revision = since, -1
        attendant = Attendant(world, database)
        while True:
            now, state = await _patiently(_FOREVER, _look, database, ident)
            while now != revision and (
                page := await _patiently(_FOREVER, events.after, database, ident, seen)
            ):
                for event in page:
                    yield event
                    seen = event.seq
            if state in FINAL:
                break
            await asyncio.to_thread(attendant.look, (ident,))
            await asyncio.sleep(_SELDOM if now == revision else _OFTEN)
            revision = now
        closing = await _patiently(_FOREVER, _closing, database, ident)
        if closing is not None and closing.seq > since:
            yield closing


def _look(database: Database, ident: str) -> tuple[int, TaskState]:
    store.expire_due(database)
    found = store.revisions(database, (ident,))
    if ident not in found:
        store.look(database, ident)
    return found[ident]


def _closing(database: Database, ident: str) -> Event | None:
    """The result that ends the events of a task, where none of them is one: nobody was there to tell it."""
    task = store.look(database, ident)
    if any(event.result for event in events.after(database, ident, task.last_seq - 1)):
        return None
    ended = clock.now() if task.ended_at is None else task.ended_at
    return Event(
        v=VERSION,
        seq=task.last_seq + 1,
        session=task.session or "",
        agent=task.agent or "",
        time=clock.rfc3339(ended),
        result=_result(task),
    )


def _result(task: Task) -> Result:
    if task.result is not None:
        return msgspec.json.decode(task.result, type=Result)
    error = failure(task.error_kind, task.error) or Failure("crashed", "nothing is known of how it ended")
    stop: StopReason = "cancelled" if task.state == "cancelled" else "error"
    return msgspec.structs.replace(Result.failed(error), stop_reason=stop)
