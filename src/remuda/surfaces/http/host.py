"""Answers HTTP on sockets that somebody else has accepted, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import struct
import sys
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from remuda.core.identity import identity
from remuda.core.structs import prepare
from remuda.surfaces.http.app import application

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MOST = 256
"""Connections at a time; who comes on top of them is hung up on."""

_GRACE = 2.0
_SWITCH = 0.001
"""Seconds that a thread computes before another one gets its chance: verdicts do not wait for documents."""

_GARBAGE = 20_000
"""Objects after which garbage is looked for, among those that are made from now on."""

_LARGEST_HEAD = 64 * 1024
_HEAD = 5
"""Seconds within which a client has said what it wants, at first and after each answer."""


class _Protocol(H11Protocol):
    """HTTP in which nothing but a whole head stops the clock of the wait for a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        self.conn.receive_data(data)
        self.handle_events()


class HttpHost:
    """The host of the resident process for whatever is no hook."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        sys.setswitchinterval(_SWITCH)
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
        self._app = application(dict(os.environ if environ is None else environ))
        self._config = Config(
            self._app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
            timeout_keep_alive=_HEAD,
        )
        self._config.load()
        prepare()
        self._state = ServerState()
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        gc.enable()

    def take(self, peer: socket.socket) -> None:
        """Answer a client, whose first bytes have not been read yet."""
        if len(self._state.connections) >= MOST or self._loop.is_closed():
            peer.close()
            return
        peer.setblocking(False)
        asyncio.run_coroutine_threadsafe(self._connect(peer, _process(peer)), self._loop)

    async def _connect(self, peer: socket.socket, caller: str) -> None:
        def protocol() -> _Protocol:
            made = _Protocol(self._config, self._state, {}, self._loop)
            made.app = _calling(made.app, caller)
            return made

        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(protocol, peer)

    def busy(self) -> bool:
        """Whether any request is being answered; connections that ask nothing do not count."""
        return bool(self._state.tasks)

    def close(self) -> None:
        """End all requests, and wait a moment until they have."""
        ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        with contextlib.suppress(TimeoutError):
            ended.result(_GRACE)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _end(self) -> None:
        under_way = [*self._state.tasks]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=_GRACE)
        for connection in [*self._state.connections]:
            connection.transport.abort()


def _process(peer: socket.socket) -> str:
    """The process at the other end, by a name that no other one has."""
    known = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return identity(struct.unpack("3i", known)[0])


def _calling(app: ASGIApp, caller: str) -> ASGIApp:
    """The application as a process calls it."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["caller"] = caller
        await app(scope, receive, send)

    return called
