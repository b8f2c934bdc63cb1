"""Sessions in panes of Remuda's own tmux server: started, looked at, spoken to by keys, ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from remuda.core import clock, reaper
from remuda.core.errors import RefusedError, RemudaError
from remuda.core.events import Failure
from remuda.core.files import private_folder, write_new
from remuda.core.identity import identity, lives, pid_of
from remuda.core.processes import exit_status
from remuda.operations.environment import home_of
from remuda.operations.preparation import command_of, found_program, keep, turn_of
from remuda.operations.requests import Plan
from remuda.operations.sandboxing import contained
from remuda.operations.session import requests
from remuda.operations.session.requests import StartRequest
from remuda.operations.world import World
from remuda.runtimes import screens
from remuda.runtimes.screens import Manifest, Screen
from remuda.runtimes.transcripts import Places
from remuda.sessions import orders, pane, store
from remuda.sessions.store import Session
from remuda.sessions.tmux.control import Control, attached
from remuda.sessions.tmux.errors import NoSuchPaneError, NoSuchSessionError, ServerGoneError
from remuda.sessions.tmux.panes import Ending, Pane, View
from remuda.sessions.tmux.server import SOCKET, Tmux

GONE = (ServerGoneError, NoSuchSessionError, NoSuchPaneError)
_PAUSE = 0.1
_TOGETHER = 0.05
_BETWEEN = 0.15
_STILL = 0.3
_LONGEST = 1.0
_PATIENT = 5.0
"""Seconds for an arrow to move a mark. To press it again too early would be to press it twice."""

_FRESH = 1.0
"""Seconds for which a state that is on record need not be written down again."""

_QUIT = 5.0


def server(world: World) -> Tmux:
    """Remuda's own tmux server."""
    return Tmux(world.folders.runtime / SOCKET, world.environ)


def manifest_of(world: World, runtime: str) -> Manifest:
    """What is known of a runtime's screens, the user's own rules first."""
    return screens.load(runtime, world.folders.screens)


def pane_of(session: Session) -> Pane | None:
    """The pane that a session is in, if it got so far."""
    if session.pane is None or session.holder is None:
        return None
    return Pane(session.id, session.pane, pid_of(session.holder))


def look(world: World, session: Session) -> Session:
    """A session as its pane shows it."""
    found = pane_of(session)
    if found is None:
        return session if session.holder and lives(session.holder) else _ended(world, session, None)
    try:
        view = server(world).look(found)
    except GONE:
        return _ended(world, session, None)
    except RemudaError as error:
        return msgspec.structs.replace(session, source=f"record: {error.message}")
    if view.ending is not None:
        return _ended(world, session, view.ending)
    return noted(world, session, screens.classify(manifest_of(world, session.runtime), view.text, view.title))


def noted(world: World, session: Session, screen: Screen) -> Session:
    """Put on record what a screen tells; what was on record a moment ago is left as it is."""
    now = clock.now()

    def told(row: Session) -> Session:
        if row.holder != session.holder:
            return row
        state, source = pane.state_of(screen, row.state), pane.source_of(screen)
        if screen.rule is None:
            return msgspec.structs.replace(row, source=source)
        if (state, source) == (row.state, row.source) and now - clock.seconds(row.seen_at) < _FRESH:
            return row
        return msgspec.structs.replace(row, state=state, source=source, seen_at=clock.rfc3339(now))

    return store.change(world.folders.database, session.id, told) or session


def _ended(world: World, session: Session, ending: Ending | None) -> Session:
    """The program in the pane has ended, or the pane is gone: clear up, and record it."""
    end_pane(world, session)
    now = clock.rfc3339(clock.now())
    return store.end(world.folders.database, session.id, now, _reason(ending), pane.SOURCE) or session


def _reason(ending: Ending | None) -> Failure | None:
    if ending is None:
        return Failure("crashed", "its terminal is gone")
    if ending.signal is not None:
        return Failure("crashed", f"the agent was killed by signal {ending.signal}")
    if ending.code:
        return Failure("crashed", f"the agent ended with exit code {exit_status(ending.code)}")
    return None


def end_pane(world: World, session: Session) -> None:
    """End whatever is left of a session: its pane, its processes, its files."""
    import shutil

    with contextlib.suppress(RemudaError):
        server(world).kill(session.id)
    if session.mark:
        reaper.sweep(session.mark)
    shutil.rmtree(orders.folder_of(world.folders.runtime, session.id), ignore_errors=True)


