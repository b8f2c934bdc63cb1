"""Which ways lead out of a sandbox, decided from a profile and from where the agent's model is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from remuda.sandbox.hosts import USUAL_PORTS, Host, host
from remuda.sandbox.profile import Profile, UnresolvableError
from remuda.sandbox.spec import Egress

_PROXY_PORT = 3128
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_OTHERS = ("ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
PROXY_VARIABLES = (*_PROXIES, *_OTHERS)
"""The variables that say how others are reached; inside, only our own count."""

_HERE = "localhost,127.0.0.1,::1"


class Outlets(msgspec.Struct, frozen=True, kw_only=True):
    """The ways out: ports of this machine's loopback, all of them, a proxy; ``env`` tells the agent of it."""

    shared: bool = False
    ports: tuple[int, ...] = ()
    loopback: bool = False
    egress: Egress | None = None
    env: Mapping[str, str] = {}


def outlets(
    profile: Profile, endpoint: str | None, hosts: Iterable[str], environ: Mapping[str, str]
) -> Outlets:
    """The ways out for an agent whose model is at an endpoint, or else at the vendor's hosts."""
    if profile.network == "open":
        return Outlets(shared=True)
    entries = (*_model(endpoint, hosts), *profile.allow)
    ports = tuple(dict.fromkeys(port for entry in entries if entry.here for port in _ports(entry)))
    others = tuple(dict.fromkeys(entry for entry in entries if not entry.here))
    if not others:
        return Outlets(ports=ports, loopback=profile.network == "loopback")
    port = next(port for port in range(_PROXY_PORT, 65536) if port not in ports)
    return Outlets(
        ports=ports,
        loopback=profile.network == "loopback",
        egress=Egress(port, others, _upstream(environ)),
        env=_told(port),
    )


def _model(endpoint: str | None, hosts: Iterable[str]) -> Iterator[Host]:
    if endpoint is None:
        yield from (entry for text in hosts if (entry := host(text)))
        return
    try:
        url = urlsplit(endpoint)
        port = url.port or (443 if url.scheme == "https" else 80)
        entry = host(f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or "")
    except ValueError:
        entry, port = None, 0
    if entry is None:
        raise UnresolvableError("the model's endpoint is no address that a sandbox could be opened for")
    yield Host(entry.name, port, private=True)


def _ports(entry: Host) -> tuple[int, ...]:
    return USUAL_PORTS if entry.port is None else (entry.port,)


def _upstream(environ: Mapping[str, str]) -> str:
    """The proxy that this machine itself uses, where it is one that we can speak to."""
    named = environ.get("HTTPS_PROXY") or environ.get("https_proxy") or ""
    url = named if not named or "://" in named else f"http://{named}"
    if not url.startswith("http://"):
        return ""
    try:
        parts = urlsplit(url)
        told = bool(parts.hostname) and parts.port != 0
    except ValueError:
        told = False
    if not told:
        raise UnresolvableError("HTTPS_PROXY, by which others are reached, is no address", "Set it anew.")
    return url


def _told(port: int) -> dict[str, str]:
    address = f"http://127.0.0.1:{port}"
    return {
        **dict.fromkeys(_PROXIES, address),
        "NO_PROXY": _HERE,
        "no_proxy": _HERE,
        "NODE_USE_ENV_PROXY": "1",
    }
