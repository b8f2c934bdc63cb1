"""Looks at tasks: one, many, and those that are old enough to be let go of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from remuda.core import clock
from remuda.core.events import Result
from remuda.core.sql import Database
from remuda.dispatch.tasks import store
from remuda.dispatch.tasks.model import Attempt, Summary, Task
from remuda.operations.task.requests import (
    Cleared,
    Limit,
    ListRequest,
    TaskLine,
    Tasks,
    TaskShown,
    Try,
    check,
    cwd_of,
    failure,
)
from remuda.operations.world import World

_BATCH = 500


@contextmanager
def opened(world: World) -> Iterator[Database]:
    """The database of tasks, for as long as it is needed."""
    database = world.shared()
    try:
        yield database
    finally:
        database.close()


def get(world: World, name: str, *, prompt: bool = False) -> TaskShown:
    """All that is known of a task; its prompt only on request."""
    with opened(world) as database:
        return shown(database, store.find(database, name), prompt=prompt)


def listed(world: World, which: ListRequest) -> Tasks:
    """Tasks, the newest first."""
    check("limit", Limit, which.limit)
    with opened(world) as database:
        store.expire_due(database)
        before = which.before and store.find(database, which.before)
        asked = store.Listing(
            states=which.states, agent=which.agent, limit=which.limit + 1, before=before or None
        )
        found = store.listed(database, asked)
    page = found[: which.limit]
    return Tasks([_line(task) for task in page], page[-1].id if len(found) > len(page) > 0 else None)


def recent(world: World) -> list[str]:
    """The ids of the newest tasks, for a shell to complete."""
    with opened(world) as database:
        return [task.id for task in store.listed(database, store.Listing())]


def gc(world: World, days: float | None = None) -> Cleared:
    """Let go of tasks that ended so many days ago, or as many as the configuration says."""
    kept, forgotten = float(world.config.tasks.retention_days) if days is None else days, 0
    with opened(world) as database:
        while gone := len(store.sweep(database, kept, _BATCH)):
            forgotten += gone
    return Cleared(forgotten)


def shown(database: Database, ident: str, *, prompt: bool = False) -> TaskShown:
    """The public view of a task. One whose time is up has expired, also if no worker was there to see it."""
    store.expire_due(database)
    task, attempts = store.get(database, ident)
    result = None if task.result is None else msgspec.json.decode(task.result, type=Result)
    return TaskShown(
        id=task.id,
        state=task.state,
        agent=_agent(task, attempts),
        tag=task.tag,
        result=result,
        error=failure(task.error_kind, task.error),
        usage=result.usage if result else None,
        cost_usd=result.cost_usd if result else None,
        attempts=[_try(each) for each in attempts],
        takeovers=task.takeovers,
        session=task.session,
        worker=task.worker,
        key=task.key,
        priority=task.priority,
        cwd=cwd_of(task.request),
        created_at=clock.rfc3339(task.created_at),
        expires_at=_time(task.expires_at),
        started_at=_time(task.started_at),
        ended_at=_time(task.ended_at),
        cancel=task.cancel,
        last_seq=task.last_seq,
        prompt=task.prompt if prompt else None,
    )


def _agent(task: Task, attempts: tuple[Attempt, ...]) -> str | None:
    return (attempts[-1].agent if attempts else None) or task.agent


def _try(attempt: Attempt) -> Try:
    return Try(
        number=attempt.number,
        agent=attempt.agent or None,
        worker=attempt.worker,
        phase=attempt.phase,
        session=attempt.session,
        runtime_session=attempt.runtime_session,
        began_at=clock.rfc3339(attempt.began_at),
        ended_at=_time(attempt.ended_at),
        outcome=attempt.outcome,
    )


def _line(task: Summary) -> TaskLine:
    return TaskLine(
        id=task.id,
        state=task.state,
        agent=task.agent,
        tag=task.tag,
        priority=task.priority,
        created_at=clock.rfc3339(task.created_at),
        started_at=_time(task.started_at),
        ended_at=_time(task.ended_at),
        error=failure(task.error_kind, task.error),
    )


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else clock.rfc3339(seconds)
