"""What is said to the keeper of a session, and what it answers: JSON, a line each, over a socket of its own.

One order a connection; the keeper closes it when all is said.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.errors import ErrorKind, RemudaError, exit_code_for
from remuda.core.events import Event
from remuda.hooks import wire

LONGEST = 64 * 1024 * 1024
"""The longest line, in bytes: a prompt may be long."""


class Order(msgspec.Struct, frozen=True, tag_field="do", kw_only=True):
    """Base of everything that a keeper is told."""


class Send(Order, frozen=True, tag="send"):
    """A prompt. The answers: accepted, the receipt, and with ``follow`` the events up to its result. One that
    comes a second time under the same ``ident`` is not sent again."""

    text: str
    follow: bool = False
    ident: str = ""


class Interrupt(Order, frozen=True, tag="interrupt"):
    """End the turn under way."""


class Decide(Order, frozen=True, tag="decide"):
    """A person's word about a tool call."""

    question: str
    allowed: bool
    reason: str


class Stop(Order, frozen=True, tag="stop"):
    """End the session."""


class Ask(Order, frozen=True, tag="ask"):
    """How is it?"""


class Follow(Order, frozen=True, tag="follow"):
    """The events behind a number, and those to come."""

    since: int = 0


AnyOrder = Send | Interrupt | Decide | Stop | Ask | Follow


class Receipt(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="receipt"):
    """That a prompt has arrived: by which channel, and what proves it."""

    message: str
    channel: str
    proof: str
    arrived_at: str
    bytes: int


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="accepted"):
    """The prompt is on record and will be sent; ``before`` are those that wait for their turn, too."""

    message: str
    before: int = 0


class Told(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="event"):
    """Something that happened."""

    event: Event


class Being(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="being"):
    """How the session is."""

    status: Literal["idle", "working", "error"]
    current_tool: str | None = None
    questions: tuple[msgspec.Raw, ...] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="done"):
    """The order was carried out."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="said", tag="failed"):
    """It was not, and why."""

    kind: ErrorKind
    message: str


AnyReply = Receipt | Accepted | Told | Being | Done | Failed


class KeeperError(RemudaError):
    """A keeper refused or failed."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.kind = failed.kind
        self.exit_code = exit_code_for(failed.kind)


class GoneError(RemudaError):
    """Nobody keeps the session any more."""


def folder_of(runtime: Path, session_id: str) -> Path:
    """Where the keeper of a session is met."""
    return runtime / "sessions" / session_id


async def tell(folder: Path, order: AnyOrder) -> AsyncGenerator[AnyReply]:
    """Give an order and hear the answers; a failure among them is raised."""
    try:
        reader, writer = await _met(folder)
    except OSError:
        raise GoneError(
            "nobody keeps this session any more", "Look with 'remuda session show', or resume it."
        ) from None
    try:
        writer.write(msgspec.json.encode(order) + b"\n")
        await writer.drain()
        while line := await reader.readline():
            reply: AnyReply = msgspec.json.decode(line, type=AnyReply)
            if isinstance(reply, Failed):
                raise KeeperError(reply)
            yield reply
    except (ConnectionError, msgspec.MsgspecError):
        raise GoneError(
            "the keeper of this session went away", "Look with 'remuda session show', or resume it."
        ) from None
    finally:
        writer.close()


async def _met(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    path, handle = wire.address(str(folder))
    try:
        return await asyncio.open_unix_connection(path, limit=LONGEST)
    finally:
        if handle is not None:
            os.close(handle)
