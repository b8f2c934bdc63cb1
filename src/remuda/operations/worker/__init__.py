"""Workers: processes that carry durable tasks out. Be one, look at all."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing

import msgspec

from remuda.core.clock import rfc3339
from remuda.core.files import PRIVATE, private_folder
from remuda.core.identity import pid_of, place
from remuda.core.structs import prepare
from remuda.operations.world import World

_HANDOVER, _BETWEEN = 60.0, 0.05
"""Seconds for one that is about to end to let go of its place, and between two looks whether it has."""


class WorkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Be a worker for these agents and tags, or for all. ``once``: until nothing is left to do;
    ``on_demand``: once in a home, and until there was nothing to do for a while."""

    agents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    slots: int | None = None
    once: bool = False
    on_demand: bool = False
    grace: float | None = None


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as people see it; ``running`` are the tasks that it carries out now."""

    id: str
    host: str
    pid: int
    alive: bool
    agents: tuple[str, ...]
    tags: tuple[str, ...]
    slots: int
    running: int
    since: str
    seen: str


class WorkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """All workers, and how many tasks wait or run."""

    workers: tuple[WorkerView, ...]
    queued: int
    running: int


def work(world: World, request: WorkRequest, ready: Callable[[str], None]) -> bool:
    """Be a worker until told to end; whether everything that was begun was finished. One on demand that finds
    another there has nothing to do. For an agent that nobody has there would never be anything."""
    import asyncio
    import gc

    from remuda.dispatch.tasks.model import Served
    from remuda.operations.worker.working import GRACE, Orders, Worker

    for name in request.agents:
        world.roster.named(name)
    handle = _alone(world) if request.on_demand else None
    if request.on_demand and handle is None:
        return True
    gc.enable()
    prepare()
    tasks = world.config.tasks
    orders = Orders(
        served=Served(request.agents, request.tags),
        slots=request.slots or tasks.concurrency,
        once=request.once,
        idle=tasks.idle if request.on_demand else None,
        grace=GRACE if request.grace is None else request.grace,
    )
    database = world.shared()
    loop = asyncio.new_event_loop()  # not closed: a thread that waits for a database would be waited for
    asyncio.set_event_loop(loop)

    def retired() -> None:
        if handle is not None:
            os.close(handle)

    async def working() -> bool:
        return await Worker(world, database, orders, retired).work(ready)

    return loop.run_until_complete(working())


def _alone(world: World) -> int | None:
    """Hold a lock for as long as this process lives; None where another one has it and stays. One that is
    about to end is waited for: whoever called us may count on nobody else."""
    file = private_folder(world.folders.runtime) / "worker.lock"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    end = time.monotonic() + _HANDOVER
    while not _locked(handle):
        if time.monotonic() > end or _is_served(world):
            os.close(handle)
            return None
        time.sleep(_BETWEEN)
    return handle


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_served(world: World) -> bool:
    """Whether somebody is there, and stays, who carries out whatever comes."""
    from remuda.dispatch.tasks import workers

    with closing(world.shared()) as database:
        return any(map(workers.serves_all, workers.living(database, world.config.tasks.lease)))


def status(world: World) -> WorkStatus:
    """Who works, and how much there is to do."""
    from remuda.dispatch.tasks import workers

    with closing(world.shared()) as database:
        living = {worker.id for worker in workers.living(database, world.config.tasks.lease)}
        known = workers.known(database)
        queued, running = workers.load(database)
    views = tuple(
        WorkerView(
            id=worker.id,
            host="here" if worker.host == place() else worker.host.partition("/")[0],
            pid=pid_of(worker.process),
            alive=worker.id in living,
            agents=msgspec.json.decode(worker.agents, type=tuple[str, ...]),
            tags=msgspec.json.decode(worker.tags, type=tuple[str, ...]),
            slots=worker.slots,
            running=running.get(worker.id, 0),
            since=rfc3339(worker.started_at),
            seen=rfc3339(worker.seen_at),
        )
        for worker in known
    )
    return WorkStatus(workers=views, queued=queued, running=sum(running.values()))


def stop(world: World) -> int:
    """Tell the workers on this machine to end, and wait until they have; how many there were."""
    from remuda.core.identity import lives
    from remuda.dispatch.tasks import workers

    with closing(world.shared()) as database:
        found = [worker.process for worker in workers.known(database) if worker.host == place()]
    told = [process for process in found if lives(process) and _told_to_end(process)]
    while any(lives(process) for process in told):
        time.sleep(0.02)
    return len(told)


def _told_to_end(process: str) -> bool:
    """Tell a worker to end; not one of another user."""
    try:
        os.kill(pid_of(process), signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return False
    return True
