"""Carries one task out: from its beginning, or from where a worker that died had come to."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Literal, TypeVar

import msgspec

from remuda.core import log
from remuda.core.errors import ErrorKind, NotInstalledError, RefusedError, RemudaError
from remuda.core.events import Event, Result, thought
from remuda.core.sql import Database, StoreGoneError
from remuda.dispatch.tasks import carrying, scheduling
from remuda.dispatch.tasks.model import Claimed
from remuda.dispatch.tasks.scheduling import Course, Outcome
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.run import run
from remuda.operations.task.requests import unpacked
from remuda.operations.worker import endings
from remuda.operations.worker.recording import LostError, Record
from remuda.operations.world import World, open_world
from remuda.sessions.job import envelope

TASK = "REMUDA_TASK"
"""Tells an agent, and what it starts, for which task it works."""

CONTINUE = (
    "The process that ran you ended before you were done; nothing else has changed. Look at what you have "
    "already done, and finish the task that you were given above. Do not start over, and do not repeat what "
    "is done."
)
"""What an agent is told in the session that it is to go on with."""

_BRIEFLY = 0.25
"""Seconds that a task waits for its agent's turn in its slot. After that it waits in the queue, where it is
in nobody's way."""

LATER = 1.0
"""Seconds after which tasks for an agent at its limit are looked at again."""

_PAUSE = 1.0
_PAUSES = (0.1, 0.3, _PAUSE, 2.0)
Got = TypeVar("Got")


class Job:
    """A task in this process: what was claimed, whether the engine has come to it, and why it has to stop, if
    it does."""

    def __init__(self, claimed: Claimed, database: Database) -> None:
        self.claimed = claimed
        self.record = Record(database, claimed)
        self.stop = asyncio.Event()
        self.taken_at = time.monotonic()
        self.entered = False
        self.turned_away = 0
        self.why: Literal["", "cancelled", "left"] = "cancelled" if claimed.task.cancel else ""

    def cancel(self) -> None:
        """Somebody wants it to end."""
        self.why = self.why or "cancelled"
        self.stop.set()

    def announce(self, plan: Plan) -> None:
        """An agent is about to be started, unless the task was left meanwhile."""
        if self.why == "left":
            raise LostError
        self.record.announce(plan)

    def leave(self) -> None:
        """End the agent, and leave the task to another worker."""
        self.why = "left"
        self.stop.set()


