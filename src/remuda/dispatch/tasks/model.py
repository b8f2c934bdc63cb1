"""What a task is, which states it can be in, and which steps lead from one to another."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core.errors import ErrorKind

TaskState = Literal["queued", "running", "succeeded", "failed", "cancelled", "interrupted", "expired"]

FINAL: frozenset[TaskState] = frozenset({"succeeded", "failed", "cancelled", "interrupted", "expired"})
"""States that nothing leads out of."""

STEPS: dict[TaskState, frozenset[TaskState]] = {
    "queued": frozenset({"running", "cancelled", "expired"}),
    "running": frozenset({"queued", "succeeded", "failed", "cancelled", "interrupted"}),
    **dict.fromkeys(FINAL, frozenset()),
}
"""Only a task whose agent was never started goes back into the queue."""

Phase = Literal["claimed", "starting", "answering", "ended"]
"""How far an attempt has come: nothing was started yet; the agent may have been; it has answered; it is over.
The row says so before the thing itself is done. One that was broken off stays where it had come to."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One row without what may be long. ``key`` makes a submission happen once; ``cancel`` is why it is to be
    cancelled, while it still runs; ``worker`` carries it out now; ``attempts`` counts claims too that came to
    nothing, and so tells each holder from every other."""

    id: str
    state: TaskState
    key: str | None = None
    agent: str | None = None
    tag: str | None = None
    priority: int = 0
    created_at: float
    expires_at: float | None = None
    not_before: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    worker: str | None = None
    attempts: int = 0
    takeovers: int = 0
    cancel: str | None = None
    session: str | None = None
    error_kind: ErrorKind | None = None
    error: str | None = None
    last_seq: int = 0
    revision: int = 0


class Task(Summary, frozen=True, kw_only=True):
    """One row; ``request`` is the run's request as JSON, without its prompt, ``result`` what came of it."""

    prompt: str
    request: str
    result: str | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one agent for a task. ``session`` is ours, ``runtime_session`` the agent's own."""

    task: str
    number: int
    agent: str
    worker: str
    phase: Phase
    session: str | None = None
    runtime_session: str | None = None
    began_at: float
    ended_at: float | None = None
    outcome: str | None = None


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A process that carries tasks out: for which agents and tags (JSON lists; an empty one means any), how
    many at a time, and where it is woken."""

    id: str
    host: str
    process: str
    agents: str
    tags: str
    slots: int
    wake: str
    started_at: float
    seen_at: float


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed in. ``expires_in`` is how many seconds it may wait for its start."""

    prompt: str
    request: str
    agent: str | None = None
    tag: str | None = None
    key: str | None = None
    priority: int = 0
    expires_in: float | None = None


class Held(msgspec.Struct, frozen=True):
    """The right to carry a task out: whoever holds an older one of the same task changes nothing any more."""

    task: str
    worker: str
    attempt: int


class Claimed(msgspec.Struct, frozen=True):
    """A task that is ours to carry out, and the attempts before this one."""

    task: Task
    held: Held
    earlier: tuple[Attempt, ...] = ()


class Calling(msgspec.Struct, frozen=True):
    """Which agent is called in an attempt, in which session of ours and, where it is known, of its own."""

    agent: str
    session: str | None = None
    runtime_session: str | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A final state and what there is to say about it; ``result`` is JSON."""

    state: TaskState
    result: str | None = None
    error_kind: ErrorKind | None = None
    error: str | None = None
    session: str | None = None


class Duty(msgspec.Struct, frozen=True):
    """A task that is on record as a worker's own, and why it is to be cancelled, if it is."""

    held: Held
    cancel: str | None = None


class Served(msgspec.Struct, frozen=True):
    """What a worker carries out: tasks for these agents or tags, all where neither is named; those for the
    agents in ``without``, or for a tag in ``untagged``, it leaves alone for now."""

    agents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    untagged: tuple[str, ...] = ()


def begun(attempts: tuple[Attempt, ...]) -> Attempt | None:
    """The last attempt in which an agent may have been started; None where certainly none was."""
    return next((attempt for attempt in reversed(attempts) if attempt.phase != "claimed"), None)


def may_become(before: TaskState, after: TaskState) -> bool:
    """Whether a task can take this step."""
    return after in STEPS[before]
