"""Speaks to a session that runs: prompts with a receipt, interruptions, a person's word, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from remuda.core import identity
from remuda.core.errors import UsageError
from remuda.core.events import Event, Question
from remuda.operations.session import keyboard, looking, panes
from remuda.operations.world import World
from remuda.prompts import delivery
from remuda.sessions import eventlog, orders
from remuda.sessions.live import ConnectionState
from remuda.sessions.orders import Accepted, AnyOrder, AnyReply, GoneError, Receipt
from remuda.sessions.store import Session

__all__ = (
    "Accepted",
    "ConnectionState",
    "GoneError",
    "Receipt",
    "Session",
    "decide",
    "events",
    "get_state",
    "interrupt",
    "questions",
    "running",
    "send",
    "stop",
)

_STOPPING = 30.0
"""Seconds that a keeper has to end its session; one that hangs is ended itself, and all that it started."""

_QUESTION = msgspec.json.Decoder(Question)


def running(world: World, word: str) -> Session:
    """A session that can be spoken to."""
    session = looking.found(world, word)
    if session.state == "exited":
        why = f": {session.failure}" if session.failure else ""
        raise UsageError(
            f"session {word} has ended{why}", f"Take it up again with 'remuda session resume {word}'."
        )
    if session.mode == "headless":
        raise UsageError(
            f"session {word} is a single run, which takes no further prompts",
            "Start one that does with 'remuda session start'.",
        )
    return session


async def send(
    world: World, word: str, text: str, *, follow: bool = False, wait: float = 60.0, ident: str = ""
) -> AsyncGenerator[Accepted | Receipt | Event]:
    """Send a prompt: it is accepted, then there is a receipt, and with ``follow`` what happens up to the end
    of the turn. A pane must be ready for it within so many seconds; a keeper lets it wait for its turn. Under
    an ``ident`` of the caller's it is sent only once, however often that is asked."""
    delivery.check_prompt(text)
    session = running(world, word)
    if session.mode == "tmux":
        async for said in keyboard.send(world, session, text, follow=follow, wait=wait, ident=ident):
            yield said
        return
    async with aclosing(_told(world, session, orders.Send(text=text, follow=follow, ident=ident))) as replies:
        async for reply in replies:
            if isinstance(reply, orders.Told):
                yield reply.event
            elif isinstance(reply, Accepted | Receipt):
                yield reply


async def interrupt(world: World, word: str) -> Session:
    """End the turn under way; the session goes on."""
    session = running(world, word)
    if session.mode == "tmux":
        return await keyboard.interrupt(world, session)
    await _done(world, session, orders.Interrupt())
    end = asyncio.get_running_loop().time() + world.config.sessions.abort_within + 5
    while asyncio.get_running_loop().time() < end:
        session = looking.found(world, session.id)
        if session.state not in ("working", "waiting"):
            return session
        await asyncio.sleep(0.05)
    return session


async def decide(world: World, word: str, question: str | None, *, allowed: bool, reason: str) -> str:
    """A person's word about a tool call that waits for it; the only one, unless it is named."""
    session = running(world, word)
    if session.mode == "tmux":
        return await keyboard.decide(world, session, allowed=allowed)
    waiting = await questions(world, session)
    known = {each.id: each for each in waiting}
    if question is None and len(waiting) != 1:
        names = ", ".join(known) or "none"
        raise UsageError(
            f"{len(waiting)} tool calls wait for an answer: {names}", "Name the one that you mean."
        )
    ident = question or waiting[0].id
    if ident not in known:
        raise UsageError(f"no tool call {ident} waits for an answer", "See 'remuda session show'.")
    said = reason or ("a person agreed" if allowed else "a person said no")
    await _done(world, session, orders.Decide(question=ident, allowed=allowed, reason=said))
    return known[ident].title


async def questions(world: World, session: Session) -> list[Question]:
    """The tool calls that wait for a person's word."""
    if session.mode != "connection" or session.state == "exited":
        return []
    being = await _being(world, session)
    return [_QUESTION.decode(raw) for raw in being.questions]


async def get_state(world: World, word: str) -> ConnectionState:
    """What the agent is doing, as the keeper knows it or the screen shows it; one that has ended is an
    error."""
    session = looking.found(world, word)
    if session.state == "exited":
        return ConnectionState("error")
    if session.mode != "connection":
        return ConnectionState("idle" if session.state == "ready" else "working")
    being = await _being(world, session)
    return ConnectionState(being.status, being.current_tool)


async def _being(world: World, session: Session) -> orders.Being:
    async with aclosing(_told(world, session, orders.Ask())) as replies:
        async for reply in replies:
            if isinstance(reply, orders.Being):
                return reply
    raise GoneError("the keeper of this session went away", "Look with 'remuda session show', or resume it.")


async def stop(world: World, word: str) -> Session:
    """End a session and everything that belongs to it."""
    session = looking.found(world, word)
    if session.state == "exited":
        return session
    if session.mode == "tmux":
        return await panes.stop(world, session)
    if session.mode == "headless":
        raise UsageError(f"session {word} is a single run", "End it where it runs, with Ctrl-C.")
    try:
        async with asyncio.timeout(_STOPPING):
            await _done(world, session, orders.Stop())
    except GoneError:
        pass
    except TimeoutError:
        if session.holder:
            identity.kill(session.holder)
        return looking.lost(world, session, "the keeper did not answer, and was ended")
    return looking.found(world, session.id)


async def events(world: World, word: str, *, since: int = 0, follow: bool = False) -> AsyncGenerator[Event]:
    """The events of a session behind a number, and with ``follow`` those to come, until it ends."""
    session = looking.found(world, word)
    if not follow or session.state == "exited" or session.mode != "connection":
        for event in eventlog.recorded(panes.record_folder(world, session), since):
            yield event
        return
    async with aclosing(_told(world, session, orders.Follow(since=since))) as replies:
        async for reply in replies:
            if isinstance(reply, orders.Told):
                yield reply.event


async def _told(world: World, session: Session, order: AnyOrder) -> AsyncGenerator[AnyReply]:
    folder = orders.folder_of(world.folders.runtime, session.id)
    async with aclosing(orders.tell(folder, order)) as replies:
        async for reply in replies:
            yield reply


async def _done(world: World, session: Session, order: AnyOrder) -> None:
    async with aclosing(_told(world, session, order)) as replies:
        async for _ in replies:
            pass
