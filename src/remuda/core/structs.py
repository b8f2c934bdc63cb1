"""Structs in processes of many threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare() -> None:
    """Make all structs that are loaded ready to be decoded. msgspec does so when it first decodes one, and
    crashes where two threads come to that at once: whoever is about to have threads calls this first. Those
    that name what is not loaded, or that no data could tell apart, are never decoded."""
    for kind in _below(msgspec.Struct):
        if kind.__module__.startswith("remuda."):
            with suppress(NameError, TypeError):
                msgspec.json.Decoder(kind)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
