"""The worker: claims tasks, carries them out, takes over those of workers that died, knows when to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from remuda.core import log, reaper
from remuda.core.identity import identity, place
from remuda.core.ids import ulid
from remuda.core.sql import Database, StoreGoneError
from remuda.core.sqlite import SqliteDatabase
from remuda.dispatch.tasks import carrying, scheduling, store, workers
from remuda.dispatch.tasks.engine import Engine
from remuda.dispatch.tasks.model import Claimed, Duty, Served
from remuda.operations.worker.execution import LATER, Execution, Job
from remuda.operations.worker.fencing import Fence, FencedError
from remuda.operations.worker.hearing import ear
from remuda.operations.worker.tidying import Tidying
from remuda.operations.world import World

POLL = 5.0
"""Seconds after which a worker looks by itself, should nobody have woken it."""

GRACE = 10.0
"""Seconds that tasks have to come to an end when a worker is told to."""

_ENDING = 8.0
_PAUSE = 0.5
_STUCK = 60.0
Got = TypeVar("Got")


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is there for: which tasks, how many at a time, and until when. ``once``: until nothing is
    left to do; ``idle``: until there was nothing to do for so many seconds."""

    served: Served = Served()
    slots: int
    once: bool = False
    idle: float | None = None
    grace: float = GRACE


