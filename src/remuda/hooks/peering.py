"""What hooks have to do with peers: a session makes itself known by them, tells what it is doing, and gets
the messages that wait for it.

Only loaded for the events of a session, never for a tool call.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from remuda.core.config import load_user
from remuda.core.environment import ORIGIN
from remuda.core.errors import RemudaError
from remuda.core.identity import ancestors, identity
from remuda.core.paths import Folders, folders
from remuda.core.sql import Database, open_database
from remuda.hooks.answer import CONTEXTUAL, Answer, Dialect, context_answer
from remuda.hooks.events import Event
from remuda.peers import framing, inbox, registry
from remuda.peers.model import Message, Peer, Sighting, State, this_host

CHANNEL = "hook"
STATES: dict[Event, State] = {
    "SessionStart": "online",
    "UserPromptSubmit": "busy",
    "Stop": "online",
    "SessionEnd": "offline",
}
"""What an event tells about its session."""

_AGAIN = frozenset({"complete", "error"})
"""Why Copilot ends a session with each turn: over its protocol that goes on, and else the process ends."""

_BETWEEN = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "timeout", "env", "coreutils"})
"""Programs that may stand between an agent and its hook."""

_DAEMON = b"--managed-daemon"
"""On the command line of the process in which Codex holds the sessions of all its terminals; it outlives
them."""

_MOST = 8000
"""Characters of messages that are handed over at once; CLIs cut off what is much longer."""

_LEASE = 30.0


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """How the hook was called: for which event, in which dialect, by which runtime, in which folder."""

    event: Event
    dialect: Dialect
    runtime: str
    cwd: str


class _Extra(msgspec.Struct, frozen=True):
    platform: str = ""


class _Told(msgspec.Struct, frozen=True):
    """What a payload says about its session, as all CLIs spell it. Our own plugins say ``heartbeat`` where
    there is no place for a message."""

    session_id: str = ""
    session: str = msgspec.field(default="", name="sessionId")
    cwd: str = ""
    source: str = ""
    reason: str = ""
    stop_hook_active: bool = False
    heartbeat: bool = False
    agent_id: str = ""
    extra: _Extra = _Extra()

    @property
    def native(self) -> str:
        """The session's id."""
        return self.session_id or self.session

    @property
    def subordinate(self) -> bool:
        """Whether it is of an agent that the session has started in its process (Codex, Hermes)."""
        return bool(self.agent_id) or self.extra.platform == "subagent"

    @property
    def deaf(self) -> bool:
        """Whether a message would be lost, or would prolong a turn a second time."""
        return self.heartbeat or self.stop_hook_active


def _nothing() -> None:
    """There is nothing to acknowledge."""


class Said(msgspec.Struct, frozen=True):
    """What to answer to the CLI, if anything, and what to do once it has been answered."""

    answer: Answer | None = None
    after: Callable[[], None] = _nothing


def heard(call: Call, data: bytes, environ: Mapping[str, str]) -> Said:
    """Note what an event tells about its session, and take the messages that it can be handed. Never raises:
    a session goes on, whatever becomes of its messages."""
    try:
        told = msgspec.json.decode(data, type=_Told)
        where = folders(environ)
        database = open_database(where.shared_database, environ, _config_url(where))
        return _noted(database, call, told, environ, where)
    except Exception:
        return Said()


def _config_url(where: Folders) -> str | None:
    return load_user(where.config_file).database_url if where.config_file.exists() else None


def _noted(database: Database, call: Call, told: _Told, environ: Mapping[str, str], where: Folders) -> Said:
    peer = None if told.subordinate else _peer(database, call, told, environ, where)
    taken = [] if peer is None else _taken(database, peer, call, told)
    if peer is None or not taken:
        database.close()
        return Said()
    if call.event == "Stop":
        registry.note(database, peer.id, "busy")
    pairs = [(_shortened(each), _sender(database, each)) for each in taken]

    def arrived() -> None:
        with contextlib.suppress(RemudaError):
            inbox.ack(database, [each.id for each in taken], CHANNEL, f"answered to the hook {call.event}")
        database.close()

    return Said(context_answer(call.dialect, call.event, framing.context(pairs)), arrived)


