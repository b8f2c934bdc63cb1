"""Sessions that last, for programs: the documented verbs of a connection, blocking or asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TypedDict

from remuda.api.blocking import iterate
from remuda.core.errors import UsageError
from remuda.core.events import Event, Question, Result
from remuda.operations.requests import RunRequest
from remuda.operations.session import looking, panes, showing, speaking, starting
from remuda.operations.session.looking import Seen
from remuda.operations.session.requests import StartRequest, Wanted
from remuda.operations.session.showing import Shown
from remuda.operations.session.speaking import ConnectionState, GoneError, Receipt
from remuda.operations.session.starting import ResumeRequest
from remuda.operations.world import World
from remuda.runtimes.base import Permission

__all__ = ("AsyncSession", "ConnectionState", "Receipt", "Seen", "Session", "SessionOptions", "Shown")

READY = 120.0
"""Seconds that a session may take until it is ready for prompts."""


class SessionOptions(TypedDict, total=False):
    """What a session can be told besides its first prompt; see ``remuda session start --help``."""

    agent: str | None
    tag: str | None
    nested: bool
    model: str | None
    capability: str | None
    worktree: Path | None
    branch_prefix: str | None
    unproven: bool
    permission: Permission
    sandbox: str | None
    unsafe_yes: bool
    append_system_prompt: str | None
    idle_timeout: float | None
    env: Mapping[str, str]


class AsyncSession:
    """One session, by its id: whoever started it, it is the same for every program of this user."""

    def __init__(self, world: World, ident: str) -> None:
        self._world = world
        self.id = ident

    async def send_prompt(self, text: str, *, wait: float = 60.0) -> Receipt:
        """Send a prompt; the receipt says what proves that it has arrived. Over a connection it waits for its
        turn; a pane must be ready for it within so many seconds."""
        async with aclosing(speaking.send(self._world, self.id, text, wait=wait)) as said:
            async for each in said:
                if isinstance(each, Receipt):
                    return each
        raise GoneError("the session ended before the prompt arrived", "Look with 'remuda session show'.")

    follow_up = send_prompt
    """A further prompt in the same conversation, once the turn under way has ended."""

    async def ask(self, text: str) -> Result:
        """Send a prompt and wait for the end of its turn. How that ended, a failure too, is in the result. A
        pane has no results: what its program answers is on its screen."""
        if looking.found(self._world, self.id).mode == "tmux":
            raise UsageError(
                "what an agent in a pane answers is only on its screen",
                "Use send_prompt() and screen(), or a session with mode='connection'.",
            )
        result: Result | None = None
        async with aclosing(speaking.send(self._world, self.id, text, follow=True)) as said:
            async for each in said:
                if isinstance(each, Event):
                    result = each.result
        if result is None:
            raise GoneError("the session ended in the middle of the turn", "Look with 'remuda session show'.")
        return result

    async def abort(self) -> Seen:
        """End the turn under way; the session goes on."""
        return looking.seen(await speaking.interrupt(self._world, self.id))

    async def get_state(self) -> ConnectionState:
        """What the agent is doing: idle, working (with the tool that runs), or not there any more."""
        return await speaking.get_state(self._world, self.id)

    async def close(self) -> Seen:
        """End the session and everything that belongs to it; it can be resumed."""
        return looking.seen(await speaking.stop(self._world, self.id))

    async def events(self, since: int = 0, follow: bool = True) -> AsyncGenerator[Event]:
        """The events behind a number, and with ``follow`` those to come, until the session ends. A pane has
        none."""
        async with aclosing(speaking.events(self._world, self.id, since=since, follow=follow)) as events:
            async for event in events:
                yield event

    async def questions(self) -> list[Question]:
        """The tool calls that wait for a person's word."""
        return await speaking.questions(self._world, looking.found(self._world, self.id))

    async def approve(self, question: str | None = None) -> str:
        """Let a tool call run that waits; the only one, unless it is named by its id."""
        return await speaking.decide(self._world, self.id, question, allowed=True, reason="")

    async def reject(self, question: str | None = None, reason: str = "") -> str:
        """Refuse a tool call that waits; the reason is told to the agent."""
        return await speaking.decide(self._world, self.id, question, allowed=False, reason=reason)

    async def show(self) -> Shown:
        """All that is known of it: its true state, what waits in it, its usage and cost."""
        return await showing.show(self._world, self.id)

    async def screen(self, history: bool = False) -> str:
        """What its pane shows."""
        return panes.capture(self._world, speaking.running(self._world, self.id), history=history)


