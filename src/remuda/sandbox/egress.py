"""The way out of a sandbox: an HTTP proxy that lets an agent reach the hosts of a list, and nobody else.

It looks names up itself, so that a sandbox needs no name service, and connects to the address that it has
checked. Whom it refuses is told why in a header.
"""

import socket
from base64 import b64encode
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import unquote, urlsplit

from remuda.sandbox.hosts import Host, allowed, host, public
from remuda.sandbox.relay import Serve, exchange
from remuda.sandbox.spec import Egress

_LONGEST_HEAD = 64 * 1024
_PATIENCE = 30.0
_HOP = ("connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade")


class DeniedError(Exception):
    """A request that is not passed on, with a status and the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def proxy(egress: Egress) -> Serve:
    """Serves the connections of the agents."""

    def serve(peer: socket.socket) -> None:
        peer.settimeout(_PATIENCE)
        try:
            head, rest = _head(peer)
            method, target, version = _request(head)
            if method == "CONNECT":
                _tunnel(egress, peer, target, rest)
            else:
                _forward(egress, peer, (method, target, version), head, rest)
        except DeniedError as denied:
            _refuse(peer, denied)

    return serve


def _head(peer: socket.socket) -> tuple[list[str], bytes]:
    """The lines of a request's head, and what came behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = peer.recv(_LONGEST_HEAD)
        data += piece
        if not piece or len(data) > _LONGEST_HEAD:
            raise DeniedError("400 Bad Request", "this is no request")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1").split("\r\n"), rest


def _request(head: list[str]) -> tuple[str, str, str]:
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise DeniedError("400 Bad Request", "this is no request")
    return words[0], words[1], words[2]


def _tunnel(egress: Egress, peer: socket.socket, target: str, rest: bytes) -> None:
    entry = host(target)
    if entry is None or entry.port is None:
        raise DeniedError("400 Bad Request", "this is no host and port")
    with reach(egress, entry.name, entry.port) as server:
        peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        server.sendall(rest)
        _converse(peer, server)


def _forward(
    egress: Egress, peer: socket.socket, request: tuple[str, str, str], head: list[str], rest: bytes
) -> None:
    """Pass one plain request on; the connection ends with its answer."""
    method, target, version = request
    try:
        url = urlsplit(target)
        port = url.port or 80
    except ValueError:
        raise DeniedError("400 Bad Request", "this is no address") from None
    if url.scheme != "http" or not url.hostname:
        raise DeniedError("400 Bad Request", "this is a proxy, and takes absolute addresses")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [line for line in head[1:] if line.partition(":")[0].strip().lower() not in (*_HOP, "host")]
    name = plain_name(url.hostname, port)
    named = f"[{name}]" if ":" in name else name
    lines = [f"{method} {path} {version}", f"Host: {named}:{port}" if port != 80 else f"Host: {named}"]
    lines += [*kept, "Connection: close"]
    with reach(egress, name, port) as server:
        server.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + rest)
        _converse(peer, server)


def _converse(peer: socket.socket, server: socket.socket) -> None:
    for each in (peer, server):
        each.settimeout(None)
    exchange(peer, server)


def _refuse(peer: socket.socket, denied: DeniedError) -> None:
    text = f"{denied}\n".encode()
    head = f"HTTP/1.1 {denied.status}\r\nX-Deny-Reason: {denied}\r\nContent-Length: {len(text)}\r\n"
    peer.sendall(head.encode() + b"Content-Type: text/plain\r\nConnection: close\r\n\r\n" + text)


def plain_name(name: str, port: int) -> str:
    """The name of one host, as it is looked up. Refused is what could be an entry of a list but no host, and
    what a look-up would read otherwise than a comparison does."""
    found = host(f"[{name}]:{port}" if ":" in name else f"{name}:{port}")
    if found is None or found.name.startswith("."):
        raise DeniedError("400 Bad Request", "this is no name of a host")
    return found.name


def reach(egress: Egress, name: str, port: int) -> socket.socket:
    """A connection to a host that may be reached."""
    name = plain_name(name, port)
    entry = allowed(egress.allow, name, port)
    if entry is None:
        raise DeniedError("403 Forbidden", f"host not on allowlist: {name}:{port}")
    try:
        if egress.upstream and not entry.private:
            return _through(egress.upstream, name, port)
        return _connected(_addresses(entry, name, port))
    except UnicodeError:
        raise DeniedError("400 Bad Request", "this is no name of a host") from None
    except OSError as error:
        raise DeniedError("502 Bad Gateway", f"{name}:{port} cannot be reached: {error.strerror}") from None


def _addresses(entry: Host, name: str, port: int) -> "list[tuple[int, str, int]]":
    """The addresses of a host; one that belongs to no public network counts only where it was meant."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    pairs = [(int(family), str(place[0])) for family, _, _, _, place in found]
    good = [(family, text, port) for family, text in pairs if entry.private or public(_address(text))]
    if not good:
        raise DeniedError("403 Forbidden", f"{name} is an address of a private network")
    return good


def _address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text.partition("%")[0])


def _connected(places: "list[tuple[int, str, int]]") -> socket.socket:
    failure = OSError(0, "no address")
    for family, text, port in places:
        server = socket.socket(family, socket.SOCK_STREAM)
        server.settimeout(_PATIENCE)
        try:
            server.connect((text, port))
        except OSError as error:
            server.close()
            failure = error
        else:
            return server
    raise failure


def _through(upstream: str, name: str, port: int) -> socket.socket:
    """A connection by way of the proxy that this machine uses itself."""
    url = urlsplit(upstream)
    server = socket.create_connection((url.hostname or "", url.port or 80), timeout=_PATIENCE)
    place = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    said = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if url.username:
        word = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        said.append(f"Proxy-Authorization: Basic {b64encode(word).decode()}")
    server.sendall("\r\n".join(said).encode() + b"\r\n\r\n")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = server.recv(1)
        head += piece
        if not piece or len(head) > _LONGEST_HEAD:
            break
    if head.split(b" ")[1:2] != [b"200"]:
        server.close()
        raise OSError(0, "the proxy of this machine does not let us through")
    return server
