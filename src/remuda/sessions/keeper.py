"""Keeps a connected session: the agent's process, its conversation, its record, and the socket for orders.

It is a process of its own, so that the session outlives the command that started it and dies alone. Where it
is killed, its reaper ends the agent, and the next look at the session finds that it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from remuda.core import clock
from remuda.core.children import followed
from remuda.core.events import Event, Failure, Question
from remuda.core.ids import ulid
from remuda.core.processes import Process
from remuda.hooks import standing
from remuda.runtimes.base import Connection, Phase
from remuda.sessions import orders, store
from remuda.sessions.eventlog import EventLog, recorded
from remuda.sessions.lifecycle import State
from remuda.sessions.live import Happening, Live, LostError, Patience, Sent

_STATES: dict[Phase, State] = {
    "opening": "starting",
    "idle": "ready",
    "working": "working",
    "closed": "exited",
}
_SOURCE = "protocol"
_PEER = struct.Struct("3i")


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper needs to know: where things are, how a prompt is put, how long a person has to answer.

    ``disarm`` is what keeps a prompt from being taken for something else; ``proof`` is what tells that one
    has arrived.
    """

    session: str
    agent: str
    database: Path
    place: Path
    record: Path
    channel: str
    proof: str
    disarm: Callable[[str], str]
    answer_within: float
    patience: Patience


