"""Who may be reached: the entries of an allow-list, and whether a host is one of them.

Only what is built in is imported, for the launcher decides by this while an agent runs.
"""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

USUAL_PORTS = (80, 443)
"""The ports of an entry that names none."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:\*\.|\.)?{_LABEL}(?:\.{_LABEL})*\.?", re.IGNORECASE | re.ASCII)
_LONGEST = 253
_TRANSLATED = IPv6Network("64:ff9b::/96")
_WORLD = IPv6Network("2000::/3")
"""All that is given out to the world of the newer addresses."""


class Host(NamedTuple):
    """An entry: a name, one with all that is below it (``.example.org``), or an address. Without a port the
    usual ones are meant. Addresses inside a private network are only reached where one is named itself."""

    name: str
    port: int | None = None
    private: bool = False

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return shown if self.port is None else f"{shown}:{self.port}"

    def covers(self, name: str, port: int) -> bool:
        """Whether a host of this name at this port is meant."""
        if port != self.port if self.port is not None else port not in USUAL_PORTS:
            return False
        wanted = name.lower().rstrip(".")
        if self.name.startswith("."):
            return f".{wanted}".endswith(self.name)
        return wanted == self.name

    @property
    def here(self) -> bool:
        """Whether it is this machine itself, by loopback."""
        if self.name == "localhost":
            return True
        address = address_of(self.name)
        return address is not None and address.is_loopback


def address_of(name: str) -> IPv4Address | IPv6Address | None:
    """The address that a name is, if it is one."""
    try:
        return ip_address(name)
    except ValueError:
        return None


def public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address belongs to the world, and not to this machine or a network around it."""
    if isinstance(address, IPv6Address):
        if (inner := _inner(address)) is not None:
            return public(inner)
        if address not in _WORLD:
            return False
    return address.is_global and not address.is_multicast


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The older address that one stands for: mapped, or translated on its way."""
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def host(text: str) -> Host | None:
    """An entry from its text, ``HOST`` or ``HOST:PORT``; None if it is none."""
    name, port = _split(text.strip())
    if port is not None and not 0 < port < 65536:
        return None
    if address := address_of(name):
        return Host(str(address), port, private=True)
    if len(name) > _LONGEST or not _NAME.fullmatch(name) or name.replace(".", "").isdigit():
        return None
    plain = name.lower().rstrip(".").removeprefix("*")
    return Host(plain, port, private=plain == "localhost")


def _split(text: str) -> tuple[str, int | None]:
    """Name and port; a port that is no number is one that nothing has."""
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return "", None
        return name, _port(rest[1:]) if rest else None
    if text.count(":") == 1:
        name, _, port = text.partition(":")
        return name, _port(port)
    return text, None


def _port(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0


def allowed(entries: "tuple[Host, ...]", name: str, port: int) -> Host | None:
    """The entry that lets a host be reached, if there is one."""
    return next((entry for entry in entries if entry.covers(name, port)), None)
