"""The process that verifies one runtime, inside the enclosure: an order on stdin, messages on stdout.

Its own environment holds nothing secret, and agents get a smaller one yet: a home of their own, and the
scripted model.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from remuda.core import evidence, paths
from remuda.core.config import Config, RuntimeConfig
from remuda.core.environment import BASE, ENDPOINT, allowed, without
from remuda.core.errors import RemudaError
from remuda.core.events import Event, Failure, Result
from remuda.core.files import private_folder
from remuda.dispatch import installation
from remuda.operations.guardinstall import Request, install
from remuda.operations.run import RunRequest, run
from remuda.operations.verification import enclosure
from remuda.operations.verification.checks import FILE, OUTSIDE, Check, Deed, table
from remuda.operations.verification.judgements import Seen, hangs
from remuda.operations.verification.lookout import Lookout
from remuda.operations.verification.messages import (
    Begun,
    Finding,
    Message,
    Opened,
    Order,
    Subject,
    as_evidence,
)
from remuda.operations.world import World
from remuda.prompts.selection import VARIABLES
from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes.base import Runtime

HANGS = "not checked: the program hangs"
DEAF = "not checked: no prompt reaches the model"
BUSY = 3.0
"""How much longer a program may take to start on a busy machine."""

_OWN = ("HOME", "PWD", "TMPDIR", "XDG_*", "REMUDA_*", "GIT_*", "*_PROXY", "*_proxy")


def tell(message: Message) -> None:
    """Hand one message to whoever ordered the verification."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def private_world(order: Order, environ: Mapping[str, str]) -> World:
    """A world in which nothing is the user's but the programs, and what is known about their versions."""
    home, work = (private_folder(Path(order.folder, name)) for name in ("home", "work"))
    variables = {
        **without(allowed(environ, BASE), _OWN),
        "HOME": str(home),
        "REMUDA_HOME": str(home / "remuda"),
    }
    variables.setdefault("LANG", "C.UTF-8")
    folders = msgspec.structs.replace(
        paths.folders(variables), config=Path(order.config), cache=Path(order.cache)
    )
    return World(
        variables, work, folders, Config(runtimes={order.runtime: RuntimeConfig(binary=order.binary)})
    )