def strays(world: World, alive: set[str]) -> tuple[str, ...]:
    """End the panes of our server that belong to no session that runs; which they were."""
    tmux = server(world)
    try:
        names = [name for name in tmux.sessions() if name not in alive]
    except RemudaError:
        return ()
    return tuple(name for name in names if tmux.kill(name))


def agreed(world: World, request: StartRequest) -> frozenset[str]:
    """The kinds of dialogs that may be answered."""
    return frozenset((*world.config.sessions.consent, *request.consent))


def start(world: World, request: StartRequest, plan: Plan, session: Session) -> Session:
    """Start the agent's terminal interface in a pane of its own."""
    run, runtime = request.run, plan.runtime
    if run.capability is not None:
        raise RefusedError(
            f"nobody judges what {runtime.title} does in a terminal, so it cannot be a {run.capability}",
            "Use --mode connection, or leave out --capability.",
        )
    manifest_of(world, runtime.name)
    found = found_program(world, runtime)
    scratch = private_folder(orders.folder_of(world.folders.runtime, session.id) / "scratch")
    turn = turn_of(world, run, plan, scratch)
    invocation = runtime.spawn_command(turn)
    keep(turn, invocation)
    for file in invocation.files:
        private_folder((scratch / file.name).parent)
        write_new(scratch / file.name, file.content.encode())
    command = contained(
        world,
        run,
        plan,
        turn,
        invocation,
        command_of(found, turn, invocation),
        terminal=True,
        trusted="trust" in agreed(world, request),
    )
    env = {**command.env, reaper.MARK: session.mark or ""}
    born = server(world).new(session.id, command.argv, env, command.cwd)
    then = msgspec.structs.replace(session, pane=born.id, holder=identity(born.pid))
    kept = store.swap(world.folders.database, session, then)
    if kept is None:
        end_pane(world, session)
        raise RemudaError("the session was ended while it started")
    return kept


async def wait_for(
    world: World,
    session: Session,
    good: Callable[[Screen], bool],
    seconds: float,
    consent: frozenset[str] = frozenset(),
) -> tuple[Session, pane.Waited]:
    """Wait until the screen is as wanted, and stays so for a moment; dialogs that may be answered are. The
    session comes back as it is when that is so, when the time is over, or when it has ended."""
    manifest, tmux = manifest_of(world, session.runtime), server(world)
    loop = asyncio.get_running_loop()
    end, since = loop.time() + seconds, None
    presses: dict[str, int] = {}
    async with _listening(tmux, session) as ear:
        while True:
            view = _view(tmux, session)
            if view is None or view.ending is not None:
                session = look(world, session)
                return session, pane.Waited(screen=Screen(state="loading"), text=view.text if view else "")
            screen = screens.classify(manifest, view.text, view.title)
            session = noted(world, session, screen)
            since = (since or loop.time()) if good(screen) else None
            if since is not None and loop.time() >= since + _STILL:
                return session, pane.Waited(screen=screen, text=view.text)
            if await _press(tmux, session, manifest, screen, consent, presses):
                await asyncio.sleep(_STILL)
            elif loop.time() >= end or _stuck(screen, consent, presses):
                return session, pane.Waited(screen=screen, text=view.text)
            await ear.wait(_STILL if since is not None else _LONGEST)


class _Ear:
    """Waits for a pane to write something, so that nobody has to keep looking."""

    def __init__(self, control: Control | None, found: Pane | None) -> None:
        self._control, self._pane = control, found
        self._heard = 0

    async def wait(self, seconds: float) -> None:
        """Wait for output, but no longer than that; what comes in one go is looked at together."""
        if self._control is None or self._pane is None:
            await asyncio.sleep(min(seconds, _PAUSE))
            return
        try:
            async with asyncio.timeout(seconds):
                self._heard = await self._control.more(self._pane.id, self._heard)
        except (TimeoutError, RemudaError):
            pass
        await asyncio.sleep(_TOGETHER)


@contextlib.asynccontextmanager
async def _listening(tmux: Tmux, session: Session) -> AsyncIterator[_Ear]:
    """An ear at a pane; where tmux does not let us in, one that only waits."""
    async with contextlib.AsyncExitStack() as held:
        control: Control | None = None
        with contextlib.suppress(RemudaError):
            control = await held.enter_async_context(attached(tmux.client, session.id))
        yield _Ear(control, pane_of(session))


