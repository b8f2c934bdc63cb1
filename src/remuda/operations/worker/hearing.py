"""How a worker hears that there is something new: at a private socket, or from the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from remuda.core.files import private_folder
from remuda.core.sql import Database
from remuda.core.sqlite import SqliteDatabase
from remuda.operations.worker.waking import CHANNEL, addressed

_PAUSE = 1.0
_LARGEST = 64


@contextlib.asynccontextmanager
async def ear(database: Database, place: Path, woken: asyncio.Event) -> AsyncIterator[str]:
    """Listen while the block lasts; where, if others have to know it."""
    if isinstance(database, SqliteDatabase):
        with _socket(place) as listener:
            loop = asyncio.get_running_loop()
            loop.add_reader(listener, _heard, listener, woken)
            try:
                yield str(place)
            finally:
                loop.remove_reader(listener)
                place.unlink(missing_ok=True)
        return
    listening = asyncio.create_task(_listen(database.url, woken))
    try:
        yield ""
    finally:
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


def _socket(place: Path) -> socket.socket:
    private_folder(place.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.setblocking(False)
    before = os.umask(0o177)
    try:
        with addressed(place) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    return listener


def _heard(listener: socket.socket, woken: asyncio.Event) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.recv(_LARGEST)
            woken.set()


async def _listen(url: str, woken: asyncio.Event) -> None:
    """Hear what the server passes on; a connection that breaks is made anew."""
    import psycopg

    while True:
        with contextlib.suppress(psycopg.Error, OSError):
            connection = await psycopg.AsyncConnection.connect(
                url, autocommit=True, connect_timeout=10, application_name="remuda worker"
            )
            async with connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                woken.set()
                async for _ in connection.notifies():
                    woken.set()
        await asyncio.sleep(_PAUSE)
