"""Hosts that are not like others: this machine, and those that give out its credentials."""

from __future__ import annotations

from typing import Literal

Kind = Literal["local", "metadata", "far"]

_LOCAL = frozenset(("localhost", "ip6-localhost", "::1", "::"))
_METADATA = frozenset(("metadata", "metadata.google.internal", "instance-data", "fd00:ec2::254"))
_LINK_LOCAL = 169 << 8 | 254
_ALIBABA = 100 << 24 | 100 << 16 | 100 << 8 | 200


def kind(host: str) -> Kind:
    """What a host is, however it is spelled."""
    name = host.strip("[]").rstrip(".").lower().removeprefix("::ffff:")
    address = _address(name)
    if name in _METADATA or (address is not None and (address >> 16 == _LINK_LOCAL or address == _ALIBABA)):
        return "metadata"
    if name in _LOCAL or name.endswith(".localhost") or (address is not None and address >> 24 in (0, 127)):
        return "local"
    return "far"


def _address(text: str) -> int | None:
    """An IPv4 address as C programs read it: one to four numbers, decimal, octal or hexadecimal, the last of
    which fills what is left."""
    numbers = [_number(part) for part in text.split(".")]
    *heads, last = [number for number in numbers if number is not None] or [-1]
    if None in numbers or len(numbers) > 4 or any(head > 255 for head in heads) or last < 0:
        return None
    room = 8 * (4 - len(heads))
    if last >> room:
        return None
    for index, head in enumerate(heads):
        last |= head << (24 - 8 * index)
    return last


def _number(text: str) -> int | None:
    base = 16 if text.startswith("0x") else 8 if text.startswith("0") and len(text) > 1 else 10
    digits = text[2:] if base == 16 else text
    if not digits or len(digits) > 12 or not digits.isascii() or not digits.isalnum():
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None
