"""HTTP for the scripted model: routes, answers, and the ways an answer can go wrong on purpose."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from remuda.rehearsal import brain, wire_anthropic, wire_chat, wire_gemini, wire_responses
from remuda.rehearsal.body import BodyError, read_body
from remuda.rehearsal.exchange import Ask, Fault
from remuda.rehearsal.journal import Journal, Visit
from remuda.rehearsal.scenario import Step
from remuda.rehearsal.wire import Frame, Wire

WIRES = (wire_anthropic.WIRE, wire_responses.WIRE, wire_chat.WIRE)
ROUTES = {path: wire for wire in WIRES for path in wire.paths}
MODELS = ("claude-sonnet-4-5", "claude-haiku-4-5", "gpt-5.4", "gpt-5.4-mini")

_CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_LOCAL_NAMES = ("127.0.0.1", "localhost")
_NOT_FOUND = b'{"error":{"message":"The rehearsal has no such path","type":"not_found_error","code":null}}'


class CutError(Exception):
    """The connection is to end here, without a proper ending."""


class Listener(ThreadingHTTPServer):
    """The listening socket, with every open connection known so that stopping never waits for a client."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], step: Callable[[Ask], Step], journal: Journal) -> None:
        self.step = step
        self.journal = journal
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news; anything else is shown by the base class."""
        if not isinstance(sys.exception(), (OSError, CutError)):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Stop listening and end every connection, also those that a scenario leaves hanging."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: Listener
    protocol_version = "HTTP/1.1"
    server_version = "remuda-rehearsal"
    sys_version = ""
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Nothing is printed per request; the journal has it."""

    @property
    def _route(self) -> str:
        return urlsplit(self.path).path

    @property
    def _authorised(self) -> bool:
        return any(self.headers.get(name) for name in _CREDENTIALS)

    def _note(self, status: int, api: str = "", ask: Ask | None = None, body: bytes = b"") -> None:
        self.server.journal.note(Visit(self._route, status, self._authorised, api, ask, body))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self._route == "/rehearsal/requests":
            self._send_journal()
            return
        pages = {"/": b'{"rehearsal":true}', "/v1/models": _models(), "/models": _models()}
        page = pages.get(self._route)
        self._note(200 if page else 404)
        if page:
            self._send(200, page)
        else:
            self._send(404, _NOT_FOUND)

    def _send_journal(self) -> None:
        """Prompts are for this machine only: a page that got here by a foreign host name gets nothing."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host in _LOCAL_NAMES or host.startswith("127."):
            self._send(200, msgspec.json.encode(self.server.journal.heard()))
        else:
            self._send(403, b'{"error":{"message":"Ask for this by a loopback address"}}')

    def do_POST(self) -> None:
        wire = ROUTES.get(self._route) or wire_gemini.wire_at(self._route)
        try:
            body = read_body(self.headers, self.rfile)
        except BodyError as problem:
            self.close_connection = True
            self._refuse(wire, Fault(problem.status, problem.message))
            return
        if self._route in wire_anthropic.COUNT_PATHS:
            self._note(200, wire_anthropic.WIRE.api, body=body)
            self._send(200, wire_anthropic.count(body))
        elif wire_gemini.counts_at(self._route):
            self._note(200, wire_gemini.API, body=body)
            self._send(200, wire_gemini.count(body))
        elif wire is None:
            self._note(404, body=body)
            self._send(404, _NOT_FOUND)
        else:
            self._converse(wire, body)

    def _converse(self, wire: Wire, body: bytes) -> None:
        try:
            ask = wire.decode(body)
        except (ValueError, RecursionError) as problem:
            self._refuse(wire, Fault(400, f"Not a request of this API: {problem}"), body)
            return
        step = self.server.step(ask)
        fault = brain.fault(step)
        status = 0 if step.hang else fault.status if fault else 200
        self._note(status, wire.api, ask, body)
        self._pause(step.delay)
        if step.hang:
            self._hang()
        elif fault:
            self._send(fault.status, wire.error(fault), fault.headers)
        else:
            self._answer(wire, ask, step)

    def _refuse(self, wire: Wire | None, fault: Fault, body: bytes = b"") -> None:
        self._note(fault.status, wire.api if wire else "", body=body)
        self._send(fault.status, (wire or wire_chat.WIRE).error(fault))

    def _answer(self, wire: Wire, ask: Ask, step: Step) -> None:
        answer = wire.encode(brain.reply(step, ask, uuid4().hex), ask)
        if isinstance(answer, bytes):
            self._send(200, answer, cut=step.drop)
        else:
            self._send_events(answer, step)

    def _pause(self, seconds: float) -> None:
        if seconds and self.server.closing.wait(seconds):
            raise CutError

    def _hang(self) -> None:
        """Wait until the client gives up or the server stops, whichever ends the connection."""
        self.connection.recv(1, socket.MSG_PEEK)
        raise CutError

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            raise CutError

    def _send_events(self, frames: Iterator[Frame], step: Step) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for frame in _until_cut(frames) if step.drop else frames:
            data = frame.render()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self._pause(step.pace if frame.text else 0)
        if step.drop:
            raise CutError
        self.wfile.write(b"0\r\n\r\n")


def _until_cut(frames: Iterator[Frame]) -> Iterator[Frame]:
    """The first part of a stream: up to its first piece of text, or half of it when there is none."""
    every = list(frames)
    text = next((place for place, frame in enumerate(every) if frame.text), len(every) // 2)
    yield from every[: text + 1]


def _models() -> bytes:
    """A list of models that readers of either vendor's format accept."""
    data = [
        {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "rehearsal",
            "type": "model",
            "display_name": name,
            "created_at": "2025-01-01T00:00:00Z",
        }
        for name in MODELS
    ]
    page = {"object": "list", "data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    return msgspec.json.encode(page)
