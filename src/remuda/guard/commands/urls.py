"""Addresses: the host that a word names."""

from __future__ import annotations

import re

from remuda.guard.globs import LONGEST
from remuda.guard.hosts import kind
from remuda.guard.model import UNKNOWN, Word, literal

_ADDRESS = re.compile(r"(?:^|[=+ ])([a-z][a-z0-9+.-]*)://([^/?#\s]*)")
_UNCHECKED = frozenset(
    (
        *("-k", "--insecure", "--proxy-insecure", "--no-check-certificate", "-insecure", "--trusted-host"),
        *("http.sslVerify=false", "http.sslverify=false", "--strict-ssl=false", "--no-strict-ssl"),
    )
)
_PACKAGES = frozenset(
    ("pip", "pip3", "npm", "pnpm", "yarn", "cargo", "gem", "uv", "poetry", "helm", "go", "bun")
)


def doubts(name: str, words: list[str]) -> str:
    """Why an address among the arguments of a program that uses the network is not to be trusted, if at all:
    it looks like another one, nobody checks who answers, or packages come as anyone on the way wants them."""
    found = [match for word in words for match in _ADDRESS.findall(word[:LONGEST])]
    far = [(scheme, place) for scheme, place in found if kind(_host(place)) == "far"]
    for scheme, place in far:
        user, _, rest = place.rpartition("@")
        if not rest.isascii() or "xn--" in rest.lower() or "." in user.partition(":")[0]:
            return f"the host {rest} is written so that it looks like another one"
        if ":" in user and scheme != "ssh":
            return f"a password goes to {rest} in an address"
        if scheme.removeprefix("git+") in {"http", "git"} and name in _PACKAGES:
            return f"packages come from {rest} by a connection that anybody can change"
    if (far or not found) and not _UNCHECKED.isdisjoint(words) and (far or name in _PACKAGES):
        return "nobody checks who answers"
    return ""


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
