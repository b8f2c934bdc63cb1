"""Messages between peers: sent to one or to all, answered, read; and peers that make themselves known."""

from __future__ import annotations

import contextlib
from typing import Literal

import msgspec

from remuda.core import clock
from remuda.core.errors import NotFoundError, RemudaError, UsageError
from remuda.core.identity import identity
from remuda.core.sql import Database
from remuda.operations.peer import attending, delivery, presence
from remuda.operations.peer.delivery import Outcome
from remuda.operations.peer.presence import Peers, Shown, shared
from remuda.operations.requests import Span
from remuda.operations.session.requests import check_name
from remuda.operations.world import World
from remuda.peers import inbox, registry
from remuda.peers.inbox import Draft, PeerGoneError
from remuda.peers.model import PERSON, Kind, Message, Passage, Peer, Sighting, State, this_host
from remuda.prompts.delivery import check_prompt

_READ = "inbox"
_FORGOTTEN = 30 * 86_400.0
"""Seconds after which a peer that is gone is forgotten, with what it was sent."""


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A message as people and programs see it."""

    id: str
    sender: str
    kind: Kind
    text: str
    task: str | None
    reply_to: str | None
    state: Passage
    channel: str
    proof: str
    deliveries: int
    created_at: str


class Inbox(msgspec.Struct, frozen=True):
    """The messages of a peer, the oldest first."""

    peer: str
    messages: list[Letter]


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a message to a peer; ``error`` where it was not accepted."""

    peer: str
    message: str | None
    receipt: Outcome | None
    error: str | None = None


class Broadcast(msgspec.Struct, frozen=True):
    """What has become of a message to many."""

    sent: list[Posted]


class PostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a peer."""

    to: str
    text: str
    kind: Literal["query", "notification"] = "query"
    task: str | None = None
    key: str | None = None
    ready_within: Span = 10.0


class ToAll(msgspec.Struct, frozen=True, kw_only=True):
    """A message to all peers, or to those of a runtime, or whose agent carries a tag."""

    text: str
    runtime: str | None = None
    tag: str | None = None
    ready_within: Span = 10.0


class ReplyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a message, by its id."""

    message: str
    text: str
    ready_within: Span = 10.0


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that somebody has, by their ids."""

    messages: list[str]


class RegisterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who makes a session known. Without a process it has to be heard of every minute."""

    runtime: str
    name: str = ""
    agent: str | None = None
    cwd: str | None = None
    runtime_session: str | None = None
    pane: str | None = None
    pid: int | None = None
    role: str = ""


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A peer, and the state that it is in."""

    name: str
    state: State = "online"


def _letter(database: Database, message: Message) -> Letter:
    sender = registry.get(database, message.sender)
    fields = {field.name: getattr(message, field.name) for field in msgspec.structs.fields(Letter)}
    told = {
        "sender": sender.name if sender else message.sender,
        "created_at": clock.rfc3339(message.created_at),
    }
    return msgspec.convert({**fields, **told}, Letter)


def _there(world: World, database: Database) -> list[Peer]:
    """Who is there. Whoever looks also has that done which somebody has left undone."""
    peers = presence.look(world, database)
    attending.ensure(world, database, peers)
    return peers


def listed(world: World, *, all_: bool = False) -> Peers:
    """All peers that are there, or that are on record."""
    with shared(world) as database:
        registry.forget(database, _FORGOTTEN)
        there = _there(world, database)
        return Peers(
            [
                presence.shown(database, peer)
                for peer in (registry.listed(database, all_=True) if all_ else there)
            ]
        )


def show(world: World, word: str) -> Shown:
    """One peer."""
    with shared(world) as database:
        _there(world, database)
        return presence.shown(database, registry.find(database, word))


def read(world: World, word: str | None, *, all_: bool = False, take: bool = False) -> Inbox:
    """The messages that wait for a peer, or for whoever asks. Looking takes nothing; ``take`` does, for the
    time until :func:`acknowledge`."""
    with shared(world) as database:
        peers = _there(world, database)
        peer = registry.find(database, word) if word else presence.myself(world, database, peers)
        messages = inbox.lease(database, peer.id) if take else inbox.peek(database, peer.id, all_=all_)
        return Inbox(peer.name, [_letter(database, each) for each in messages])


def acknowledge(world: World, received: Received) -> Received:
    """Messages have arrived with whoever looked for them; which of them had not before."""
    with shared(world) as database:
        known = dict.fromkeys(received.messages)
        return Received(
            messages=[each for each in known if inbox.ack(database, [each], _READ, "read by its owner")]
        )


async def post(world: World, request: PostRequest) -> Posted:
    """Send a message to a peer, and bring it there where we can."""
    check_prompt(request.text)
    with shared(world) as database:
        peers = _there(world, database)
        peer = registry.find(database, request.to)
        draft = Draft(
            peer=peer.id,
            sender=presence.myself(world, database, peers).id,
            text=request.text,
            kind=request.kind,
            task=request.task,
            key=request.key,
        )
        return await _posted(world, database, peer, draft, request.ready_within)


async def _posted(world: World, database: Database, peer: Peer, draft: Draft, wait: float) -> Posted:
    """Put a message on record, then bring it to its peer, if we can; somebody does that later otherwise."""
    if draft.sender == draft.peer:
        raise UsageError("a message to oneself goes nowhere", "Name another peer: 'remuda peer list'.")
    if peer.state == "offline" and draft.live:
        raise PeerGoneError(f"{peer.name} is not there any more", "See who is: 'remuda peer list'.")
    message = inbox.enqueue(database, draft)
    receipt = delivery.outcome(database, message.id)
    if peer.state != "offline":
        async with contextlib.aclosing(
            delivery.deliver(world, database, peer, message.id, wait=wait if peer.state == "online" else 0)
        ) as said:
            async for each in said:
                if isinstance(each, Outcome):
                    receipt = each
        attending.ensure(world, database, [peer])
    return Posted(peer=peer.name, message=message.id, receipt=receipt)


async def reply(world: World, answer: ReplyRequest) -> Posted:
    """Answer a message: whoever sent it gets it, and it belongs to the same task."""
    check_prompt(answer.text)
    with shared(world) as database:
        question = inbox.get(database, answer.message.strip().upper())
        if question is None:
            raise NotFoundError(f"there is no message {answer.message}", "See 'remuda peer inbox --all'.")
        peers = _there(world, database)
        asker = registry.get(database, question.sender)
        if asker is None:
            raise NotFoundError(
                "whoever sent that message is not known any more", "See 'remuda peer list --all'."
            )
        draft = Draft(
            peer=asker.id,
            sender=_answering(question, presence.callers(world, peers)),
            text=answer.text,
            kind="reply",
            task=question.task,
            reply_to=question.id,
            live=False,
        )
        return await _posted(world, database, asker, draft, answer.ready_within)


def _answering(question: Message, callers: list[Peer]) -> str:
    """Who answers a message: the session that does so, or a person for whoever was asked."""
    above = [peer.id for peer in callers]
    return question.peer if not above or question.peer in above else above[0]


async def broadcast(world: World, request: ToAll) -> Broadcast:
    """Send a message to everybody who is there, and tell of each what became of it."""
    check_prompt(request.text)
    tagged = None if request.tag is None else {agent.name for agent in world.roster.tagged(request.tag)}
    with shared(world) as database:
        peers = _there(world, database)
        me = presence.myself(world, database, peers)
        above = {me.id, *(peer.id for peer in presence.callers(world, peers))}
        sent = []
        for peer in peers:
            if peer.id in above or peer.runtime == PERSON or request.runtime not in (None, peer.runtime):
                continue
            if tagged is not None and peer.agent not in tagged:
                continue
            draft = Draft(peer=peer.id, sender=me.id, text=request.text, kind="broadcast")
            try:
                sent.append(await _posted(world, database, peer, draft, request.ready_within))
            except RemudaError as error:
                sent.append(Posted(peer=peer.name, message=None, receipt=None, error=error.message))
        return Broadcast(sent)


def register(world: World, request: RegisterRequest) -> Shown:
    """Make a session known that nobody else tells of."""
    if request.name:
        check_name(request.name)
    if request.runtime not in world.herd:
        raise NotFoundError(f"there is no runtime named {request.runtime!r}", "See 'remuda runtimes'.")
    agent = world.roster.get(request.agent) if request.agent else None
    if agent is not None and agent.runtime != request.runtime:
        raise UsageError(
            f"{agent.name} is an agent of {agent.runtime}", "Name that runtime, or leave it out."
        )
    with shared(world) as database:
        peer = registry.register(
            database,
            Sighting(
                agent=agent.name if agent else request.runtime,
                runtime=request.runtime,
                host=this_host(),
                cwd=request.cwd or str(world.cwd),
                name=request.name,
                runtime_session=request.runtime_session,
                pane=request.pane,
                process=identity(request.pid) if request.pid else None,
                role=request.role,
                source="register",
            ),
        )
        return presence.shown(database, peer)


def heartbeat(world: World, beat: Heartbeat) -> Shown:
    """A sign of life of a peer; ``offline`` is its last."""
    with shared(world) as database:
        peer = registry.find(database, beat.name)
        registry.note(database, peer.id, beat.state)
        return presence.shown(database, registry.get(database, peer.id) or peer)
