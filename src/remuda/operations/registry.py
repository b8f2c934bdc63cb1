"""The table of operations: what each of them is asked, what it answers, and who carries it out.

Surfaces that serve programs are made from it. It imports all operations, so that it is for processes that
stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from remuda.core.events import Event
from remuda.dispatch.resolve import Resolution
from remuda.operations import agents, runtimes, usage, worktrees
from remuda.operations import run as running
from remuda.operations import send as sending
from remuda.operations import worker as workers
from remuda.operations.peer import messaging, presence
from remuda.operations.remote import acting, world_of
from remuda.operations.requests import RunRequest, Span
from remuda.operations.session import looking as sessions
from remuda.operations.session import showing, speaking
from remuda.operations.session.requests import path
from remuda.operations.task import cancelling, following, submitting
from remuda.operations.task import looking as tasks
from remuda.operations.task.requests import (
    ListRequest,
    Seq,
    SubmitRequest,
    Submitted,
    Tasks,
    TaskShown,
    Waited,
    WaitRequest,
)
from remuda.operations.world import World
from remuda.usage.report import Report

_R = TypeVar("_R", bound=msgspec.Struct)
_Environ = Mapping[str, str]


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing needs to be said."""


class WhichRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that a request without a name means, or one with this name."""

    agent: str | None = None


class AllRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Those that are alive, or ``all`` that are on record."""

    all: bool = False


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A session by its id or its name."""

    session: str


class SayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt for a session, which is waited for up to so many seconds; with ``follow`` the events up to the
    end of its turn are told, too."""

    session: str
    text: str
    wait: Span = 60.0
    follow: bool = False


class EventsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a session behind a number, and with ``follow`` those to come."""

    session: str
    since: Seq = 0
    follow: bool = False


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A task by its id; its prompt is told on request only."""

    id: str
    prompt: bool = False


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A task to be cancelled."""

    id: str


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a task behind a number."""

    id: str
    since: Seq = 0


class PeerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A peer by its id or its name."""

    peer: str


class InboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that wait for a peer, or for whoever asks; ``all``: those that have arrived, too."""

    peer: str | None = None
    all: bool = False


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation. It has an ``answered`` or a ``stream``; ``body`` is its request together with the folder
    that it is about and the variables that it brings along; ``answers`` are the types of what it may say.
    ``acts``: it does more than look."""

    name: str
    summary: str
    request: type[msgspec.Struct]
    answers: tuple[type[msgspec.Struct], ...]
    body: type[msgspec.Struct]
    answered: Callable[[World, Any], Awaitable[object]] | None = None
    stream: Callable[[World, Any], AsyncGenerator[object]] | None = None
    acts: bool = False

    def understood(self, body: bytes, own: _Environ, caller: str) -> tuple[World, msgspec.Struct]:
        """The request in a body that a process sent, the ``caller``, and the world to carry it out in."""
        asked: Any = msgspec.json.decode(body or b"{}", type=self.body, dec_hook=path)
        world = world_of(str(asked.cwd) if asked.cwd else None, asked.environ, own, caller)
        plain = self.request(**{name: getattr(asked, name) for name in self.request.__struct_fields__})
        return (acting(world, caller) if self.acts else world), plain


def _body(name: str, request: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """A request with what is added to it on its way."""
    added: list[tuple[str, Any, Any]] = [("environ", dict[str, str], msgspec.field(default_factory=dict))]
    if "cwd" not in request.__struct_fields__:
        added.append(("cwd", str | None, None))
    title = "".join(part.capitalize() for part in name.split("."))
    return msgspec.defstruct(
        f"{title}Body",
        added,
        bases=(request,),
        module=__name__,
        namespace={"__doc__": request.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _awaited(
    name: str,
    summary: str,
    request: type[_R],
    answer: type[msgspec.Struct],
    function: Callable[[World, _R], Awaitable[object]],
    *,
    acts: bool = False,
) -> Operation:
    """An operation that answers after a while."""
    return Operation(
        name=name,
        summary=summary,
        request=request,
        answers=(answer,),
        body=_body(name, request),
        answered=function,
        acts=acts,
    )


def _answered(
    name: str,
    summary: str,
    request: type[_R],
    answer: type[msgspec.Struct],
    function: Callable[[World, _R], object],
    *,
    acts: bool = False,
) -> Operation:
    """An operation that answers at once, as far as it is concerned; it is called in a thread."""

    async def aside(world: World, asked: _R) -> object:
        return await asyncio.to_thread(function, world, asked)

    return _awaited(name, summary, request, answer, aside, acts=acts)


def _streamed(
    name: str,
    summary: str,
    request: type[_R],
    function: Callable[[World, _R], AsyncGenerator[object]],
    *,
    lines: tuple[type[msgspec.Struct], ...] = (Event,),
    acts: bool = False,
) -> Operation:
    """An operation that tells events."""
    return Operation(
        name=name,
        summary=summary,
        request=request,
        answers=lines,
        body=_body(name, request),
        stream=function,
        acts=acts,
    )


async def _runtimes(world: World, _asked: Nothing) -> runtimes.Runtimes:
    return await runtimes.runtimes(world)


async def _show(world: World, asked: SessionRequest) -> showing.Shown:
    return await showing.show(world, asked.session)


async def _stop(world: World, asked: SessionRequest) -> sessions.Seen:
    return sessions.seen(await speaking.stop(world, asked.session))


_ALL = (
    _answered(
        "which",
        "Which agent is active, and why.",
        WhichRequest,
        Resolution,
        lambda world, asked: agents.which(world, asked.agent, full=True),
    ),
    _answered(
        "agents",
        "The agents that can be called.",
        Nothing,
        agents.Agents,
        lambda world, _: agents.agents(world),
    ),
    _awaited("runtimes", "The supported agent CLIs.", Nothing, runtimes.Runtimes, _runtimes),
    _answered("usage", "Tokens and cost of all agents.", usage.UsageRequest, Report, usage.usage),
    _streamed(
        "run",
        "Run an agent on a prompt; hanging up ends it.",
        RunRequest,
        lambda world, asked: running.run(world, asked, asyncio.Event()),
        acts=True,
    ),
    _answered("task.submit", "Put a task on record.", SubmitRequest, Submitted, submitting.submit, acts=True),
    _answered(
        "task.get",
        "All that is known of a task.",
        TaskRequest,
        TaskShown,
        lambda world, asked: tasks.get(world, asked.id, prompt=asked.prompt),
    ),
    _answered("task.list", "Tasks, the newest first.", ListRequest, Tasks, tasks.listed),
    _awaited("task.wait", "Wait until tasks have ended.", WaitRequest, Waited, following.wait),
    _streamed(
        "task.watch",
        "The events of a task, to its result.",
        WatchRequest,
        lambda world, asked: following.watch(world, asked.id, asked.since),
    ),
    _answered(
        "task.cancel",
        "Cancel a task.",
        CancelRequest,
        TaskShown,
        lambda world, asked: cancelling.cancel(world, asked.id),
        acts=True,
    ),
    _answered(
        "peer.list",
        "Live sessions that can be messaged.",
        AllRequest,
        presence.Peers,
        lambda world, asked: messaging.listed(world, all_=asked.all),
    ),
    _answered(
        "peer.show",
        "All that is known of a peer.",
        PeerRequest,
        presence.Shown,
        lambda world, asked: messaging.show(world, asked.peer),
    ),
    _awaited(
        "peer.post",
        "Put a message into a peer's inbox.",
        messaging.PostRequest,
        messaging.Posted,
        messaging.post,
        acts=True,
    ),
    _awaited(
        "peer.reply",
        "Answer a message.",
        messaging.ReplyRequest,
        messaging.Posted,
        messaging.reply,
        acts=True,
    ),
    _awaited(
        "peer.broadcast",
        "Put a message into the inboxes of all peers.",
        messaging.ToAll,
        messaging.Broadcast,
        messaging.broadcast,
        acts=True,
    ),
    _answered(
        "peer.inbox",
        "The messages of a peer; looking takes nothing.",
        InboxRequest,
        messaging.Inbox,
        lambda world, asked: messaging.read(world, asked.peer, all_=asked.all),
    ),
    _answered(
        "peer.acknowledge",
        "Say that messages have arrived.",
        messaging.Received,
        messaging.Received,
        messaging.acknowledge,
        acts=True,
    ),
    _answered(
        "peer.register",
        "Make a session known that nobody else tells of.",
        messaging.RegisterRequest,
        presence.Shown,
        messaging.register,
        acts=True,
    ),
    _answered(
        "peer.heartbeat",
        "Give a sign of life of a peer, or its last one.",
        messaging.Heartbeat,
        presence.Shown,
        messaging.heartbeat,
        acts=True,
    ),
    _streamed(
        "send",
        "Send a prompt to a live session of an agent, or to a fresh run.",
        sending.SendRequest,
        lambda world, asked: sending.send(world, asked, asyncio.Event()),
        lines=(sending.Sent, Event, sending.Heard),
        acts=True,
    ),
    _answered(
        "worker.status",
        "The processes that carry tasks out.",
        Nothing,
        workers.WorkStatus,
        lambda world, _: workers.status(world),
    ),
    _answered(
        "worktree.list",
        "Worktrees of isolated runs.",
        Nothing,
        worktrees.Worktrees,
        lambda world, _: worktrees.worktrees(world),
    ),
    _answered(
        "session.list",
        "Sessions, the newest first.",
        AllRequest,
        sessions.Sessions,
        lambda world, asked: sessions.Sessions(
            [sessions.seen(each) for each in sessions.listed(world, all_=asked.all)]
        ),
    ),
    _awaited("session.show", "All that is known of a session.", SessionRequest, showing.Shown, _show),
    _streamed(
        "session.send",
        "Send a prompt to a session: accepted, then a receipt.",
        SayRequest,
        lambda world, asked: speaking.send(
            world, asked.session, asked.text, follow=asked.follow, wait=asked.wait
        ),
        lines=(speaking.Accepted, speaking.Receipt, Event),
        acts=True,
    ),
    _awaited("session.stop", "End a session.", SessionRequest, sessions.Seen, _stop, acts=True),
    _streamed(
        "session.events",
        "The events of a session.",
        EventsRequest,
        lambda world, asked: speaking.events(world, asked.session, since=asked.since, follow=asked.follow),
    ),
)

OPERATIONS: Mapping[str, Operation] = {each.name: each for each in _ALL}
"""Operations by name."""
