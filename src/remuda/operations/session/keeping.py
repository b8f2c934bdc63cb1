"""The program that keeps one connected session: prepares the agent, starts it, and is there for orders.

It is started detached by whoever starts a session, which tells it all on standard input and hears on standard
output, once, whether the session takes prompts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from remuda.core import clock
from remuda.core.errors import NotInstalledError, RefusedError, RemudaError
from remuda.core.events import Failure
from remuda.core.processes import Command, Process, started
from remuda.operations.guarding import bounded, supervised
from remuda.operations.preparation import command_of, found_program, keep, turn_of
from remuda.operations.requests import Plan
from remuda.operations.sandboxing import contained
from remuda.operations.session import requests
from remuda.operations.world import World, open_world
from remuda.prompts import delivery
from remuda.runtimes.base import Channel, Connect, Connection
from remuda.sessions import orders, store
from remuda.sessions.keeper import Keeper, Post
from remuda.sessions.live import Patience

PROGRAM = "from remuda.operations.session.keeping import main; main()"


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper is told: which session it keeps, and what was asked for."""

    session: str
    agent: str
    runtime: str
    runtime_session: str
    resume: bool
    mark: str
    cwd: Path
    request: requests.StartRequest


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a keeper says once: that the session takes prompts, or why it never will."""

    failure: Failure | None = None


def encoded(charge: Charge) -> bytes:
    """A charge as it travels."""
    return msgspec.json.encode(charge, enc_hook=str)


def main() -> None:
    """Keep the session that is described on standard input; none is, when whoever starts us has died."""
    told = sys.stdin.buffer.read()
    if not told:
        return
    charge = msgspec.json.decode(told, type=Charge, dec_hook=requests.path)
    world = open_world(cwd=charge.cwd)
    try:
        _keep(world, charge)
    except RemudaError as error:
        _fail(world, charge, _failure(error))
    except Exception as error:
        _fail(world, charge, Failure("crashed", f"the keeper failed: {type(error).__name__}"))
        raise


def _failure(error: RemudaError) -> Failure:
    if isinstance(error, RefusedError):
        return Failure("refused", str(error))
    if isinstance(error, NotInstalledError):
        return Failure("not_installed", str(error))
    return Failure("start_failed", str(error))


def _fail(world: World, charge: Charge, failure: Failure) -> None:
    store.end(world.folders.database, charge.session, clock.rfc3339(clock.now()), failure, "keeper")
    _report(failure)


def _report(failure: Failure | None) -> None:
    """Say how it went, to whoever still listens, and let go of the pipe."""
    with suppress(OSError):
        os.write(1, msgspec.json.encode(Report(failure)) + b"\n")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _keep(world: World, charge: Charge) -> None:
    with ExitStack() as held:
        scratch = held.enter_context(delivery.scratch_folder(world.folders.runtime / "scratch"))
        command, connection, post = _prepared(world, charge, scratch)
        process = held.enter_context(started(command, charge.mark))
        asyncio.run(_converse(Keeper(post), process, connection))


async def _converse(keeper: Keeper, process: Process, connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, keeper.stop)
    reported = False

    def opened() -> None:
        nonlocal reported
        reported = True
        _report(None)

    failure = await keeper.keep(process, connection, opened)
    if not reported:
        _report(failure or Failure("start_failed", "the agent ended before it took a prompt"))


def _prepared(world: World, charge: Charge, scratch: Path) -> tuple[Command, Connection, Post]:
    """The command to start, the conversation to have, and what the keeper needs to know."""
    run = charge.request.run
    runtime = world.herd.get(charge.runtime)
    connect = runtime.connect
    assert connect is not None
    plan = Plan(
        world.roster.get(charge.agent),
        runtime,
        charge.cwd,
        charge.session,
        charge.runtime_session,
        charge.resume,
    )
    found = found_program(world, runtime)
    turn = turn_of(world, run, plan, scratch)
    if run.capability is None:
        turn, build = supervised(world, run, plan, turn), connect.command
    else:
        turn = bounded(world, run, plan, found, turn, attended=True)
        build = runtime.guarding.command or connect.command
    invocation = build(turn)
    keep(turn, invocation)
    channel = runtime.guarding.channel or Channel("connection", (), connect.verified)
    walled = contained(world, run, plan, turn, invocation, command_of(found, turn, invocation))
    command = delivery.deliver(walled, channel, "", invocation.files, scratch)
    return command, connect.connection(turn), _post(world, charge, connect)


def _post(world: World, charge: Charge, connect: Connect) -> Post:
    config = world.config.sessions
    run = charge.request.run
    return Post(
        session=charge.session,
        agent=charge.agent,
        database=world.folders.database,
        place=orders.folder_of(world.folders.runtime, charge.session),
        record=world.folders.data / "sessions" / charge.session,
        channel=connect.protocol,
        proof=connect.acknowledges,
        disarm=world.herd.get(charge.runtime).disarm,
        answer_within=config.answer_within,
        patience=Patience(
            idle=config.idle_timeout if run.idle_timeout is None else run.idle_timeout,
            abort=config.abort_within,
        ),
    )
