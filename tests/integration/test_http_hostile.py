"""Clients of the resident process that mean it ill, or break off."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from tests.integration.residents import FORBIDDEN, HARMLESS, ask, connected, pid_of
from tests.support import Site, eventually

MISLEADING: tuple[tuple[int, tuple[str, ...]], ...] = (
    (413, ("Host: x", "Content-Length: 99999999999")),  # without waiting for it
    (400, ("Host: x", "Content-Length: 2", "Content-Length: 3")),
    (400, ("Host: x", "Content-Length: -2")),
    (400, ("Host: x", "Transfer-Encoding: gzip, chunked")),
    (400, ("Host: x", "Transfer-Encoding : chunked")),
    (400, ("Host: a", "Host: b", "Content-Length: 2")),
    (400, ("Content-Length: 2",)),
    (400, ("Host: x", "X: a\0b", "Content-Length: 2")),
)
PAGES = ("Origin: https://example.com", "Origin: null", "Sec-Fetch-Site: same-origin")


def said(site: Site, *headers: str, line: str = "POST /v1/which") -> str:
    """How the answer to a request with these headers begins."""
    with connected(site) as peer:
        peer.settimeout(60)
        peer.sendall("\r\n".join((f"{line} HTTP/1.1", *headers, "", "{}")).encode())
        return peer.recv(12).decode()


def test_headers_that_mean_two_things_are_refused(serving: Site) -> None:
    for status, headers in MISLEADING:
        assert said(serving, *headers) == f"HTTP/1.1 {status}", headers


def test_a_web_page_is_refused(serving: Site) -> None:
    """It can only ask where somebody has made a port of the socket, and then every page could."""
    for header in PAGES:
        for line in ("POST /v1/which", "POST /v1/nothing", "GET /v1/openapi.json"):
            assert said(serving, "Host: localhost", "Content-Length: 2", header, line=line) == "HTTP/1.1 403"
    assert said(serving, "Host: localhost", "Content-Length: 2") == "HTTP/1.1 200"


def request(name: str, body: object, length: int | None = None) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST /v1/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: {length or len(data)}\r\n\r\n"
    return head.encode() + data


def test_who_breaks_off_leaves_nothing_behind(serving: Site) -> None:
    """Two hundred at once hang up before, within and behind their request, and in a stream."""
    assert said(serving, "Host: x", "Content-Length: 2") == "HTTP/1.1 200"
    handles = Path(f"/proc/{pid_of(serving)}/fd")
    before = len([*handles.iterdir()])
    run = {"prompt": "x", "agent": "rehearsal", "cwd": str(serving.cwd)}
    ways = (
        b"",
        b"POST /v1/wh",
        request("which", {}, length=1000),
        request("which", {}) * 20,
        *([request("task.list", {})] * 15),
        request("run", run),
    )

    def break_off(number: int) -> None:
        with connected(serving) as peer:
            peer.sendall(ways[number % len(ways)])

    crowd = [threading.Thread(target=break_off, args=(number,)) for number in range(200)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    assert (ask(serving, FORBIDDEN).code, ask(serving, HARMLESS).code) == (2, 0)
    eventually(lambda: len([*handles.iterdir()]) <= before)
    eventually(lambda: len(serving.processes()) == 1)
    assert said(serving, "Host: x", "Content-Length: 2") == "HTTP/1.1 200"
