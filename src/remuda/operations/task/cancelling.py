"""Cancels tasks: those that wait at once, those that run by their worker, who ends the agent."""

from __future__ import annotations

import msgspec

from remuda.dispatch.tasks import store
from remuda.operations.task.looking import opened, shown
from remuda.operations.task.requests import TaskShown
from remuda.operations.worker import waking
from remuda.operations.world import World

REASON = "it was cancelled"


class Cancelled(msgspec.Struct, frozen=True):
    """Tasks that are cancelled, or about to be."""

    tasks: list[TaskShown]


def cancel(world: World, name: str, why: str = REASON) -> TaskShown:
    """Cancel a task. One that runs is ended by its worker, which is woken for that, or by the next one if it
    died; one that has ended stays as it is."""
    with opened(world) as database:
        task = store.request_cancel(database, store.find(database, name), why)
        if task.state == "running":
            waking.ensure(world, database, task)
        return shown(database, task.id)
