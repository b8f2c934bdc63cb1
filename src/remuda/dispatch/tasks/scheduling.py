"""What a worker decides: what it does with a task that another one had begun, and when it has to give up."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core.errors import ErrorKind
from remuda.dispatch.tasks.model import Attempt, Claimed, TaskState, begun

TAKEOVERS = 3
"""How often a task is taken over before it is left as it is: one that kills its workers must not kill all."""

Way = Literal["fresh", "resume", "give_up"]


class Course(msgspec.Struct, frozen=True):
    """How to go on with a task: from its beginning, in the session of an earlier attempt, or not at all."""

    way: Way
    earlier: Attempt | None = None
    reason: str = ""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the agent's part ended; the result itself is the last event. ``reason`` is there where no agent
    gave one. ``queued``: it was not the agent's turn, and the task waits for that without a slot."""

    state: TaskState
    reason: str = ""
    kind: ErrorKind | None = None


def course(claimed: Claimed, resumable: bool) -> Course:
    """How to go on. Only what certainly was never begun is begun: a prompt is never given twice."""
    earlier = begun(claimed.earlier)
    if earlier is None:
        return Course("fresh")
    if not resumable:
        return Course("give_up", earlier, "its agent's session cannot be continued here")
    if claimed.task.takeovers > TAKEOVERS:
        return Course("give_up", earlier, f"it was taken over {TAKEOVERS} times and did not come to an end")
    return Course("resume", earlier)


def beat(lease: float) -> float:
    """Seconds between two signs of life."""
    return lease / 3


def fenced(silent: float, lease: float) -> bool:
    """Whether a worker that has not reached the database for so long has to end its agents by itself, because
    others are about to take its tasks over."""
    return silent > lease * 0.7


def last_moment(lease: float) -> float:
    """Seconds of silence after which the agents of a worker are killed, should it not have ended them."""
    return lease * 0.85


def moment(lease: float, late: float) -> float:
    """Seconds that a worker which goes on has to be heard of, so long after its last moment. One that slept
    through the end of its lease need not hurry: what others could take over, they have."""
    return beat(lease) if late > lease - last_moment(lease) else lease * 0.05
