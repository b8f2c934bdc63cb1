"""What is asked about tasks, and what is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from remuda.core.errors import ErrorKind, UsageError
from remuda.core.events import Failure, Result, Usage
from remuda.dispatch.tasks.model import Phase, TaskState
from remuda.operations.requests import RunRequest

Priority = Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Ids = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Seq = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class SubmitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is to happen later, whatever happens to whoever asks for it. The same ``key`` again gives
    the same task; a higher ``priority`` goes first; ``expires_in`` is how many seconds it may wait for its
    start."""

    run: RunRequest
    key: str | None = None
    priority: Priority = 0
    expires_in: Seconds | None = None


class Submitted(msgspec.Struct, frozen=True):
    """A task that is on record. ``new`` is false where its key was known already; ``advice`` is what there is
    to do if nobody would carry it out."""

    id: str
    state: TaskState
    new: bool
    advice: str = ""


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one agent for a task."""

    number: int
    agent: str | None
    worker: str
    phase: Phase
    session: str | None
    runtime_session: str | None
    began_at: str
    ended_at: str | None
    outcome: str | None


class TaskShown(msgspec.Struct, frozen=True, kw_only=True):
    """A task as people and programs see it. ``agent`` is the one that has it now or had it last, or else the
    one that was asked for. ``last_seq`` is the number of its last event."""

    id: str
    state: TaskState
    agent: str | None
    tag: str | None
    result: Result | None
    error: Failure | None
    usage: Usage | None
    cost_usd: float | None
    attempts: list[Try]
    takeovers: int
    session: str | None
    worker: str | None
    key: str | None
    priority: int
    cwd: str | None
    created_at: str
    expires_at: str | None
    started_at: str | None
    ended_at: str | None
    cancel: str | None
    last_seq: int
    prompt: str | None = None


class TaskLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task in a list."""

    id: str
    state: TaskState
    agent: str | None
    tag: str | None
    priority: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    error: Failure | None


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks to list: of these states and for this agent, any where none is named; at most so many; the
    older ones behind the task ``before``."""

    states: tuple[TaskState, ...] = ()
    agent: str | None = None
    limit: Limit = 50
    before: str | None = None


class Tasks(msgspec.Struct, frozen=True):
    """Tasks, the newest first. ``next`` is where the list goes on, if it does."""

    tasks: list[TaskLine]
    next: str | None


class WaitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks to wait for: all of them, or the ``first`` that ends; at most so many seconds."""

    ids: Ids
    first: bool = False
    timeout: Seconds | None = None


class Waited(msgspec.Struct, frozen=True):
    """The tasks that were waited for, those that have ended first."""

    tasks: list[TaskShown]
    timed_out: bool


class Cleared(msgspec.Struct, frozen=True):
    """How many tasks were let go of."""

    forgotten: int


class _Cwd(msgspec.Struct):
    """The part of a request that is shown."""

    cwd: str | None = None


def check(what: str, kind: object, value: object) -> None:
    """Refuse a number that is not of its kind, whoever has made the request."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{what}: {error}", "See 'remuda task --help'.") from None


def packed(request: RunRequest) -> str:
    """A request as it is kept, without its prompt, which has a column of its own."""
    try:
        return msgspec.json.encode(msgspec.structs.replace(request, prompt=""), enc_hook=str).decode()
    except UnicodeEncodeError:
        raise UsageError("the request is not valid UTF-8", "Convert it to UTF-8 first.") from None


def unpacked(prompt: str, text: str) -> RunRequest:
    """The request that was kept."""
    request = msgspec.json.decode(text, type=RunRequest, dec_hook=_path)
    return msgspec.structs.replace(request, prompt=prompt)


def _path(kind: type, value: object) -> object:
    if kind is Path:
        return Path(str(value))
    raise TypeError(kind)


def cwd_of(text: str) -> str | None:
    """The folder of a request that is kept."""
    return msgspec.json.decode(text, type=_Cwd).cwd


def failure(kind: ErrorKind | None, message: str | None) -> Failure | None:
    """Two columns as one failure."""
    return Failure(kind, message or "") if kind else None
