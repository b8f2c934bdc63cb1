"""Addresses: the host that a word names."""

from __future__ import annotations

from remuda.guard.model import UNKNOWN, Word, literal


def host(word: Word) -> Word:
    """The host of an address, as far as it is known."""
    if not word.values:
        known = _host(word.prefix) if "/" in word.prefix.partition("://")[2] else ""
        return literal(known) if known else UNKNOWN
    return Word(tuple(_host(value) for value in word.values), taint=word.taint)


def _host(address: str) -> str:
    _, scheme, rest = address.partition("://")
    rest = rest if scheme else address
    rest = rest.partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    if rest.startswith("["):
        return rest.partition("]")[0][1:]
    return rest.partition(":")[0]
