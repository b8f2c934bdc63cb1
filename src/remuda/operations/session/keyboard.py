"""Speaks to a session in a pane: by pasting and keys, and with proof from what the program itself has written
down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from remuda.core import clock
from remuda.core.errors import RemudaError, UsageError
from remuda.core.events import Event
from remuda.core.ids import ulid
from remuda.operations.session import panes
from remuda.operations.world import World
from remuda.runtimes import screens
from remuda.runtimes.base import Runtime
from remuda.runtimes.screens import Screen, Terminal
from remuda.runtimes.transcripts import Mark, Places, Source, Transcripts, Wanted
from remuda.sessions import pane, store
from remuda.sessions.orders import Accepted, Receipt
from remuda.sessions.store import Session
from remuda.sessions.tmux.server import Tmux

CHANNEL = "tmux"
_PAUSE = 0.1
_PROOF = 30.0
_AGAIN = 3.0
_SHORT = 0.25
_LINES = 20


class UndeliveredError(RemudaError):
    """A text that was typed, of which nothing tells that it arrived."""


class UntypableError(UsageError):
    """A text that a terminal never takes."""


class Witness:
    """Watches a transcript for a text that is about to be typed."""

    def __init__(self, world: World, session: Session, runtime: Runtime) -> None:
        self._transcripts = runtime.transcripts
        self._places = panes.places_of(world, session)
        self._wanted = _wanted(session)
        self._before: dict[Source, Mark] = {}
        if (source := self._source()) is not None and self._transcripts is not None:
            self._before[source] = self._transcripts.prompts(source, Mark()).mark

    @property
    def able(self) -> bool:
        """Whether the runtime writes down what it is told."""
        return self._transcripts is not None

    def saw(self, text: str) -> str | None:
        """Where the text was written down since, or None."""
        source = self._source()
        if source is None or self._transcripts is None:
            return None
        told = self._transcripts.prompts(source, self._before.get(source, Mark())).texts
        return str(source.path) if any(_same(each, text) for each in told) else None

    def saw_ever(self, text: str) -> str | None:
        """Where the text was written down at any time, or None."""
        source = self._source()
        if source is None or self._transcripts is None:
            return None
        told = self._transcripts.prompts(source, Mark()).texts
        return str(source.path) if any(_same(each, text) for each in told) else None

    def _source(self) -> Source | None:
        return _found(self._transcripts, self._places, self._wanted)


def _wanted(session: Session) -> tuple[Wanted, Wanted]:
    """By its id, or else the newest of the folder since the session began."""
    from pathlib import Path

    cwd, since = Path(session.cwd), clock.seconds(session.started_at) - 1
    return Wanted(session=session.runtime_session, cwd=cwd), Wanted(cwd=cwd, since=since)


def _found(transcripts: Transcripts | None, places: Places, wanted: tuple[Wanted, Wanted]) -> Source | None:
    if transcripts is None:
        return None
    found = (transcripts.find(places, each) for each in wanted)
    return next((source for source in found if source is not None), None)


def _same(told: str, text: str) -> bool:
    """Whether a prompt is the text; programs drop white space at its ends."""
    return told == text or told.strip() == text.strip()


async def send(
    world: World, session: Session, text: str, *, follow: bool, wait: float, ident: str = ""
) -> AsyncGenerator[Accepted | Receipt | Event]:
    """Paste a text into the pane once it is ready, submit it, and wait for the proof that it arrived. One
    that was begun before under the same ``ident`` is looked for first."""
    runtime = world.herd.get(session.runtime)
    terminal = panes.manifest_of(world, session.runtime).terminal
    text = screens.armoured(terminal, runtime.disarm(text))
    if reason := screens.objection(terminal, text):
        raise UntypableError(
            f"{runtime.title}'s terminal does not take this text: {reason}",
            "Put it into a file and name that, or use a session with --mode connection.",
        )
    session = await _ready(world, session, wait)
    witness = Witness(world, session, runtime)
    begun = ident != "" and store.message(world.folders.database, ident) is not None
    ident = ident if begun else _accepted(world, session, text, ident or ulid())
    yield Accepted(message=ident)
    proof = await _again(world, session, terminal, text, witness) if begun else None
    proof = proof or await _typed(world, session, terminal, text, witness)
    now = clock.rfc3339(clock.now())
    store.move(world.folders.database, ident, "arrived" if proof else "lost", now, proof or "")
    if proof is None:
        raise UndeliveredError(
            f"the text was typed, but nothing tells that {runtime.title} has received it",
            "Look at it with 'remuda session screen'.",
        )
    yield Receipt(message=ident, channel=CHANNEL, proof=proof, arrived_at=now, bytes=len(text.encode()))
    if follow:
        await _until_ready(world, session)


async def _again(
    world: World, session: Session, terminal: Terminal, text: str, witness: Witness
) -> str | None:
    """What proves that a text arrived that somebody had begun to type. Where nothing does, whatever is left
    of it is taken away."""
    if (where := witness.saw_ever(text)) is not None:
        return f"transcript {where}"
    if terminal.clear and (found := panes.pane_of(session)) is not None:
        panes.server(world).keys(found, terminal.clear * _LINES)
        await asyncio.sleep(_SHORT)
    return None


def _accepted(world: World, session: Session, text: str, ident: str) -> str:
    now = clock.rfc3339(clock.now())
    message = store.Message(
        id=ident,
        session=session.id,
        state="sent",
        text=None,
        bytes=len(text.encode()),
        created_at=now,
        moved_at=now,
    )
    store.accept(world.folders.database, message)
    return message.id


async def _ready(world: World, session: Session, wait: float) -> Session:
    agreed = frozenset(world.config.sessions.consent)
    session, waited = await panes.wait_for(
        world, session, lambda screen: screen.state == "ready", wait, agreed
    )
    if session.state == "exited":
        raise UsageError(f"session {session.name} has ended: {session.failure or 'by itself'}", "Resume it.")
    if waited.screen.state != "ready":
        what = f"is {session.state}" if waited.screen.rule else "shows a screen that is not known"
        raise UsageError(
            f"session {session.name} {what}, and takes no text now",
            "See 'remuda session screen', wait longer with --wait, or interrupt it.",
        )
    return session


async def _typed(
    world: World, session: Session, terminal: Terminal, text: str, witness: Witness
) -> str | None:
    """Paste and submit; what proves that it arrived. Where a submission may be swallowed, the key is pressed
    again as long as the screen still waits for it. A program at work may write down only at the end what it
    works on."""
    tmux, found = panes.server(world), panes.pane_of(session)
    assert found is not None
    before = tmux.capture(found)
    tmux.paste(found, text)
    await _changed(lambda: tmux.capture(found) != before, _AGAIN)
    await asyncio.sleep(_SHORT)
    tmux.keys(found, terminal.submit)
    loop = asyncio.get_running_loop()
    end, again = loop.time() + _PROOF, loop.time() + _AGAIN
    while loop.time() < end:
        if (where := witness.saw(text)) is not None:
            return f"transcript {where}"
        if loop.time() >= again:
            shown, again = _shown(world, tmux, session), loop.time() + _AGAIN
            if shown == "working":
                end = loop.time() + _PROOF
            elif shown == "ready" and terminal.beacon:
                tmux.keys(found, terminal.submit)
        await asyncio.sleep(_PAUSE)
    return None


def _shown(world: World, tmux: Tmux, session: Session) -> str | None:
    """The state that the pane shows, if it is still there."""
    found = panes.pane_of(session)
    with contextlib.suppress(*panes.GONE):
        if found is not None:
            view = tmux.look(found)
            manifest = panes.manifest_of(world, session.runtime)
            return screens.classify(manifest, view.text, view.title).state
    return None


async def _changed(condition: Callable[[], bool], seconds: float) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not condition() and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(_PAUSE)


async def _until_ready(world: World, session: Session) -> Session:
    """Wait for the end of the turn, however long it takes; what a person has to answer ends it, too."""
    while True:
        session, _ = await panes.wait_for(world, session, _settled, 3600.0)
        if session.state not in ("working", "starting"):
            return session


def _settled(screen: Screen) -> bool:
    return screen.state in ("ready", "dialog")


async def interrupt(world: World, session: Session) -> Session:
    """Press the keys that end a turn, again if need be, until the program is ready. Some put the prompt back
    to where one types, in front of the next one: it is taken away."""
    terminal = panes.manifest_of(world, session.runtime).terminal
    tmux = panes.server(world)
    for _ in range(pane.PRESSES):
        found = panes.pane_of(session)
        if found is None or session.state not in ("working", "waiting"):
            break
        await panes.press(tmux, found, terminal.interrupt)
        seconds = world.config.sessions.abort_within / pane.PRESSES
        session, _ = await panes.wait_for(world, session, lambda screen: screen.state == "ready", seconds)
    if session.state == "ready" and terminal.clear and (found := panes.pane_of(session)) is not None:
        tmux.keys(found, terminal.clear * _LINES)
    return session


async def decide(world: World, session: Session, *, allowed: bool) -> str:
    """Answer the question that the program asks on its screen."""
    manifest = panes.manifest_of(world, session.runtime)
    tmux, found = panes.server(world), panes.pane_of(session)
    assert found is not None
    screen = screens.classify(manifest, tmux.capture(found))
    keys = screen.keys if allowed else screen.reject
    if screen.state != "dialog" or not keys:
        raise UsageError(
            f"session {session.name} asks nothing that can be answered so",
            "Look with 'remuda session screen', or answer it yourself: 'remuda session attach'.",
        )
    await panes.press(tmux, found, keys)
    return screen.rule or screen.kind
