"""Who asks: the chain of agents that called each other, carried from process to process, so that none calls
itself without end.

A chain is ``agent:session`` for each agent, the outermost first, joined by ``/``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core.environment import ORIGIN
from remuda.core.errors import RefusedError
from remuda.runtimes.base import Runtime

_ANCESTORS = 64


class SelfDispatchError(RefusedError):
    """An agent would be called from within itself."""


class Link(msgspec.Struct, frozen=True):
    """One agent of a chain, and the session of ours that it works in."""

    agent: str
    session: str


Chain = tuple[Link, ...]


def parsed(text: str) -> Chain:
    """A chain from its text. What has no session in it still counts: somebody wrote it."""
    links = (part.partition(":") for part in text.split("/") if part)
    return tuple(Link(agent, session) for agent, _, session in links)


def written(chain: Iterable[Link]) -> str:
    """A chain as text."""
    return "/".join(f"{link.agent}:{link.session}" for link in chain)


def joined(texts: Iterable[str]) -> Chain:
    """The chain that counts, of those that are found: the longest, behind whoever is in another one only."""
    chains = sorted((parsed(text) for text in texts), key=len, reverse=True)
    longest = chains[0] if chains else ()
    missing = dict.fromkeys(link for chain in chains[1:] for link in chain if link not in longest)
    return (*missing, *longest)


def here(environ: Mapping[str, str], given: str = "") -> Chain:
    """The chain that we are in: by our environment, by that of the processes above us, for an agent may keep
    it from its tools, and by what a request brought along."""
    return joined((environ.get(ORIGIN, ""), given, *_above(os.getpid())))


def carried(pid: int, name: str = ORIGIN) -> Iterator[str]:
    """What another process, and those above it, were started with under a name."""
    yield from _told(pid, name)
    yield from _above(pid, name)


def _above(pid: int, name: str = ORIGIN) -> Iterator[str]:
    """What the processes above one were started with."""
    for _ in range(_ANCESTORS):
        pid = _parent(pid)
        if pid <= 1:
            return
        yield from _told(pid, name)


def _told(pid: int, name: str) -> Iterator[str]:
    """What a process was started with; nothing of one that we may not look at."""
    mark = f"{name}=".encode()
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return
    yield from (entry[len(mark) :].decode("utf-8", "replace") for entry in entries if entry.startswith(mark))


def _parent(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[1])
    except (OSError, IndexError, ValueError):
        return 0


def check(
    chain: Chain, agent: str, runtime: Runtime, environ: Mapping[str, str], *, most: int, nested: bool
) -> None:
    """Refuse a call that would go in a circle, or too deep. ``nested`` lets an agent call itself, but never
    deeper than ``most``."""
    if len(chain) >= most:
        raise SelfDispatchError(
            f"refusing to dispatch: {len(chain)} agents have called each other already "
            f"({' → '.join(link.agent for link in chain)})",
            "dispatch.max_depth is how many may.",
        )
    if nested:
        return
    if any(link.agent == agent for link in chain) or any(environ.get(name) for name in runtime.within):
        raise SelfDispatchError(
            "refusing to dispatch to the calling session — would loop",
            f"It was asked from within {agent}. Call another agent, or insist with --nested.",
        )