def _view(tmux: Tmux, session: Session) -> View | None:
    found = pane_of(session)
    try:
        return tmux.look(found) if found else None
    except GONE:
        return None


async def press(tmux: Tmux, found: Pane, keys: tuple[str, ...]) -> None:
    """Press keys as a person does: an Escape with another key at its heels would be another key."""
    for number, key in enumerate(keys):
        if number:
            await asyncio.sleep(_BETWEEN)
        tmux.keys(found, (key,))


async def _press(
    tmux: Tmux,
    session: Session,
    manifest: Manifest,
    screen: Screen,
    consent: frozenset[str],
    presses: dict[str, int],
) -> bool:
    """Answer a dialog, where that is allowed and was not tried too often; whether that was done."""
    found, rule = pane_of(session), screen.rule or ""
    if found is None or not pane.may_answer(screen, consent) or presses.get(rule, 0) >= pane.PRESSES:
        return False
    presses[rule] = presses.get(rule, 0) + 1
    with contextlib.suppress(*GONE):
        await _answer(tmux, found, manifest, screen)
    return True


async def _answer(tmux: Tmux, found: Pane, manifest: Manifest, screen: Screen) -> None:
    """Press the keys of a dialog, each one only when the one before has shown: a program that is still
    drawing may miss a key, and what follows would then mean something else. What comes after an arrow is left
    to the next look, for the mark may move once more: a key that seemed lost may just have been late."""
    for key in screen.keys[:-1]:
        before = tmux.look(found).text
        tmux.keys(found, (key,))
        if not await _shown(tmux, found, manifest, screen, key, before) or key in pane.ARROWS:
            return
    tmux.keys(found, screen.keys[-1:])


async def _shown(tmux: Tmux, found: Pane, manifest: Manifest, screen: Screen, key: str, before: str) -> bool:
    """Wait until the screen tells that a key of a dialog was taken; whether that can be believed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + (_PATIENT if key in pane.ARROWS else _LONGEST)
    while True:
        view, late = tmux.look(found), loop.time() >= end
        now = screens.classify(manifest, view.text, view.title)
        taken = pane.taken(key, screen, now, changed=view.text != before, late=late)
        if taken is not None:
            return taken
        await asyncio.sleep(_TOGETHER)


def _stuck(screen: Screen, consent: frozenset[str], presses: dict[str, int]) -> bool:
    """Whether a dialog is in the way that only a person can answer."""
    if screen.state != "dialog":
        return False
    return not pane.may_answer(screen, consent) or presses.get(screen.rule or "", 0) >= pane.PRESSES


async def stop(world: World, session: Session) -> Session:
    """End a session: politely where it is ready to hear that, and then in any case."""
    found = pane_of(session)
    if found is not None and session.state == "ready":
        terminal, tmux = manifest_of(world, session.runtime).terminal, server(world)
        with contextlib.suppress(*GONE):
            tmux.keys(found, terminal.clear)
            tmux.paste(found, terminal.quit)
            tmux.keys(found, terminal.submit)
            end = asyncio.get_running_loop().time() + _QUIT
            while tmux.alive(found) and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(_PAUSE)
    end_pane(world, session)
    now = clock.rfc3339(clock.now())
    return store.end(world.folders.database, session.id, now, None, "stopped") or session


def capture(world: World, session: Session, *, history: bool = False) -> str:
    """What the pane shows."""
    found = pane_of(session)
    if found is None:
        raise RemudaError("the session has no screen yet", "Look again in a moment.")
    return server(world).capture(found, history=history)


def attachment(world: World, session: Session, *, read_only: bool) -> tuple[tuple[str, ...], dict[str, str]]:
    """How to hand the user's terminal to the pane."""
    attached = server(world).attachment(session.id, read_only=read_only, fit=True)
    return attached.argv, attached.env


def places_of(world: World, session: Session) -> Places:
    """Where the transcript of a session may lie."""
    own = requests.read(session.options).run.env if session.name else {}
    return Places(
        environ={**world.environ, **_home(world, session), **own},
        kept=world.folders.data / "sessions",
        folders=(Path(session.cwd),),
    )


def _home(world: World, session: Session) -> dict[str, str]:
    """What gives the session's agent a home of its own, if it is still configured."""
    with contextlib.suppress(RemudaError):
        agent = world.roster.get(session.agent)
        return home_of(agent, world.herd.get(agent.runtime))
    return {}


def record_folder(world: World, session: Session) -> Path:
    """Where what stays of a session lies."""
    return world.folders.data / "sessions" / session.id
