"""Tasks from a program, blocking and asynchronous, carried out by a worker in this machine's background."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.tasked import tasked as tasked
from tests.support import Site, alive, read_pid

from remuda import AsyncRemuda, Remuda
from remuda.core.errors import NotFoundError, RefusedError, UsageError


@pytest.fixture
def remuda(tasked: Site) -> Remuda:
    return Remuda(cwd=tasked.cwd, environ=tasked.env)


def test_a_task_is_handed_in_followed_and_looked_at(remuda: Remuda) -> None:
    submitted = remuda.submit("hello", agent="rehearsal", key="once", priority=3)
    assert (submitted.new, submitted.state, submitted.advice) == (True, "queued", "")
    assert remuda.submit("hello", agent="rehearsal", key="once").id == submitted.id
    events = list(remuda.watch(submitted.id))
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert events[-1].result is not None
    assert events[-1].result.text == "Heard hello, and done."
    assert list(remuda.watch(submitted.id, since=1)) == events[1:]
    task = remuda.task(submitted.id[:22])
    assert (task.state, task.result, task.priority) == ("succeeded", events[-1].result, 3)
    assert [each.id for each in remuda.tasks(states=("succeeded",)).tasks] == [submitted.id]
    assert remuda.tasks(states=("queued",)).tasks == []
    waited = remuda.wait(submitted.id)
    assert (waited.timed_out, waited.tasks) == (False, [task])


def test_one_that_runs_is_cancelled(remuda: Remuda, site: Site) -> None:
    ident = remuda.submit("hang", agent="rehearsal", permission="bypass").id
    pid = read_pid(site.cwd / "pid")
    assert remuda.wait(ident, timeout=0.1).timed_out
    watching = remuda.watch(ident)
    next(watching)
    watching.close()
    assert alive(pid)
    assert remuda.cancel(ident).cancel
    (task,) = remuda.wait(ident, timeout=50).tasks
    assert task.state == "cancelled"
    assert not alive(pid)


def test_many_at_once_from_one_program(remuda: Remuda, site: Site) -> None:
    async def all_of_them() -> list[str]:
        many = AsyncRemuda(cwd=site.cwd, environ=site.env)
        ids = [
            one.id
            for one in await asyncio.gather(*(many.submit(f"{n}", agent="rehearsal") for n in range(5)))
        ]
        waited = await many.wait(*ids, timeout=50)
        assert not waited.timed_out
        return [task.result.text for task in waited.tasks if task.result]

    assert sorted(asyncio.run(all_of_them())) == [f"Heard {n}, and done." for n in range(5)]


def test_what_cannot_be_raises(remuda: Remuda) -> None:
    with pytest.raises(UsageError):
        remuda.submit(" ", agent="rehearsal")
    with pytest.raises(UsageError):
        remuda.submit("hi", agent="rehearsal", priority=10**30)
    with pytest.raises(UsageError):
        remuda.submit("hi", agent="rehearsal", expires_in=float("nan"))
    with pytest.raises(UsageError, match="UTF-8"):
        remuda.submit("hi", agent="rehearsal", append_system_prompt="\udc80")
    with pytest.raises(RefusedError):
        remuda.submit("hi", agent="rehearsal", env={"A_TOKEN": "x"})
    for call in (remuda.task, remuda.cancel, remuda.wait):
        with pytest.raises(NotFoundError):
            call("01ZZ")
    with pytest.raises(NotFoundError):
        next(remuda.watch("01ZZ"))
    with pytest.raises(UsageError):
        remuda.tasks(limit=0)
    assert remuda.tasks().tasks == []