def _peer(
    database: Database, call: Call, told: _Told, environ: Mapping[str, str], where: Folders
) -> Peer | None:
    """The peer that the hook is of: the session of ours that it runs in, or else the person's own, which is
    made known by this. A single run is no peer, nor is what an agent of ours has started by itself."""
    native = told.native
    agent, _, session = environ.get(ORIGIN, "").rpartition("/")[2].partition(":")
    cwd = told.cwd or call.cwd
    sight = Sighting(
        agent=agent or _agent(call.runtime, where),
        runtime=call.runtime,
        host=this_host(),
        cwd=cwd,
        session=session or None,
        runtime_session=native or None,
        pane=None if session else environ.get("TMUX_PANE"),
        process=None if session else _agent_process(cwd),
        state="online" if told.reason in _AGAIN else STATES[call.event],
        source=CHANNEL,
    )
    if not session:
        return registry.register(database, sight) if native else None
    known = registry.by_session(database, session)
    if known is None or known.runtime != call.runtime or not _its_own(known, native, told.source):
        return None
    return registry.register(database, sight)


def _its_own(known: Peer, native: str, source: str) -> bool:
    """Whether a hook is of the session itself, and not of an agent that was started within it: it has the
    session's id, is the first that is heard, or says that a person began anew."""
    return known.runtime_session in (None, native) or source in ("clear", "resume", "compact")


def _agent(runtime: str, where: Folders) -> str:
    """The agent whose session this is: the only one of its runtime that lives in the usual place, or the
    runtime itself."""
    if not where.config_file.exists():
        return runtime
    configured = load_user(where.config_file).agents
    found = [name for name, each in configured.items() if each.runtime == runtime and each.home is None]
    return found[0] if len(found) == 1 else runtime


def _agent_process(cwd: str) -> str | None:
    """The agent that called the hook: the nearest process above us that is not a shell of the call."""
    try:
        for pid in ancestors(os.getppid()):
            if (name := _program(pid)) not in _BETWEEN:
                daemon = _DAEMON in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                return _terminal(name, cwd) if daemon else identity(pid)
    except OSError:
        pass
    return None


def _program(pid: int | str) -> str:
    return Path(f"/proc/{pid}/exe").readlink().name


def _terminal(name: str, cwd: str) -> str | None:
    """The only process of a program that has a terminal and works in a folder; None where there are several,
    for nobody knows whose the session is."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            terminal = (place / "stat").read_text().rpartition(")")[2].split()[4]
            if terminal != "0" and _program(place.name) == name and str((place / "cwd").readlink()) == cwd:
                found.append(int(place.name))
    return identity(found[0]) if len(found) == 1 else None


def _taken(database: Database, peer: Peer, call: Call, told: _Told) -> list[Message]:
    """The messages to hand over now, as far as they fit. A turn is prolonged for them only once."""
    if told.deaf or call.event not in CONTEXTUAL[call.dialect]:
        return []
    waiting, size = inbox.lease(database, peer.id, seconds=_LEASE), 0
    taken: list[Message] = []
    for message in waiting:
        size += min(len(message.text), _MOST)
        if taken and size > _MOST:
            break
        taken.append(message)
    inbox.release(database, waiting[len(taken) :])
    return taken


def _shortened(message: Message) -> Message:
    if len(message.text) <= _MOST:
        return message
    rest = len(message.text) - _MOST
    more = f"{message.text[:_MOST]}\n… and {rest} characters more: remuda peer inbox --all"
    return msgspec.structs.replace(message, text=more)


def _sender(database: Database, message: Message) -> str:
    sender = registry.get(database, message.sender)
    return sender.name if sender else "somebody"
