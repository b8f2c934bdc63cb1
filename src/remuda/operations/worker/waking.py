"""Wakes the workers when there is something new, and starts one where none would ever look.

On one machine every worker listens at a private datagram socket, and one is started on demand, detached from
whoever asks for it. Where a server keeps the tasks, it also passes the word on, and nothing is started: what
may run on which machine is for people to say.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import SubprocessError

from remuda.core.sql import Database, StoreGoneError
from remuda.core.sqlite import SqliteDatabase
from remuda.dispatch.tasks import store, workers
from remuda.dispatch.tasks.model import Task
from remuda.operations.worker import starting
from remuda.operations.world import World

CHANNEL = "remuda_tasks"
"""Where a server passes the word on."""

LONGEST_PATH = 107
"""The longest path that fits into the address of a unix socket, in bytes."""

_SELDOM = 5.0

NOBODY = (
    "no worker that is alive would carry this out: start one with 'remuda worker' on a machine that "
    "uses the same database"
)
UNHEARD = "it is on record, but nobody could be told of it: 'remuda task wait' looks for somebody again"


def ensure(world: World, database: Database, task: Task) -> str:
    """See to it that somebody carries a task out: wake the workers and, on one machine, start one where none
    lives that would take it. Nothing waits for it; what a person has to know where nobody comes. Whatever
    goes wrong here, the task is on record, and whoever handed it in must not believe otherwise."""
    try:
        living = workers.living(database, world.config.tasks.lease)
        knock(database, [worker.wake for worker in living])
        if any(workers.serves(worker, task.agent, task.tag) for worker in living):
            return ""
        if not isinstance(database, SqliteDatabase):
            return NOBODY
        starting.start(world)
    except (StoreGoneError, OSError, SubprocessError):
        return UNHEARD
    return ""


def knock(database: Database, places: list[str]) -> None:
    """Wake workers at once. One that does not hear it looks by itself some seconds later."""
    if not isinstance(database, SqliteDatabase):
        with database.transaction() as t:
            t.rows("SELECT pg_notify(?, '')", CHANNEL)
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as caller:
        caller.setblocking(False)
        for place in filter(None, places):
            with contextlib.suppress(OSError), addressed(Path(place)) as address:
                caller.sendto(b"", address)


class Attendant:
    """For whoever waits for tasks: looks now and then whether somebody lives who would carry them out, and
    starts a worker on this machine where the last one died."""

    def __init__(self, world: World, database: Database) -> None:
        self._world = world
        self._database = database
        self._due = 0.0

    def look(self, tasks: tuple[str, ...]) -> None:
        """Look, if it is time to."""
        if time.monotonic() < self._due or not isinstance(self._database, SqliteDatabase):
            return
        self._due = time.monotonic() + _SELDOM
        living = workers.living(self._database, self._world.config.tasks.lease)
        for agent, tag in store.wanted(self._database, tasks):
            if not any(workers.serves(worker, agent, tag) for worker in living):
                starting.start(self._world)
                return


@contextlib.contextmanager
def addressed(path: Path) -> Iterator[str]:
    """How to name a socket: by its path or, where that is too long, through a handle of its folder."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{path.name}"
    finally:
        os.close(handle)