class Session:
    """The same for ordinary, blocking programs."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session
        self.id = session.id

    def send_prompt(self, text: str, *, wait: float = 60.0) -> Receipt:
        """Send a prompt; the receipt says what proves that it has arrived. Over a connection it waits for its
        turn; a pane must be ready for it within so many seconds."""
        return asyncio.run(self._session.send_prompt(text, wait=wait))

    follow_up = send_prompt
    """A further prompt in the same conversation, once the turn under way has ended."""

    def ask(self, text: str) -> Result:
        """Send a prompt and wait for the end of its turn. How that ended, a failure too, is in the result. A
        pane has no results: what its program answers is on its screen."""
        return asyncio.run(self._session.ask(text))

    def abort(self) -> Seen:
        """End the turn under way; the session goes on."""
        return asyncio.run(self._session.abort())

    def get_state(self) -> ConnectionState:
        """What the agent is doing: idle, working (with the tool that runs), or not there any more."""
        return asyncio.run(self._session.get_state())

    def close(self) -> Seen:
        """End the session and everything that belongs to it; it can be resumed."""
        return asyncio.run(self._session.close())

    def events(self, since: int = 0, follow: bool = True) -> Generator[Event]:
        """The events behind a number, and with ``follow`` those to come, until the session ends. A pane has
        none."""
        return iterate(self._session.events(since, follow))

    def questions(self) -> list[Question]:
        """The tool calls that wait for a person's word."""
        return asyncio.run(self._session.questions())

    def approve(self, question: str | None = None) -> str:
        """Let a tool call run that waits; the only one, unless it is named by its id."""
        return asyncio.run(self._session.approve(question))

    def reject(self, question: str | None = None, reason: str = "") -> str:
        """Refuse a tool call that waits; the reason is told to the agent."""
        return asyncio.run(self._session.reject(question, reason))

    def show(self) -> Shown:
        """All that is known of it: its true state, what waits in it, its usage and cost."""
        return asyncio.run(self._session.show())

    def screen(self, history: bool = False) -> str:
        """What its pane shows."""
        return asyncio.run(self._session.screen(history))


async def begin(
    world: World,
    name: str,
    mode: Wanted,
    prompt: str | None,
    consent: tuple[str, ...],
    wait: float,
    options: SessionOptions,
) -> AsyncSession:
    """Start a session, and send its first prompt once it is ready; the session comes back as it is, with a
    dialog in the way too, unless a prompt could not be sent for that."""
    run = RunRequest(prompt=prompt or "", **options)
    request = StartRequest(name=name, mode=mode, consent=consent, wait=wait, run=run)
    begun = await starting.start(world, request, _quiet)
    session = AsyncSession(world, begun.id)
    if prompt:
        if begun.state != "ready":
            raise UsageError(
                f"session {name} is {begun.state}, and so its first prompt was not sent",
                f"Look with 'remuda session screen {name}', answer with 'remuda session attach {name}'.",
            )
        await session.send_prompt(prompt)
    return session


async def take_up(world: World, request: ResumeRequest) -> AsyncSession:
    """Resume a session that has ended."""
    return AsyncSession(world, (await starting.resume(world, request, _quiet)).id)


def known(world: World, name: str) -> AsyncSession:
    """The session of this name or id; an error if there is none."""
    return AsyncSession(world, looking.found(world, name).id)


def listed(world: World, all_: bool) -> list[Seen]:
    """The sessions that run, or all, the newest first."""
    return [looking.seen(row) for row in looking.listed(world, all_=all_)]


def _quiet(_text: str) -> None:
    """Nobody reads along."""