class Worker:
    """Goes through a runtime's checks with one model server."""

    def __init__(
        self, world: World, runtime: Runtime, version: str, server: RehearsalServer, timeout: float
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._version = version
        self._server = server
        self._timeout = timeout
        self._skip: str | None = None
        self._channels = {f"channel.{channel.mode}" for channel in runtime.channels}

    async def verify(self, subject: Subject, lookout: Lookout) -> None:
        """Tell every finding; the last one of everything is about quietness, which all the runs decide."""
        for check in table(self._runtime, subject):
            unseen = self._skip or (check.unseen and f"not checked: {check.unseen}")
            if not unseen:
                lookout.occasion = check.title
                await self._check(check)
            else:
                for claim in check.claims:
                    tell(Finding(claim.what, "unchecked", 0, unseen))
        if subject == "everything":
            tell(self._quiet(lookout))

    async def _check(self, check: Check) -> None:
        tell(Begun(check.title))
        started = time.monotonic()
        seen = await self._runs(check.deeds)
        seconds = round(time.monotonic() - started, 1)
        stuck = hangs(seen[-1])
        if stuck is not None:
            self._skip = HANGS
        for claim in check.claims:
            complaint = claim.judge(self._runtime, seen) if stuck is None else stuck
            finding = Finding(claim.what, "fails" if complaint else "holds", seconds, complaint or claim.how)
            self._withdraw(finding)
            tell(finding)

    def _withdraw(self, finding: Finding) -> None:
        """The checks that follow use the channels that deliver, as every later run of the user's does."""
        if finding.verdict != "fails" or finding.what not in self._channels:
            return
        self._channels.remove(finding.what)
        evidence.store(
            self._world.folders.evidence_file, as_evidence(self._runtime.name, self._version, finding)
        )
        if not self._channels:
            self._skip = self._skip or DEAF

    async def _runs(self, deeds: Sequence[Deed]) -> list[Seen]:
        seen: list[Seen] = []
        session: str | None = None
        for deed in deeds:
            if deed.resumes and session is None:
                break
            run = await self._run(deed, session if deed.resumes else None)
            seen.append(run)
            session = None if run.result.error else run.events[-1].session
            if hangs(run) is not None:
                break
        return seen

    async def _run(self, deed: Deed, session: str | None) -> Seen:
        """One run, by the door that every prompt enters by."""
        self._server.set_scenario(_script(deed.steps))
        before = len(self._server.heard())
        _empty(self._world.cwd)
        (self._world.cwd.parent / OUTSIDE).unlink(missing_ok=True)
        if deed.hooked:
            install(self._world, Request(runtimes=(self._runtime.name,), trust=True))
        events: list[Event] = []
        with self._endpoint(deed) as url:
            variables = {**self._world.environ, ENDPOINT: url, VARIABLES[0]: deed.delivery}
            world = msgspec.structs.replace(self._world, environ=variables)
            try:
                events += [event async for event in run(world, self._request(deed, session), asyncio.Event())]
            except RemudaError as error:
                return Seen((), Result.failed(Failure("refused", error.message)), (), None)
        result = events[-1].result
        assert result is not None
        file, outside = self._world.cwd / FILE, self._world.cwd.parent / OUTSIDE
        written = file.read_text("utf-8", "replace") if file.exists() else None
        return Seen(tuple(events), result, self._server.heard()[before:], written, outside.exists())

    def _request(self, deed: Deed, session: str | None) -> RunRequest:
        within = deed.within + BUSY * self._runtime.conduct.startup
        return RunRequest(
            prompt=deed.prompt,
            agent=self._runtime.name,
            permission=deed.permission,
            capability=deed.capability,
            unproven=True,
            nested=True,
            session=session,
            timeout=min(self._timeout or within, within),
            env=self._variables(deed),
        )

    def _variables(self, deed: Deed) -> dict[str, str]:
        """What the program needs for a bypass, and what hooks in its settings are told."""
        needed = self._runtime.conduct.bypass_as_root if deed.permission == "bypass" else {}
        worktree = {"REMUDA_CAPABILITY": "builder", "REMUDA_WORKTREE": str(self._world.cwd)}
        return {**needed, **(worktree if deed.hooked else {})}

    @contextlib.contextmanager
    def _endpoint(self, deed: Deed) -> Iterator[str]:
        """The model server, or a port that is taken and answers nobody."""
        if deed.model == "answers":
            yield self._server.url
            return
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{taken.getsockname()[1]}"

    def _quiet(self, lookout: Lookout) -> Finding:
        if attempts := lookout.attempts():
            more = f", and {len(attempts) - 5} more" if len(attempts) > 5 else ""
            return Finding("quiet", "fails", 0, f"it {', '.join(attempts[:5])}{more}")
        if missed := lookout.missed():
            return Finding("quiet", "unchecked", 0, f"not checked: {missed} packets went by unseen")
        if self._skip:
            return Finding("quiet", "unchecked", 0, self._skip)
        return Finding("quiet", "holds", 0, "no name looked up, no connection tried outside loopback")


def _script(steps: tuple[Step, ...]) -> Scenario:
    return Scenario("verification", (Rule(steps),))


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


async def work(order: Order, environ: Mapping[str, str]) -> None:
    """Carry out an order."""
    world = private_world(order, environ)
    runtime = world.herd.get(order.runtime)
    with Lookout("asked for its version") as lookout:
        found = installation.find(runtime, world.environ, world.config)
        version = (
            await installation.version(runtime, found, world.environ, world.folders.cache)
            if found
            else installation.Version(None, f"{runtime.binary} is no longer there")
        )
        tell(Opened(version.number))
        if version.number is None:
            tell(Finding("version", "fails", 0, version.trouble))
            return
        with RehearsalServer(_script((Step(text=""),)), record_bodies=True) as server:
            worker = Worker(world, runtime, version.number, server, order.timeout)
            await worker.verify(order.subject, lookout)


def main() -> int:
    """Enter the enclosure before anything of the runtime's is run."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        enclosure.close(order.outside)
    except (RemudaError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    asyncio.run(work(order, os.environ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
