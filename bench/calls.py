"""How Remuda calls an agent's program for a session, so that the same call can be made without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from measure import Timing
from overhead import UUID

from remuda.core.identity import pid_of
from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes import registry
from remuda.sessions import store

PATIENCE = 120.0
PAUSE = 0.01
_STAND_IN = """#!{python}
import json, os, sys
if not os.path.exists({path!r}):  # a later call asks for the version
    open({path!r}, "x").write(json.dumps({{"arguments": sys.argv[1:], "env": dict(os.environ)}}))
"""


class Call(NamedTuple):
    """How a program is called, but for the program itself."""

    arguments: list[str]
    env: dict[str, str]


class Bench(NamedTuple):
    """One agent with a home of its own, and the model that hears its prompts."""

    agent: str
    home: Path
    env: dict[str, str]
    server: RehearsalServer

    @property
    def work(self) -> Path:
        return self.home / "work"

    def remuda(self, *arguments: str, **env: str) -> tuple[Timing, float, int]:
        """Run ``remuda session``: its times, when it began, and its exit code."""
        program = str(Path(sys.executable).with_name("remuda"))
        began, started = time.time(), time.perf_counter()
        process = subprocess.Popen(
            (program, "session", *arguments),
            env={**self.env, **env},
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        took = (time.perf_counter() - started) * 1000
        process.returncode = os.waitstatus_to_exitcode(status)
        return Timing(took, (usage.ru_utime + usage.ru_stime) * 1000), began, process.returncode

    def row(self, name: str) -> store.Session:
        """What is on record of a session."""
        row = store.find(self.home / "remuda" / "state" / "remuda.db", name)
        assert row is not None
        return row

    def clear(self) -> None:
        """End the sessions that a failure has left."""
        left = store.listed(self.home / "remuda" / "state" / "remuda.db")
        if left:
            self.remuda("stop", *(row.id for row in left))

    def heard(self, word: str) -> float:
        """When the model was asked something with this word in it."""
        return float(
            until(lambda: next((_time(h.time) for h in self.server.heard() if word in h.prompt), None))
        )


def _time(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def until(look: Callable[[], Any]) -> Any:
    """What a look finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if (found := look()) is not None:
            return found
        time.sleep(PAUSE)
    raise RuntimeError("nothing happened in time")


def argv(bench: Bench, call: Call) -> list[str]:
    """The call as it was recorded, for a session of its own."""
    session = str(uuid.uuid4())
    found = registry.get(bench.agent).locate(registry.get(bench.agent).binary, bench.env)
    assert found is not None
    return [*found, *(UUID.sub(session, argument) for argument in call.arguments)]


def recorded(bench: Bench, mode: str) -> Call:
    """How Remuda calls the program: as a stand-in writes it down or, for one of ours, as it runs."""
    name, options = f"{mode}-recorded", ("--agent", bench.agent, "--mode", mode)
    if registry.get(bench.agent).built_in:
        bench.remuda("start", name, *options)
        call = _running(bench.row(name), mode)
        bench.remuda("stop", name)
    else:
        call = _written(bench, mode, ("start", name, *options, "--wait", "10"))
    dropped = ("REMUDA_HOME", "REMUDA_MARK", "TMUX", "TMUX_PANE")
    return Call(call.arguments, {name: value for name, value in call.env.items() if name not in dropped})


def _running(row: store.Session, mode: str) -> Call:
    pid = pid_of(row.holder or "")
    if mode == "connection":
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pid = next(int(child) for child in children if b"-p" in _words(int(child), "cmdline"))
    words = [os.fsdecode(word) for word in _words(pid, "cmdline")]
    pairs = (os.fsdecode(word).partition("=") for word in _words(pid, "environ"))
    return Call(words[4:], {name: value for name, _, value in pairs})


def _words(pid: int, what: str) -> list[bytes]:
    return Path(f"/proc/{pid}/{what}").read_bytes().rstrip(b"\0").split(b"\0")


def _written(bench: Bench, mode: str, start: tuple[str, ...]) -> Call:
    record, stand_in = bench.home / f"{mode}.json", bench.home / f"{mode}-stand-in"
    settings = bench.home / f"{mode}-settings"
    stand_in.write_text(_STAND_IN.format(python=sys.executable, path=str(record)))
    stand_in.chmod(0o700)
    (settings / "config").mkdir(parents=True)
    (settings / "config" / "config.toml").write_text(f'[runtimes.{bench.agent}]\nbinary = "{stand_in}"\n')
    bench.remuda(*start, REMUDA_HOME=str(settings))
    return Call(**json.loads(record.read_text()))