class Worker:
    """One worker, from its registration to its end."""

    def __init__(self, world: World, database: Database, orders: Orders, retired: Callable[[], None]) -> None:
        self.id = ulid()
        self._retired = retired
        self._world = world
        self._database = database
        self._orders = orders
        self._woken = asyncio.Event()
        self._told_to_end = asyncio.Event()
        self._at_once = asyncio.Event()
        self._limited: dict[tuple[str | None, str | None], float] = {}
        self._execution = Execution(world, database, self._woken.set, self._is_limited)
        self._engine = Engine(database.url, self.id, self._execution)
        self._lease = world.config.tasks.lease
        self._fence = Fence(self.id, self._lease)
        self._wake = ""
        self._busy_at = time.monotonic()
        self._tidying = Tidying(database, self._engine, float(world.config.tasks.retention_days))
        self._beat_at = -POLL
        self._taking: asyncio.Task[None] | None = None
        self._dead: list[str] = []
        self._observed = workers.Observed()
        self._not_ours: set[str] = set()
        self._beginnings: set[asyncio.Task[None]] = set()
        self._books = asyncio.Lock()

    @property
    def _jobs(self) -> dict[str, Job]:
        return self._execution.jobs

    async def work(self, ready: Callable[[str], None]) -> bool:
        """Work until told to end, or until nothing is left to do; whether all that was begun was finished."""
        os.environ[reaper.MARK] = self.id
        socket = self._world.folders.runtime / "workers" / f"{self.id}.sock"
        async with ear(self._database, socket, self._woken) as self._wake:
            self._listen_for_signals()
            await self._asked(workers.register, self._registration())
            await self._launched()
            if self._is_remote:
                self._fence.watch()
            ready(self.id)
            try:
                while not self._told_to_end.is_set():
                    await self._until_done()
                    if await self._rests():
                        break
            except FencedError:
                log.warn("the database is out of reach: what runs here is ended", worker=self.id)
                await self._leave(0)
                return False
            return await self._depart()

    async def _launched(self) -> None:
        """Have the engine ready; where it does not start, nobody may count on us."""
        try:
            await self._engine.launch()
        except BaseException:
            with contextlib.suppress(StoreGoneError):
                await self._asked(workers.deregister, self.id)
            raise

    @property
    def _is_remote(self) -> bool:
        """Where a file is shared, others see that we live; over a network only that we are silent."""
        return not isinstance(self._database, SqliteDatabase)

    async def _rests(self) -> bool:
        """Strike ourselves off, unless something came at the last moment: whoever submitted it may have
        counted on us."""
        with contextlib.suppress(StoreGoneError):
            await self._asked(workers.deregister, self.id)
            if await self._waits():
                await self._asked(workers.register, self._registration())
                return False
        return True

    def _registration(self) -> workers.Registration:
        return workers.Registration(
            id=self.id,
            host=place(),
            process=identity(os.getpid()),
            served=self._orders.served,
            slots=0 if self._told_to_end.is_set() else self._orders.slots,
            wake=self._wake,
        )

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)

    def end(self) -> None:
        """Take nothing new, and end when what runs has come to an end; the second time at once."""
        if self._told_to_end.is_set():
            self._at_once.set()
        self._told_to_end.set()
        self._woken.set()

    async def _until_done(self) -> None:
        while not self._told_to_end.is_set():
            woken = self._woken.is_set()
            self._woken.clear()
            try:
                await self._look(woken)
            except StoreGoneError:
                await self._endure()
                continue
            if await self._done():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), min(POLL, scheduling.beat(self._lease)))

    async def _endure(self) -> None:
        """The database does not answer: wait for a moment, or end while nobody has taken our tasks over."""
        if self._is_remote and self._fence.is_due():
            raise FencedError
        await asyncio.sleep(_PAUSE)

    async def _look(self, woken: bool) -> None:
        """Take what waits, tell that we live, and look after what runs."""
        now, due = time.monotonic(), self._is_due()
        async with self._books:
            if due:
                await self._beat()
                self._dead = await self._asked(workers.dead, self._lease, self._observed)
            if (room := self._room() - self._kept()) > 0:
                for claimed in await self._asked(carrying.claim, self.id, self._served(), room):
                    self._take(claimed)
            if woken and not due:
                await self._beat()
        self._collect()
        if due:
            self._beat_at = now
            await self._asked(store.expire_due)
            self._tidying.look()
        if self._dead and self._room() > 0 and self._taking is None:
            self._taking = asyncio.create_task(self._take_over())
            self._taking.add_done_callback(lambda _: self._woken.set())

    def _is_due(self) -> bool:
        return time.monotonic() - self._beat_at >= min(POLL, scheduling.beat(self._lease)) * 0.9

    async def _beat(self) -> None:
        """Tell that we live, and do what the record says. What counts is when the word was sent, not when
        it was answered."""
        sent = time.monotonic()
        duties = await self._asked(workers.heartbeat, self.id)
        self._fence.seen = sent
        await self._answer(duties)

    def _is_limited(self, agent: str | None, tag: str | None) -> None:
        self._limited[agent, tag] = time.monotonic() + LATER
        asyncio.get_running_loop().call_later(LATER, self._woken.set)

    def _served(self) -> Served:
        """What we claim now: nothing for an agent, or a tag, that was just found to be at its limit."""
        now = time.monotonic()
        self._limited = {whom: until for whom, until in self._limited.items() if until > now}
        return msgspec.structs.replace(
            self._orders.served,
            without=tuple(agent for agent, _ in self._limited if agent is not None),
            untagged=tuple(tag for agent, tag in self._limited if agent is None and tag is not None),
        )

    def _kept(self) -> int:
        """Places that stay free for what dead workers left: new tasks must not keep it waiting for ever."""
        return (self._orders.slots + 1) // 2 if set(self._dead) - self._not_ours else 0

    def _room(self) -> int:
        return self._orders.slots - len(self._jobs)

    def _collect(self) -> None:
        if self._taking is not None and self._taking.done():
            if error := self._taking.exception():  # it is tried again as long as somebody is dead
                log.warn("a takeover was broken off", error=type(error).__name__)
            self._taking = None
        if self._jobs:
            self._busy_at = time.monotonic()

    async def _answer(self, duties: list[Duty] | None) -> None:
        """End what is no longer ours or not wanted any more, and take up what is ours."""
        if duties is None:
            for job in self._jobs.values():
                job.leave()
            await self._asked(workers.register, self._registration())
            return
        ours = {duty.held.task: duty for duty in duties}
        for task, job in list(self._jobs.items()):
            duty = ours.get(task)
            if duty is None or duty.held.attempt < job.claimed.held.attempt:
                job.leave()
            elif duty.cancel is not None:
                job.cancel()
        self._drop_stuck()
        for task in () if self._told_to_end.is_set() else ours.keys() - self._jobs.keys():
            await self._adopt(ours[task])

    def _drop_stuck(self) -> None:
        """Let go of tasks that the engine has not come to: what is on record as ours is begun again."""
        late = time.monotonic() - _STUCK
        for task in [task for task, job in self._jobs.items() if not job.entered and job.taken_at < late]:
            log.warn("the engine does not begin a task", task=task)
            self._jobs.pop(task)

    async def _adopt(self, duty: Duty) -> None:
        """A task that is on record as ours and that we do not know: the connection broke in claiming it."""
        task, attempts = await self._asked(store.get, duty.held.task)
        if task.worker == self.id and task.attempts == duty.held.attempt and task.state == "running":
            self._take(Claimed(task, duty.held, attempts), again=True)

    def _take(self, claimed: Claimed, *, again: bool = False) -> None:
        self._jobs[claimed.task.id] = Job(claimed, self._database)
        beginning = asyncio.create_task(self._begin(claimed, again or claimed.held.attempt > 1))
        self._beginnings.add(beginning)
        beginning.add_done_callback(self._beginnings.discard)

    async def _begin(self, claimed: Claimed, again: bool) -> None:
        """Have the engine begin; a task that it cannot begin stays on record as ours, and is found again."""
        task = claimed.task.id
        log.info("a task is taken", task=task, attempt=claimed.held.attempt)
        try:
            await self._engine.begin(task, again=again)
        except Exception as error:
            log.warn("a task could not be begun", task=task, error=type(error).__name__)
            self._execution.leave(task)

    async def _take_over(self) -> None:
        """Take tasks of workers that died, once nothing of theirs is left running here."""
        gone = tuple(self._dead)
        await asyncio.gather(*(asyncio.to_thread(reaper.sweep, dead) for dead in gone))
        for dead in gone:
            async with self._books:
                if (room := self._room()) <= 0:
                    return
                taken = await self._asked(carrying.takeover, self.id, dead, self._orders.served, room)
                for claimed in taken:
                    self._take(claimed)
            await self._bury(dead, ours=bool(taken))

    async def _bury(self, dead: str, *, ours: bool) -> None:
        """Strike a dead worker off, once nothing is on record as its own."""
        if await self._asked(workers.deregister, dead):
            await self._engine.bury(dead)
        elif ours:
            return
        else:
            self._not_ours.add(dead)
        self._dead = [each for each in self._dead if each != dead]

    async def _done(self) -> bool:
        """Whether there is nothing left to do for one that does not stay. Whoever was woken looks first: what
        the engine could not begin is still on record as ours."""
        if self._jobs or self._taking is not None or self._woken.is_set():
            return False
        idle = time.monotonic() - self._busy_at
        if not self._orders.once and (self._orders.idle is None or idle < self._orders.idle):
            return False
        return not await self._waits()

    async def _waits(self) -> bool:
        return await self._asked(carrying.waits, self._orders.served)

    async def _depart(self) -> bool:
        """Give what runs its time, then leave it to others; hand back what has not begun. Nobody counts on us
        any more, and another one may take our place."""
        with contextlib.suppress(StoreGoneError):
            await self._asked(workers.retire, self.id)
        self._retired()
        finished = await self._leave(self._orders.grace)
        with contextlib.suppress(StoreGoneError):
            await self._asked(workers.deregister, self.id)
        return finished

    async def _leave(self, grace: float) -> bool:
        end = time.monotonic() + grace
        with contextlib.suppress(FencedError):
            while self._jobs and time.monotonic() < end and not self._at_once.is_set():
                await self._stay()
                await asyncio.sleep(0.05)
        finished = not self._jobs
        for job in self._jobs.values():
            job.leave()
        end = time.monotonic() + _ENDING
        while self._jobs and time.monotonic() < end:
            await asyncio.sleep(0.05)
        return finished

    async def _stay(self) -> None:
        """Go on with giving signs of life while tasks come to their end: others must not take them over."""
        if not self._is_due():
            return
        try:
            await self._beat()
            self._beat_at = time.monotonic()
        except StoreGoneError:
            await self._endure()

    async def _asked(self, what: Callable[..., Got], *arguments: object) -> Got:
        """Ask the database, in a thread. One that does not answer at all counts as gone."""
        try:
            return await asyncio.wait_for(
                asyncio.to_thread(what, self._database, *arguments), self._lease / 2
            )
        except TimeoutError:
            raise StoreGoneError("the database does not answer", "Look at the server.") from None
