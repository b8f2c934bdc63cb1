"""The application: ``POST /v1/NAME`` for every operation, and a description of all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from remuda.core import log
from remuda.core.errors import EXIT_NOT_FOUND, EXIT_REFUSED, EXIT_USAGE, RemudaError
from remuda.operations.registry import OPERATIONS, Operation
from remuda.operations.world import World
from remuda.surfaces.http.errors import ErrorDocument, Trouble, told
from remuda.surfaces.http.openapi import document

LARGEST = 16 * 1024 * 1024
"""Bytes of a request's body."""

_JSON, _LINES = "application/json", "application/x-ndjson"
_SOON = 2.0
"""Seconds that a stream waits for its first line before it says that all is well."""

_PATIENCE = 30.0
"""Seconds for a request's body to arrive."""

_SAID = dict.fromkeys((404, 405), "an operation is called by POST /v1/NAME")
_KINDS = {403: ("refused", EXIT_REFUSED), 404: ("not_found", EXIT_NOT_FOUND)}
_T = TypeVar("_T")


def application(environ: Mapping[str, str]) -> Starlette:
    """The application of a process with this environment."""

    async def call(request: Request) -> Response:
        if _by_page(request):
            return _refused()
        operation = OPERATIONS.get(request.path_params["name"])
        if operation is None:
            return _failed(404, "there is no operation of this name")
        try:
            world, asked = await _understood(request, operation, environ)
            if operation.stream is not None:
                return _Stream(operation.stream(world, asked), request.receive)
            assert operation.answered is not None
            return _document(200, await _unless_gone(request.receive, operation.answered(world, asked)))
        except HTTPException:
            raise
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            if not isinstance(error, RemudaError):
                log.warn("an operation failed", operation=operation.name, error=type(error).__name__)
            return _document(*told(error))

    made = Starlette(
        routes=[
            Route("/v1/openapi.json", _described),
            Route("/v1/{name}", call, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _no_operation, Exception: _mistaken},
    )
    made.router.redirect_slashes = False
    return made


def _by_page(request: Request) -> bool:
    """Whether a browser asks for a page: somebody has made a port of the socket, and any page could call."""
    return not {"origin", "sec-fetch-site"}.isdisjoint(request.headers)


def _refused() -> Response:
    return _failed(403, "a web page asks")


async def _described(request: Request) -> Response:
    if _by_page(request):
        return _refused()
    return Response(await asyncio.to_thread(document), media_type=_JSON)


def _no_operation(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _failed(status, _SAID.get(status) or str(getattr(error, "detail", "")))


def _mistaken(_request: Request, error: Exception) -> Response:
    return _document(*told(error))


async def _understood(
    request: Request, operation: Operation, environ: Mapping[str, str]
) -> tuple[World, msgspec.Struct]:
    """What is asked, and the world to do it in; :class:`HTTPException` where nobody can tell."""
    try:
        async with asyncio.timeout(_PATIENCE):
            body = await _body(request)
    except TimeoutError:
        raise HTTPException(408, "the request did not arrive in time") from None
    try:
        return await asyncio.to_thread(operation.understood, body, environ, request.state.caller)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HTTPException(400, f"the request cannot be understood: {error}") from None


async def _body(request: Request) -> bytes:
    _check_size(int(request.headers.get("content-length", 0)))
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        _check_size(size)
        pieces.append(piece)
    return b"".join(pieces)


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise HTTPException(413, f"a request has at most {LARGEST} bytes")


def _document(status: int, answer: object) -> Response:
    return Response(msgspec.json.encode(answer, enc_hook=str), status, media_type=_JSON)


def _failed(status: int, message: str) -> Response:
    """A request that reaches no operation."""
    kind, code = _KINDS.get(status, ("usage", EXIT_USAGE))
    return _document(status, ErrorDocument(Trouble(kind, message, "GET /v1/openapi.json tells all.", code)))


async def _gone(receive: Receive) -> None:
    """Wait until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless_gone(receive: Receive, work: Awaitable[_T]) -> _T:
    """Do something for a client; it is given up where the client is gone."""
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait([doing, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        await _ended(doing, leaving)


async def _ended(*tasks: asyncio.Future[_T] | asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


class _Stream(Response):
    """What an operation tells, a line each. An error before the first line has a status of its own, a later
    one is the last line. Where the client hangs up, the operation ends."""

    def __init__(self, lines: AsyncGenerator[object], receive: Receive) -> None:
        self._lines, self._receive = lines, receive
        self.background = None

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        telling = asyncio.ensure_future(self._tell(send))
        leaving = asyncio.ensure_future(_gone(self._receive))
        try:
            await asyncio.wait([telling, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(telling, leaving)

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._lines) as lines:
            first = asyncio.ensure_future(anext(lines, None))
            try:
                await self._told(first, lines, send)
            finally:
                await _ended(first)

    async def _told(self, first: asyncio.Future[object], lines: AsyncGenerator[object], send: Send) -> None:
        begun = False
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(first), _SOON)
            begun = True
            await _begin(send, 200, _LINES)
            if (line := await first) is not None:
                await _say(send, line)
                async for line in lines:
                    await _say(send, line)
        except Exception as error:
            status, said = told(error)
            if not begun:
                await _begin(send, status, _JSON)
            await _say(send, said)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _begin(send: Send, status: int, kind: str) -> None:
    headers = [(b"content-type", kind.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _say(send: Send, line: object) -> None:
    text = msgspec.json.encode(line, enc_hook=str).replace(b"\n", b" ") + b"\n"
    await send({"type": "http.response.body", "body": text, "more_body": True})
