"""A machine with sessions on it: the rehearsal agent, a scripted model, and what is left when they end."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import Ended, Site, alive, carrying, eventually

from remuda.core.identity import pid_of
from remuda.rehearsal.scenario import Rule, Scenario, Step, When
from remuda.rehearsal.server import RehearsalServer
from remuda.sessions import store

SLOW = 60.0


def shell(command: str) -> Step:
    return Step(tool="shell", input={"command": command})


DONE = Step(text="All done.")


class Stable:
    """A site whose sessions talk to a model that is told what to say."""

    def __init__(self, folder: Path, server: RehearsalServer) -> None:
        self.site = Site(folder)
        tmux = shutil.which("tmux")
        assert tmux is not None
        (self.site.bin / "tmux").symlink_to(tmux)
        self.site.env["REMUDA_ENDPOINT"] = server.url
        self.server = server
        self.cwd = self.site.cwd

    def play(self, *rules: tuple[str, tuple[Step, ...]]) -> None:
        """What the model says to a prompt with a word in it."""
        made = tuple(Rule(steps, When(contains=word)) for word, steps in rules)
        self.server.set_scenario(Scenario("test", (*made, Rule((DONE,)))))

    def session(self, *arguments: str, stdin: bytes = b"", **env: str) -> Ended:
        """Call ``remuda session``."""
        return self.site.remuda("session", *arguments, stdin=stdin, **env)

    def start(self, name: str, *options: str, mode: str = "connection", **env: str) -> Ended:
        """Start a session of the rehearsal agent."""
        return self.session("start", name, "--agent", "rehearsal", "--mode", mode, *options, **env)

    def seen(self, name: str) -> dict[str, Any]:
        """A session as ``show`` tells it."""
        shown: dict[str, Any] = self.session("show", name, "--json").json
        return shown

    def state(self, name: str) -> str:
        return str(self.seen(name)["session"]["state"])

    def row(self, name: str) -> store.Session:
        found = store.find(self.site.home / "state" / "remuda.db", name)
        assert found is not None
        return found

    def holder(self, name: str) -> int:
        """The process that a session depends on."""
        holder = self.row(name).holder
        assert holder is not None
        return pid_of(holder)

    def agents(self) -> list[int]:
        """Every process of the agents, and of what they started."""
        return [pid for pid in carrying(f"HOME={self.site.folder}") if not _is_tmux(pid)]

    def tmux_servers(self) -> list[int]:
        """The processes of this stable's tmux server; none where there is none."""
        home = str(self.site.home)
        return [pid for pid in _everyone() if _is_tmux(pid) and home in _cmdline(pid) and alive(pid)]

    def tmux_server(self) -> int:
        """The tmux server's process."""
        (server, *_) = self.tmux_servers()
        return server

    def heard(self) -> list[str]:
        return [heard.prompt for heard in self.server.heard() if heard.api]

    def end(self) -> None:
        """Nothing may be left."""
        self.session(
            "stop", *[row.id for row in store.listed(self.site.home / "state" / "remuda.db")] or ["-"]
        )
        eventually(lambda: not self.agents())


def _everyone() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _is_tmux(pid: int) -> bool:
    return _cmdline(pid).split("\0")[0].endswith("tmux") or "tmux: server" in _cmdline(pid)


@pytest.fixture
def stable(tmp_path: Path) -> Iterator[Stable]:
    """A stable for one test; whatever it leaves is ended, and counts as a failure."""
    with RehearsalServer(Scenario("test", (Rule((DONE,)),)), record_bodies=True) as server:
        made = Stable(tmp_path, server)
        yield made
        made.end()
        for pid in made.agents():
            os.kill(pid, signal.SIGKILL)