class Execution:
    """The steps of all tasks in this process."""

    def __init__(
        self,
        world: World,
        database: Database,
        ended: Callable[[], None],
        limited: Callable[[str | None, str | None], None],
    ) -> None:
        self.jobs: dict[str, Job] = {}
        self._world = world
        self._database = database
        self._ended = ended
        self._limited = limited

    async def carry_out(self, task: str) -> str:
        """Call the agent. The outcome is kept by the engine; the result is the last event."""
        job = self._entered(task)
        try:
            outcome = await self._carried(job)
        except LostError:
            await self._handed_back(job)
            raise asyncio.CancelledError from None
        except StoreGoneError:
            outcome = Outcome("interrupted", "the database was gone while the next agent was called")
        except RemudaError as error:
            outcome = Outcome("failed", str(error), _kind(error))
        except Exception as error:
            log.warn("a task could not be carried out", task=task, error=type(error).__name__)
            outcome = Outcome("failed", f"an error of Remuda's own: {type(error).__name__}", "protocol")
        finally:
            await job.record.close()
        if job.why == "left":
            raise asyncio.CancelledError
        return msgspec.json.encode(outcome).decode()

    def leave(self, task: str) -> None:
        """The task is over, or somebody else's; not so for whoever was only turned away from it."""
        job = self.jobs.get(task)
        if job is not None and job.turned_away:
            job.turned_away -= 1
            return
        self.jobs.pop(task, None)
        self._ended()

    def _entered(self, task: str) -> Job:
        """Nobody carries a task out twice at a time, whatever the engine believes."""
        job = self._job(task)
        if job.entered:
            job.turned_away += 1
            raise asyncio.CancelledError
        job.entered = True
        return job

    def _job(self, task: str) -> Job:
        if task not in self.jobs:
            raise asyncio.CancelledError
        return self.jobs[task]

    async def _carried(self, job: Job) -> Outcome:
        if before := await self._persistently(job, endings.told, self._database, job.claimed):
            return before
        if job.why == "cancelled":
            return Outcome("cancelled", job.claimed.task.cancel or "it was cancelled", "cancelled")
        request = unpacked(job.claimed.task.prompt, job.claimed.task.request)
        world = open_world(self._world.environ, request.cwd or self._world.cwd)
        course = scheduling.course(job.claimed, endings.resumable(world, job.claimed, request))
        if course.way == "give_up":
            return Outcome("interrupted", course.reason)
        if course.way == "resume":
            await job.record.add(_told(course))
        return await self._called(job, world, course, _request(world, request, course, job))

    async def _called(self, job: Job, world: World, course: Course, request: RunRequest) -> Outcome:
        """Call the agent by the one door; again, where the database was gone before anything was started."""
        while True:
            if not await self._persistently(job, carrying.holds, self._database, job.record.held):
                raise LostError
            try:
                outcome = await self._ran(job, world, course, request)
            except StoreGoneError:
                if job.record.begun:
                    raise
                await asyncio.sleep(_PAUSE)
                continue
            if outcome.state != "queued" or course.way != "resume":
                return outcome
            with contextlib.suppress(TimeoutError):  # nobody else can go on with it: it keeps its slot
                await asyncio.wait_for(job.stop.wait(), LATER)

    async def _ran(self, job: Job, world: World, course: Course, request: RunRequest) -> Outcome:
        answers = 0
        result: Event | None = None
        async with aclosing(run(world, request, job.stop, job.announce)) as events:
            async for event in events:
                if event.result is not None:
                    result = event
                else:
                    answers += 1
                    await job.record.add(event)
        if job.why == "left":
            raise LostError
        if result is None or result.result is None:
            return Outcome("failed", "the run ended without a result", "protocol")
        if request.queue_within == _BRIEFLY and not job.record.begun and _limited(result.result):
            return Outcome("queued")
        if course.way == "resume" and not answers and endings.refused_resumption(result.result):
            return Outcome("interrupted", f"its session could not be continued: {_words(result.result)}")
        await job.record.add(result)
        await job.record.flush()
        return endings.outcome(result.result, cancelled=job.why == "cancelled")

    async def _handed_back(self, job: Job) -> None:
        """A task that we leave without having begun it goes back into the queue."""
        if not job.record.begun:
            with contextlib.suppress(StoreGoneError):
                await asyncio.to_thread(carrying.hand_back, self._database, job.record.held)

    async def settle(self, task: str, outcome: str) -> None:
        """Give the task its final state; if it is somebody else's by now, they do."""
        job = self._job(task)
        job.entered = True
        told = msgspec.json.decode(outcome, type=Outcome)
        if told.state == "queued":
            self._limited(job.claimed.task.agent, job.claimed.task.tag)
            await self._persistently(job, carrying.hand_back, self._database, job.record.held, LATER)
            return
        ending, last = await self._persistently(
            job, endings.ending, self._world, self._database, job.claimed.task.id, told
        )
        ours = await self._persistently(job, carrying.settle, self._database, job.record.held, ending, last)
        log.info("a task has ended", task=task, state=ending.state, ours=ours)

    async def _persistently(self, job: Job, what: Callable[..., Got], *arguments: object) -> Got:
        """Ask the database, in a thread, again and again while it does not answer and the task is ours."""
        attempt = 0
        while True:
            try:
                return await asyncio.to_thread(what, *arguments)
            except StoreGoneError:
                if job.why == "left":
                    raise LostError from None
                await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
                attempt += 1


def _kind(error: RemudaError) -> ErrorKind:
    match error:
        case RefusedError():
            return "refused"
        case NotInstalledError():
            return "not_installed"
        case _:
            return "start_failed"


def _limited(result: Result) -> bool:
    return result.error is not None and result.error.kind == "rate_limit"


def _words(result: Result) -> str:
    return result.error.message if result.error else ""


def _told(course: Course) -> Event:
    """Says in the events that another worker goes on."""
    assert course.earlier is not None
    agent, session = course.earlier.agent, course.earlier.session or ""
    text = (
        f"[remuda] worker {course.earlier.worker} ended in the middle; {agent} goes on in session {session}"
    )
    return envelope(session, agent, 0, update=thought(text))


def _request(world: World, request: RunRequest, course: Course, job: Job) -> RunRequest:
    """What is asked of the run: the task itself or, in the session of an earlier attempt, to go on."""
    env = {**request.env, TASK: job.claimed.task.id}
    within = _BRIEFLY if request.queue_within is None else request.queue_within
    if course.earlier is None:
        return msgspec.structs.replace(request, env=env, unattended=True, queue_within=within)
    session = endings.session_of(world, course.earlier, request)
    return msgspec.structs.replace(
        request,
        prompt=CONTINUE,
        agent=course.earlier.agent,
        session=session,
        tag=None,
        policy="explicit",
        isolated=False,
        cwd=None if session == course.earlier.session else request.cwd,
        env=env,
        unattended=True,
        queue_within=within,
    )
