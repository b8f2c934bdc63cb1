"""Records the screens of the agent CLIs: walks through their terminal interfaces and captures what they show.

Usage: python tools/loopback.py python tools/record_screens.py [--size COLSxROWS] [NAME…]

The walk through a program is a function ``walk(stage)`` in tools/screens/NAME.py. It runs in a tmux server of
its own, with a fresh home, fake keys and the rehearsal server as the model.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from record_fixtures import ROOT, agents_path
from tests.agents.network import objection

from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes import registry, screens
from remuda.runtimes.base import Permission, Runtime, Turn

TARGET = ROOT / "tests" / "fixtures" / "screens"
SIZES = ((110, 36), (80, 24), (160, 48), (200, 60))
PATIENCE = 60.0
"""Seconds to wait for a screen; a small machine may be busy."""


class MissingScreenError(Exception):
    """A screen that a walk waited for did not come up."""


class Stage:
    """One program in one tmux pane of one size: what a walk drives and captures."""

    def __init__(self, runtime: Runtime, size: tuple[int, int], path: str, server: RehearsalServer) -> None:
        self.runtime = runtime
        self.size = size
        self.server = server
        self.place = Path(f"/var/tmp/remuda-screens-{runtime.name}")
        self.home, self.work = self.place / "home", self.place / "work"
        self._path = path
        self._mark = uuid.uuid4().hex
        self.recorded: list[str] = []

    # the program

    def fresh(self) -> None:
        """An empty home and an empty folder to work in."""
        shutil.rmtree(self.place, ignore_errors=True)
        for folder in (self.home, self.work, self.place / "scratch", self.place / "keep"):
            folder.mkdir(parents=True)

    def turn(self, permission: Permission = "ask", session: str = "", resume: bool = False) -> Turn:
        """What the program is started for."""
        return Turn(
            cwd=self.work,
            scratch=self.place / "scratch",
            keep=self.place / "keep",
            session=session or str(uuid.uuid4()),
            resume=resume,
            permission=permission,
            endpoint=self.server.url,
            environ={"PATH": self._path, "HOME": str(self.home)},
        )

    @contextlib.contextmanager
    def running(
        self,
        permission: Permission = "ask",
        *,
        env: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        session: str = "",
        resume: bool = False,
    ) -> Iterator[None]:
        """The program in its pane, with nothing of it left afterwards."""
        turn = self.turn(permission, session, resume)
        invocation = self.runtime.spawn_command(turn)
        for file in invocation.files:
            (turn.scratch / file.name).write_text(file.content)
        for file in invocation.kept:
            (turn.keep / file.name).parent.mkdir(parents=True, exist_ok=True)
            (turn.keep / file.name).write_text(file.content)
        environ = {
            "PATH": self._path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "tmux-256color",
            "COLORTERM": "truecolor",
            "SHELL": "/bin/sh",
            "SCREENS_MARK": self._mark,
            **self.runtime.quiet,
            **invocation.env,
            **(env or {}),
        }
        program = self.runtime.locate(self.runtime.binary, environ)
        if program is None:
            sys.exit(f"{self.runtime.name} is not installed: run 'make agents'")
        pairs = [f"{name}={value}" for name, value in environ.items()]
        command = ["env", "-i", *pairs, *program, *invocation.arguments, *arguments]
        self._begin(command)
        try:
            yield
        finally:
            self.tmux("kill-server", check=False)
            self.end_leftovers()

    def _begin(self, command: list[str]) -> None:
        columns, rows = self.size
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(self.work), "sleep 600")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("set-option", "-g", "default-terminal", "tmux-256color")
        self.tmux("respawn-pane", "-k", "-c", str(self.work), shlex.join(command))

    def tmux(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        """A command for the stage's own tmux server."""
        command = ["tmux", "-S", str(self.place / "tmux"), "-f", "/dev/null", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, input=stdin)
        if check and done.returncode != 0:
            raise RuntimeError(f"{arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def processes(self) -> list[tuple[int, str]]:
        """What this stage started and still runs, however it detached itself: pid and command line."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if self._mark.encode() in (entry / "environ").read_bytes():
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append((int(entry.name), line))
        return found

    def end_leftovers(self) -> list[str]:
        """End what outlived the pane; what that was, is the answer."""
        deadline = time.monotonic() + 5
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        left = self.processes()
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for _, line in left:
            print(f"{self.runtime.name:10} left behind: {line[:100]}", flush=True)
        return [line for _, line in left]

    @property
    def ended(self) -> bool:
        """Whether the program has ended by itself."""
        return self.tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    # what a person would do

    def play(self, *steps: Step) -> None:
        """Let the model go through these steps."""
        self.server.set_scenario(Scenario("screens", (Rule(steps),)))

    def keys(self, *names: str) -> None:
        """Press keys, by their tmux names."""
        for name in names:
            self.tmux("send-keys", name)
            time.sleep(0.15)

    def type(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", text)
        time.sleep(0.4)

    def paste(self, text: str) -> None:
        """Paste a text the way terminals do, in brackets."""
        self.tmux("load-buffer", "-b", "screens", "-", stdin=text)
        self.tmux("paste-buffer", "-p", "-r", "-d", "-b", "screens")
        time.sleep(0.6)

    def say(self, text: str) -> None:
        """Type a text and submit it."""
        self.type(text)
        self.keys("Enter")

    # what is to be seen

    def screen(self) -> str:
        """The screen as it is now."""
        return self.tmux("capture-pane", "-p")

    def wait(self, regex: str, seconds: float = PATIENCE) -> str:
        """The screen, as soon as it has something on it."""
        return self.until(lambda screen: re.search(regex, screen, re.MULTILINE) is not None, regex, seconds)

    def gone(self, regex: str, seconds: float = PATIENCE) -> str:
        """The screen, as soon as something is no longer on it."""
        return self.until(lambda screen: not re.search(regex, screen, re.MULTILINE), f"no {regex}", seconds)

    def until(self, holds: Callable[[str], bool], what: str, seconds: float = PATIENCE) -> str:
        """The screen, as soon as a condition holds."""
        deadline = time.monotonic() + seconds
        while not holds(screen := self.screen()):
            if time.monotonic() > deadline:
                raise MissingScreenError(f"{self.runtime.name}: waited in vain for {what}\n{screen.rstrip()}")
            time.sleep(0.1)
        return screen

    def still(self, seconds: float = 1.2) -> str:
        """The screen, when it has not changed for so long."""
        last, since = self.screen(), time.monotonic()
        deadline = since + PATIENCE
        while time.monotonic() - since < seconds and time.monotonic() < deadline:
            time.sleep(0.1)
            now = self.screen()
            if now != last:
                last, since = now, time.monotonic()
        return last

    def record(self, name: str, regex: str = "", *, still: bool = True, titled: bool = False) -> str:
        """Capture the screen as STATE-what, when the given text has come up and nothing moves any more (a
        screen with a spinner never is ``still``). Where only the terminal's title tells the truth, the
        recording is ``titled``: it has the title beside it."""
        if regex:
            self.wait(regex)
        screen = self.still() if still else self.screen()
        columns, rows = self.size
        target = TARGET / self.runtime.name / f"{name}-{columns}x{rows}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._anonymous(screen), encoding="utf-8")
        self.recorded.append(target.name)
        if titled:
            title = self.tmux("display-message", "-p", "#{pane_title}")
            target.with_suffix(".title").write_text(title, encoding="utf-8")
        print(f"{self.runtime.name:10} {target.stem:40} {self._verdict(screen)}", flush=True)
        return screen

    def _verdict(self, screen: str) -> str:
        if not screens.shipped(self.runtime.name).exists():
            return "no manifest yet"
        found = screens.classify(screens.load(self.runtime.name, self.place / "none"), screen)
        return f"{found.state} {found.rule}"

    def _anonymous(self, screen: str) -> str:
        """The same screen without the folders of this machine."""
        agents = Path(self._path.partition(":")[0]).parent
        for folder, name in ((agents, "/agents"), (ROOT, "/remuda"), (Path.home(), "~")):
            screen = screen.replace(str(folder), name)
        return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", screen)


Walk = Callable[[Stage], None]


def walk_of(name: str) -> Walk:
    """The walk through a program; a file of that name holds it."""
    path = Path(__file__).parent / "screens" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"screens_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    walk: Walk = module.walk
    return walk


def walked() -> list[str]:
    """The programs that have a walk."""
    files = (Path(__file__).parent / "screens").glob("*.py")
    return sorted(file.stem for file in files if file.stem in registry.names())


def record(name: str, size: tuple[int, int], path: str) -> None:
    """Walk through one program at one size, and replace its recordings of that size."""
    with RehearsalServer(Scenario("screens", (Rule((Step(text="All done."),)),))) as server:
        stage = Stage(registry.get(name), size, path, server)
        stage.fresh()
        try:
            walk_of(name)(stage)
        finally:
            shutil.rmtree(stage.place, ignore_errors=True)
    for file in (TARGET / name).glob(f"*-{size[0]}x{size[1]}.txt"):
        if file.name not in stage.recorded:
            file.unlink()


def main() -> None:
    if reason := objection():
        sys.exit(reason)
    if shutil.which("tmux") is None:
        sys.exit("tools/record_screens.py needs tmux")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", action="append", metavar="COLSxROWS")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    columns_rows = (size.split("x") for size in options.size or ())
    sizes = [(int(columns), int(rows)) for columns, rows in columns_rows] or SIZES
    path = agents_path()
    for name in options.names or walked():
        for size in sizes:
            record(name, size, path)


if __name__ == "__main__":
    main()
