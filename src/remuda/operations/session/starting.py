"""Starts a session, or resumes one: decides how it is held, puts it on record, waits until it is ready."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from remuda.core import clock
from remuda.core.errors import RefusedError, RemudaError, UsageError, exit_code_for
from remuda.core.events import Failure
from remuda.core.files import private_folder
from remuda.core.identity import identity
from remuda.core.ids import ulid
from remuda.core.reaper import MARK
from remuda.operations import proving
from remuda.operations.environment import home_of
from remuda.operations.peer import attending, presence
from remuda.operations.preparation import found_program, plan_run
from remuda.operations.requests import Plan, check_options
from remuda.operations.session import keeping, looking, panes, requests
from remuda.operations.session.requests import Held, StartRequest
from remuda.operations.world import World
from remuda.prompts import delivery
from remuda.runtimes.base import Runtime
from remuda.runtimes.transcripts import Places, Wanted
from remuda.sessions import eventlog, store
from remuda.sessions.store import Session


class StartFailedError(RemudaError):
    """A session that never took a prompt."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.exit_code = exit_code_for(failure.kind)


async def start(world: World, request: StartRequest, say: Callable[[str], None]) -> Session:
    """Start a session and wait until it takes prompts, or shows something that a person has to answer."""
    requests.check_name(request.name)
    if request.run.prompt:
        delivery.check_prompt(request.run.prompt)
    check_options(request.run)
    plan = plan_run(world, request.run)
    found_program(world, plan.runtime)
    mode = mode_of(request, plan.runtime)
    if plan.resume and not _has_history(world, plan):
        plan = msgspec.structs.replace(plan, resume=False)
    if mode == "connection" and plan.runtime.name in {each.name for each in proving.due(world, request.run)}:
        await proving.prove(world, plan.runtime, say)
    session = _recorded(world, request, plan, mode)
    presence.announce(world, session, opened=request.opened, closes=request.closes)
    if mode == "tmux":
        return attending.announced(world, await _in_pane(world, request, plan, session))
    return attending.announced(world, await _kept(world, request, plan, session))


def mode_of(request: StartRequest, runtime: Runtime) -> Held:
    """How the session is held: over the connection where there is one, where nothing has to be guessed."""
    if request.mode == "tmux":
        return "tmux"
    if runtime.connect is not None:
        if request.run.capability is not None and runtime.guarding.by != "approval":
            raise RefusedError(
                f"{runtime.title} cannot be held to the capability {request.run.capability} in a session",
                "Use another agent, 'remuda run', or leave out --capability.",
            )
        return "connection"
    if request.mode == "connection":
        raise UsageError(
            f"{runtime.title} has no connection that lasts for several turns", "Use --mode tmux, or auto."
        )
    return "tmux"


def _recorded(world: World, request: StartRequest, plan: Plan, mode: Held) -> Session:
    now = clock.rfc3339(clock.now())
    return store.begin(
        world.folders.database,
        Session(
            id=plan.session,
            name=request.name,
            agent=plan.agent.name,
            runtime=plan.runtime.name,
            runtime_session=plan.runtime_session,
            cwd=str(plan.cwd),
            mode=mode,
            state="starting",
            source="process",
            seen_at=now,
            started_at=now,
            holder=identity(os.getpid()),
            mark=ulid(),
            options=requests.written(request, mode, plan.runtime.home_variable),
        ),
    )


async def _in_pane(world: World, request: StartRequest, plan: Plan, session: Session) -> Session:
    try:
        session = panes.start(world, request, plan, session)
    except BaseException as error:
        reason = error.message if isinstance(error, RemudaError) else "it was broken off"
        looking.lost(world, session, reason)
        raise
    session, waited = await panes.wait_for(
        world, session, lambda screen: screen.state == "ready", request.wait, panes.agreed(world, request)
    )
    if session.state == "exited":
        raise StartFailedError(Failure("start_failed", _last_words(session, waited.text)))
    return session