class Keeper:
    """One session, from its first line to its last."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._log = EventLog(post.record, post.session, post.agent)
        self._listeners: set[asyncio.Queue[Event | None]] = set()
        self._phase: Phase = "opening"
        self._opened = asyncio.Event()
        self._over = asyncio.Event()
        self._stopping = False
        self._live: Live | None = None
        self._running: asyncio.Future[Failure | None] | None = None
        self._sent: dict[str, Sent] = {}

    async def keep(
        self, process: Process, connection: Connection, opened: Callable[[], None]
    ) -> Failure | None:
        """Converse and take orders until the agent has ended, and say why, unless it was asked to;
        ``opened`` is called once it takes prompts."""
        failure: Failure | None = None
        async with followed(process) as child, self._listening():
            live = self._live = Live(child, connection, self._tell, self._post.patience)
            for message in store.messages(self._post.database, self._post.session, ("queued",)):
                self._send(message.id, message.text or "")
            running = self._running = asyncio.ensure_future(live.run())
            waiting = asyncio.ensure_future(self._opened.wait())
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self._opened.is_set():
                opened()
            with contextlib.suppress(asyncio.CancelledError):
                failure = await running
        failure = None if self._stopping else failure
        self._end(failure)
        return failure

    def stop(self) -> None:
        """End the session: the turn first, then the conversation. What has not even begun is broken off."""
        self._stopping = True
        if self._phase == "opening" and self._running is not None:
            self._running.cancel()
        elif self._live is not None:
            self._live.abort()
            self._live.close()

    # ---- what happens

    def _tell(self, what: Happening) -> None:
        if isinstance(what, str):
            self._phase = what
            if what == "idle":
                self._opened.set()
        else:
            event = self._log.add(what)
            for listener in self._listeners:
                listener.put_nowait(event)
        if isinstance(what, Question):
            loop = asyncio.get_running_loop()
            loop.call_later(self._post.answer_within, self._give_up, what.id)
        self._remember()

    def _give_up(self, question: str) -> None:
        """Nobody has answered in time, and so the answer is no."""
        reason = f"nobody answered within {self._post.answer_within:g} s"
        assert self._live is not None
        self._live.decide(question, False, reason)
        self._remember()

    def _remember(self) -> None:
        """Put the state on record, unless it is there already."""
        if self._live is None or self._phase == "closed":
            return
        state: State = "waiting" if self._live.questions else _STATES[self._phase]
        native = self._live.runtime_session

        def seen(row: store.Session) -> store.Session:
            if (row.state, row.runtime_session) == (state, native or row.runtime_session):
                return row
            return msgspec.structs.replace(
                row,
                state=state,
                source=_SOURCE,
                seen_at=clock.rfc3339(clock.now()),
                runtime_session=native or row.runtime_session,
            )

        store.change(self._post.database, self._post.session, seen)

    def _end(self, failure: Failure | None) -> None:
        now = clock.rfc3339(clock.now())
        store.end(self._post.database, self._post.session, now, failure, _SOURCE)
        for listener in self._listeners:
            listener.put_nowait(None)
        self._over.set()

    # ---- orders

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        standing.prepare(self._post.place)
        listener = standing.listen(self._post.place, 16)
        server = await asyncio.start_unix_server(self._meet, sock=listener, limit=orders.LONGEST)
        try:
            yield
        finally:
            server.close()
            standing.clear(self._post.place)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one order from whoever may give one: nobody but our own user."""
        try:
            if _user(writer) != os.geteuid():
                return
            line = await reader.readline()
            await self._obey(msgspec.json.decode(line, type=orders.AnyOrder), _Replies(writer))
        except (ValueError, ConnectionError):  # not an order, or whoever gave it is gone
            pass
        finally:
            writer.close()

    async def _obey(self, order: orders.AnyOrder, replies: _Replies) -> None:
        live = self._live
        if live is None:
            await replies.say(orders.Failed(kind="start_failed", message="the session has not begun yet"))
            return
        match order:
            case orders.Send():
                await self._take(order, replies)
            case orders.Decide():
                await replies.say(self._decide(live, order))
            case orders.Interrupt():
                live.abort()
                await replies.say(orders.Done())
            case orders.Stop():
                self.stop()
                await replies.say(orders.Done())
                await self._over.wait()
            case orders.Ask():
                await replies.say(_being(live))
            case orders.Follow():
                await self._follow(order.since, replies)

    def _decide(self, live: Live, order: orders.Decide) -> orders.AnyReply:
        found = live.decide(order.question, order.allowed, order.reason)
        self._remember()
        if found:
            return orders.Done()
        return orders.Failed(kind="protocol", message=f"no tool call {order.question} waits for an answer")

    async def _take(self, order: orders.Send, replies: _Replies) -> None:
        """A prompt: on record first, then on its way. One that is on record already goes on from there."""
        ident, size, now = order.ident or ulid(), len(order.text.encode()), clock.rfc3339(clock.now())
        if order.ident and (known := store.message(self._post.database, order.ident)) is not None:
            await self._known(known, order, replies)
            return
        waiting = len(store.messages(self._post.database, self._post.session))
        store.accept(
            self._post.database,
            store.Message(
                id=ident,
                session=self._post.session,
                state="queued",
                text=order.text,
                bytes=size,
                created_at=now,
                moved_at=now,
            ),
        )
        listener = self._listen() if order.follow else None
        sent = self._send(ident, order.text)
        await replies.say(orders.Accepted(message=ident, before=waiting))
        try:
            if await self._acknowledged(ident, order, sent, replies) and listener is not None:
                await self._until(sent, listener, replies)
        finally:
            if listener is not None:
                self._listeners.discard(listener)

    async def _known(self, known: store.Message, order: orders.Send, replies: _Replies) -> None:
        """What has become of a prompt that came before."""
        await replies.say(orders.Accepted(message=known.id))
        if sent := self._sent.get(known.id):
            await self._acknowledged(known.id, order, sent, replies)
        elif known.state == "arrived":
            await replies.say(self._receipt(known.id, known.bytes))
        else:
            await replies.say(orders.Failed(kind="crashed", message="nobody knows whether it arrived"))

    async def _acknowledged(self, ident: str, order: orders.Send, sent: Sent, replies: _Replies) -> bool:
        """Say that a prompt has arrived, or why it never will; whether there is a turn to tell of. A turn may
        fail before its prompt is confirmed: whoever follows it hears that from its result."""
        try:
            await asyncio.shield(sent.arrived)
        except LostError as error:
            if order.follow and sent.answered.done() and sent.answered.exception() is None:
                return True
            await replies.say(orders.Failed(kind=error.failure.kind, message=error.failure.message))
            return False
        await replies.say(self._receipt(ident, len(order.text.encode())))
        return True

    def _receipt(self, ident: str, size: int) -> orders.Receipt:
        return orders.Receipt(
            message=ident,
            channel=self._post.channel,
            proof=self._post.proof,
            arrived_at=clock.rfc3339(clock.now()),
            bytes=size,
        )

    async def _until(self, sent: Sent, listener: asyncio.Queue[Event | None], replies: _Replies) -> None:
        """Tell what happens up to the end of the turn of a prompt."""
        while (event := await listener.get()) is not None:
            await replies.say(orders.Told(event=event))
            if event.result is not None and sent.answered.done():
                return

    def _send(self, ident: str, text: str) -> Sent:
        assert self._live is not None
        sent = self._live.send_prompt(self._post.disarm(text), lambda: self._moved(ident, "sent"))
        self._sent[ident] = sent
        sent.arrived.add_done_callback(lambda done: self._settled(ident, done))
        return sent

    def _settled(self, ident: str, done: asyncio.Future[None]) -> None:
        del self._sent[ident]
        if done.cancelled() or done.exception() is not None:
            self._moved(ident, "lost")
        else:
            self._moved(ident, "arrived", self._post.proof)

    def _moved(self, ident: str, state: store.MessageState, proof: str = "") -> None:
        """Put on record what became of a prompt: that it goes out, before it does, so that a resumption never
        sends it a second time."""
        store.move(self._post.database, ident, state, clock.rfc3339(clock.now()), proof)

    def _listen(self) -> asyncio.Queue[Event | None]:
        listener: asyncio.Queue[Event | None] = asyncio.Queue()
        self._listeners.add(listener)
        return listener

    async def _follow(self, since: int, replies: _Replies) -> None:
        listener = self._listen()
        try:
            for event in recorded(self._post.record, since):
                since = event.seq
                await replies.say(orders.Told(event=event))
            while (new := await listener.get()) is not None:
                if new.seq > since:
                    await replies.say(orders.Told(event=new))
        finally:
            self._listeners.discard(listener)


class _Replies:
    """Says things to whoever gave an order."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def say(self, reply: orders.AnyReply) -> None:
        self._writer.write(msgspec.json.encode(reply) + b"\n")
        await self._writer.drain()


def _being(live: Live) -> orders.Being:
    state = live.get_state()
    questions = tuple(msgspec.Raw(msgspec.json.encode(question)) for question in live.questions)
    return orders.Being(status=state.status, current_tool=state.current_tool, questions=questions)


def _user(writer: asyncio.StreamWriter) -> int | None:
    """Whose process is at the other end; our own where the system does not tell."""
    peer: socket.socket = writer.get_extra_info("socket")
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return os.geteuid()
    return int(_PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _PEER.size))[1])
