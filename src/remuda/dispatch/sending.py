"""Where a message goes: to a peer that is there, into a pane that is opened for it, or to a fresh run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

import msgspec

from remuda.core.errors import EXIT_UNUSABLE, NotFoundError, RefusedError, RemudaError
from remuda.dispatch.origin import SelfDispatchError
from remuda.peers.model import ORCHESTRATOR, PERSON, Peer

Mode = Literal["peer-prefer", "peer-only", "spawn-only", "auto-tmux"]
MODES: tuple[Mode, ...] = get_args(Mode)
Way = Literal["peer", "pane", "run"]

SWITCHES = ("REMUDA_PEER_ROUTING", "CLAWTOOL_PEER_ROUTING")
"""The variables that switch the routing to peers off; the first that is set counts."""


class NoLivePeerError(NotFoundError):
    """Only a peer will do, and there is none."""


class TmuxUnavailableError(RemudaError):
    """Only a pane will do, and none can be opened."""

    exit_code = EXIT_UNUSABLE


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a message is for: some agents, or all of a ``runtime`` where that was named; in a folder, where
    one was. ``callers`` are the peers on whose behalf it is sent, which never get it themselves."""

    agents: frozenset[str]
    runtime: str | None = None
    cwd: str | None = None
    callers: frozenset[str] = frozenset()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the way depends on. ``bounds`` are the words of a request that only a fresh run keeps, ``choices``
    those that a new pane keeps, too; a peer that runs already has neither."""

    peer: Peer | None
    callers: bool = False
    tmux: bool = False
    bounds: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def mode_of(wanted: Mode, environ: Mapping[str, str]) -> Mode:
    """The mode, unless the environment switches the routing to peers off."""
    chosen = next((environ[name] for name in SWITCHES if environ.get(name)), "1")
    return "spawn-only" if chosen == "0" else wanted


def meant(peer: Peer, wanted: Wanted) -> bool:
    """Whether a peer is one of those whom a message is for, whatever it is doing."""
    return (
        peer.role != ORCHESTRATOR
        and peer.runtime != PERSON
        and (peer.agent in wanted.agents or peer.runtime == wanted.runtime)
        and (wanted.cwd is None or peer.cwd == wanted.cwd)
    )


def eligible(peers: Iterable[Peer], wanted: Wanted) -> Peer | None:
    """The first by name of those who may get a message: nobody who is at work, or who asks."""
    found = [
        peer
        for peer in peers
        if peer.state == "online" and meant(peer, wanted) and peer.id not in wanted.callers
    ]
    return min(found, key=lambda peer: (peer.name, peer.id), default=None)


def way(mode: Mode, facts: Facts, wanted: Wanted) -> Way:
    """The way of a message, in this order: a fresh run where that is asked for; a peer that is there, unless
    the request asks for what it cannot have; a new pane; a fresh run. Never around a refusal."""
    if mode == "spawn-only":
        return "run"
    asked = (*facts.bounds, *facts.choices)
    if mode == "peer-only":
        _check(asked, "a session that runs already cannot be given")
        return _only(facts, wanted)
    if facts.peer is not None and not asked:
        return "peer"
    if mode == "auto-tmux":
        _check(facts.bounds, "a pane cannot be given")
        if not facts.tmux:
            raise TmuxUnavailableError(
                "auto-tmux mode: no tmux session is there to open a pane in",
                "Call it inside tmux, set peer.panes = true, or use --mode peer-prefer.",
            )
        return "pane"
    return "pane" if facts.tmux and not facts.bounds else "run"


def _check(asked: tuple[str, ...], why: str) -> None:
    if asked:
        raise RefusedError(f"{why} {', '.join(asked)}", "Leave that out, or use --mode spawn-only.")


def _only(facts: Facts, wanted: Wanted) -> Way:
    if facts.peer is not None:
        return "peer"
    if facts.callers:
        raise SelfDispatchError(
            "refusing to dispatch to the calling session — would loop",
            "Use --mode spawn-only, or another agent.",
        )
    raise NoLivePeerError(
        f"peer-only mode: no online peer matches {wanted.runtime or ' or '.join(sorted(wanted.agents))}",
        "See who is there with 'remuda peer list', or use --mode peer-prefer.",
    )
