"""Looks at sessions: what is on record is compared with what is there, and corrected."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda.core import clock, reaper
from remuda.core.errors import NotFoundError
from remuda.core.events import Failure
from remuda.core.identity import lives
from remuda.operations.session import panes
from remuda.operations.world import World
from remuda.sessions import orders, store
from remuda.sessions.lifecycle import State
from remuda.sessions.orders import Receipt
from remuda.sessions.store import Session

_DAY = 86_400.0
_EVERYONE = 1_000_000
_HOLDERS = {"headless": "the run", "connection": "the keeper"}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A session as people and programs see it. ``source`` is where the state is known from, and ``age`` how
    many seconds ago that was."""

    id: str
    name: str | None
    agent: str
    runtime: str
    mode: store.Mode
    state: State
    source: str
    age: float
    cwd: str
    started_at: str
    ended_at: str | None
    failure: str | None
    runtime_session: str | None


class Sessions(msgspec.Struct, frozen=True):
    """Sessions, the newest first."""

    sessions: list[Seen]


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A session that has begun, and the receipt for its first prompt, if there was one. Where something is in
    the way of prompts, ``screen`` is what its terminal shows."""

    session: Seen
    receipt: Receipt | None
    screen: str | None = None


def seen(session: Session) -> Seen:
    """The public view of a row."""
    fields = {field.name: getattr(session, field.name, None) for field in msgspec.structs.fields(Seen)}
    age = max(0.0, clock.now() - clock.seconds(session.seen_at))
    return msgspec.convert({**fields, "age": round(age, 3)}, Seen)


def found(world: World, word: str) -> Session:
    """The session of this name or id, as it truly is."""
    session = store.find(world.folders.database, word)
    if session is None:
        raise NotFoundError(f"there is no session {word}", "See them all with 'remuda session list --all'.")
    return look(world, session)


def listed(world: World, *, all_: bool = False) -> list[Session]:
    """The sessions that run, or all, as they truly are."""
    rows = [look(world, row) for row in store.listed(world.folders.database, all_=all_)]
    return [row for row in rows if all_ or row.state != "exited"]


def look(world: World, session: Session) -> Session:
    """A session as it truly is; one whose processes are gone is over."""
    if session.state == "exited":
        return session
    if session.mode == "tmux":
        return panes.look(world, session)
    if session.holder and lives(session.holder):
        return session
    return lost(world, session, f"{_HOLDERS[session.mode]} was killed")


def lost(world: World, session: Session, reason: str) -> Session:
    """Record the end of a session that nobody holds any more, and end what is left of it."""
    clear(world, session)
    now = clock.rfc3339(clock.now())
    return (
        store.end(world.folders.database, session.id, now, Failure("crashed", reason), "process") or session
    )


def clear(world: World, session: Session) -> None:
    """End every process of a session and remove what it needed only while it ran."""
    import shutil

    if session.mark:
        reaper.sweep(session.mark)
    shutil.rmtree(orders.folder_of(world.folders.runtime, session.id), ignore_errors=True)


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """What was put in order: sessions that were over without anybody having noticed, processes that had
    outlived theirs, panes that belong to none, and old sessions that were forgotten."""

    ended: tuple[str, ...]
    processes: int
    panes: tuple[str, ...]
    forgotten: tuple[str, ...]


def gc(world: World, older_than: float) -> Cleared:
    """Put everything in order; ``older_than`` is the age in days at which a session is forgotten."""
    before = {row.id: row for row in store.listed(world.folders.database)}
    after = [look(world, row) for row in before.values()]
    ended = tuple(row.name or row.id for row in after if row.state == "exited")
    alive = {row.id for row in after if row.state != "exited"}
    processes, marks = 0, reaper.marks()
    for row in store.listed(world.folders.database, all_=True, limit=_EVERYONE):
        if row.id not in alive and row.mark in marks:
            processes += len(reaper.marked(row.mark or ""))
            clear(world, row)
    strays = panes.strays(world, alive)
    forgotten = store.forget(world.folders.database, clock.rfc3339(clock.now() - older_than * _DAY))
    for row in forgotten:
        _forget(world.folders.data / "sessions" / row.id)
    return Cleared(
        ended=ended,
        processes=processes,
        panes=strays,
        forgotten=tuple(row.name or row.id for row in forgotten),
    )


def _forget(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