def _last_words(session: Session, text: str) -> str:
    """Why a program in a pane has ended, with the last it had to say."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    shown = "\n".join(lines[-8:])
    return (
        f"{session.failure or 'the agent ended at once'}\n{shown}" if shown else session.failure or "it ended"
    )


async def _kept(world: World, request: StartRequest, plan: Plan, session: Session) -> Session:
    """Start the keeper and wait for its word."""
    charge = keeping.Charge(
        session=session.id,
        agent=plan.agent.name,
        runtime=plan.runtime.name,
        runtime_session=plan.runtime_session,
        resume=plan.resume,
        mark=session.mark or "",
        cwd=plan.cwd,
        request=request,
    )
    keeper = _spawned(world, session)
    try:
        held = store.swap(
            world.folders.database,
            session,
            msgspec.structs.replace(session, holder=identity(keeper.pid)),
        )
        said = b"" if held is None else await asyncio.to_thread(_told, keeper, charge, request.wait)
    except BaseException:
        keeper.kill()
        looking.lost(world, session, "it was broken off")
        raise
    finally:
        for pipe in (keeper.stdin, keeper.stdout):
            if pipe is not None:
                pipe.close()
        threading.Thread(target=keeper.wait, daemon=True).start()  # where we outlive it, no zombie stays
    report = msgspec.json.decode(said, type=keeping.Report) if said.strip() else None
    if report is not None and report.failure is not None:
        raise StartFailedError(report.failure)
    return looking.found(world, session.id)


def _has_history(world: World, plan: Plan) -> bool:
    """Whether anything was ever said in a session of ours: one in which nothing was, the agent does not know,
    and begins anew."""
    if store.find(world.folders.database, plan.session) is None:
        return True
    folder = world.folders.data / "sessions" / plan.session
    if any(event.result is not None for event in eventlog.recorded(folder)):
        return True
    if store.messages(world.folders.database, plan.session, ("arrived",)):
        return True
    transcripts = plan.runtime.transcripts
    environ = {**world.environ, **home_of(plan.agent, plan.runtime)}
    places = Places(environ=environ, kept=folder.parent, folders=(plan.cwd,))
    wanted = Wanted(session=plan.runtime_session, cwd=plan.cwd)
    return transcripts is not None and transcripts.find(places, wanted) is not None


def _spawned(world: World, session: Session) -> subprocess.Popen[bytes]:
    """The keeper, detached from us: it has its own session, no terminal, and none of our marks."""
    environ = {name: value for name, value in world.environ.items() if name != MARK}
    folder = private_folder(world.folders.data / "sessions" / session.id)
    handle = os.open(folder / eventlog.ASIDE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-c", keeping.PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=handle,
            env=environ,
            cwd=Path("/"),
            start_new_session=True,
        )
    finally:
        os.close(handle)


def _told(keeper: subprocess.Popen[bytes], charge: keeping.Charge, seconds: float) -> bytes:
    """Tell the keeper what to keep, and what it says within so many seconds: nothing, if it takes longer."""
    import select

    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        keeper.stdin.write(keeping.encoded(charge))
        keeper.stdin.close()
    except BrokenPipeError:
        return b""
    readable, _, _ = select.select([keeper.stdout], [], [], seconds)
    return keeper.stdout.readline() if readable else b""


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be taken up again. Variables are not kept with it, and so are given anew."""

    name: str
    wait: float = 120.0
    consent: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


async def resume(world: World, asked: ResumeRequest, say: Callable[[str], None]) -> Session:
    """Take up a session that has ended, with what it was started with."""
    word = asked.name
    session = looking.found(world, word)
    if session.state != "exited":
        raise UsageError(f"session {word} runs already ({session.state})", "Send to it, or attach to it.")
    if session.name is None:
        raise UsageError(
            f"session {word} was a single run", f"Continue it with 'remuda run --session {session.id}'."
        )
    known = requests.read(session.options)
    request = msgspec.structs.replace(
        known,
        opened=False,
        closes=False,
        wait=asked.wait,
        consent=(*known.consent, *asked.consent),
        run=msgspec.structs.replace(
            known.run,
            session=session.id,
            cwd=None,
            agent=session.agent,
            env={**known.run.env, **asked.env},
        ),
    )
    return await start(world, request, say)
