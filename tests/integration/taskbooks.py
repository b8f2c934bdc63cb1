"""What the tests of tasks on record share."""

from __future__ import annotations

import os

import msgspec

from remuda.core.events import Event, message
from remuda.core.identity import identity, place
from remuda.core.sql import Database
from remuda.dispatch.tasks import carrying, workers
from remuda.dispatch.tasks.model import Claimed, Served, Submission, TaskState

ANY = Served()
ENDINGS: tuple[TaskState, ...] = ("succeeded", "failed", "cancelled", "interrupted")


def asked(**more: object) -> Submission:
    return msgspec.convert({"prompt": "do it", "request": "{}", **more}, Submission)


def told(text: str = "word") -> Event:
    return Event(v=1, seq=0, session="s", agent="a", time="", update=message(text))


def register(db: Database, name: str, **more: object) -> None:
    fields = {"host": place(), "process": identity(os.getpid()), "served": ANY, "slots": 4, **more}
    workers.register(db, msgspec.convert({"id": name, **fields}, workers.Registration))


def claim_one(db: Database, worker: str = "one") -> Claimed:
    (claimed,) = carrying.claim(db, worker, ANY, 1)
    return claimed
