"""The proxy by which listed hosts are reached from inside a sandbox."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.integration.sandboxes import listener

from remuda.sandbox.egress import proxy
from remuda.sandbox.hosts import Host
from remuda.sandbox.relay import attend
from remuda.sandbox.spec import Egress


@contextlib.contextmanager
def proxied(*allow: Host, upstream: str = "") -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        attend([server], proxy(Egress(0, allow, upstream)))
        yield int(server.getsockname()[1])
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def ask(port: int, request: str) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as peer:
        peer.sendall(request.encode("latin-1"))
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
    return answer.decode("latin-1")


class TestEgress:
    def test_a_tunnel_to_whom_is_listed(self) -> None:
        with listener() as somebody, proxied(Host("127.0.0.1", somebody.port, True)) as port:
            answer = ask(port, f"CONNECT 127.0.0.1:{somebody.port} HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer.startswith("HTTP/1.1 200")
            assert answer.endswith("welcome")

    def test_a_plain_request_is_passed_on_without_what_is_ours(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            target = int(server.getsockname()[1])
            heard: list[bytes] = []

            def serve() -> None:
                peer, _ = server.accept()
                with peer:
                    heard.append(peer.recv(65536))
                    peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

            threading.Thread(target=serve, daemon=True).start()
            with proxied(Host("127.0.0.1", target, True)) as port:
                head = (
                    f"GET http://127.0.0.1:{target}/a?b HTTP/1.1\r\nHost: evil\r\nProxy-Authorization: x\r\n"
                )
                assert ask(port, f"{head}Accept: y\r\n\r\n").startswith("HTTP/1.1 204")
        lines = heard[0].decode().split("\r\n")
        assert lines[:2] == ["GET /a?b HTTP/1.1", f"Host: 127.0.0.1:{target}"]
        assert "Accept: y" in lines
        assert "x" not in " ".join(lines)

    @pytest.mark.parametrize(
        ("request_line", "status", "reason"),
        [
            ("CONNECT evil.example:443 HTTP/1.1", "403", "host not on allowlist: evil.example:443"),
            ("CONNECT localhost:443 HTTP/1.1", "403", "localhost is an address of a private network"),
            ("CONNECT localhost:22 HTTP/1.1", "403", "host not on allowlist: localhost:22"),
            ("CONNECT localhost HTTP/1.1", "400", "no host and port"),
            ("GET / HTTP/1.1", "400", "takes absolute addresses"),
            ("GET ftp://localhost/ HTTP/1.1", "400", "takes absolute addresses"),
            ("GET http://localhost:99999/ HTTP/1.1", "400", "no address"),
            ("GET http://[x/ HTTP/1.1", "400", "no address"),
            ("GET http://8.8.8.8\0.localhost.invalid/ HTTP/1.1", "400", "no name of a host"),
            ("CONNECT 8.8.8.8\0.localhost.invalid:443 HTTP/1.1", "400", "no host and port"),
            ("CONNECT *.localhost.invalid:443 HTTP/1.1", "400", "no name of a host"),
            ("GET http://localhost/ HTTP/1.1", "403", "private network"),
            ("nonsense", "400", "no request"),
            ("CONNECT .localhost.invalid:443 HTTP/1.1", "400", "no name of a host"),
            ("GET http://a..localhost.invalid/ HTTP/1.1", "400", "no name of a host"),
            ("CONNECT 2130706433:443 HTTP/1.1", "400", "no host and port"),
            ("CONNECT no-such-host.invalid:443 HTTP/1.1", "502", "cannot be reached"),
        ],
    )
    def test_everybody_else_is_refused_and_told_why(
        self, request_line: str, status: str, reason: str
    ) -> None:
        allow = (Host("localhost"), Host("no-such-host.invalid"), Host(".localhost.invalid"))
        with proxied(*allow) as port:
            answer = ask(port, f"{request_line}\r\nHost: x\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 {status}")
        assert reason in answer.partition("X-Deny-Reason: ")[2].partition("\r\n")[0]

    def test_the_proxy_of_the_machine_is_used_for_those_outside(self) -> None:
        with listener() as somebody, proxied(Host("127.0.0.1", somebody.port, True)) as outer:
            entry = Host("127.0.0.1", somebody.port, private=False)
            with proxied(entry, upstream=f"http://me:secret@127.0.0.1:{outer}") as port:
                answer = ask(port, f"CONNECT 127.0.0.1:{somebody.port} HTTP/1.1\r\n\r\n")
                assert answer.endswith("welcome")
            refusing = Host("127.0.0.1", 1, private=False)
            with proxied(refusing, upstream=f"http://127.0.0.1:{outer}") as port:
                assert ask(port, "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 502")
