"""What the tests of real processes share: a machine in a folder, and ways to look at processes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

TOOLS = ("sh", "bash", "cat", "env", "kill", "rmdir", "setsid", "sleep", "git", "stty")
PYTHON = f"#!{sys.executable}\n"
SHELL = "#!/bin/sh\n"
PATIENCE = 60.0
"""Seconds for what has to happen at some time: on a busy machine any process may stand still for a while."""


class Site:
    """A home, a working folder and a PATH that holds nothing but basic tools and fake programs. Hooks start
    no resident process, for it would stay; its own tests do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "remuda"
        self.cwd = folder / "work"
        self.bin = folder / "bin"
        for part in (self.cwd, self.bin):
            part.mkdir()
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        self.program("remuda", f'{SHELL}exec {sys.executable} -m remuda "$@"\n')
        self.env = {
            "PATH": str(self.bin),
            "HOME": str(folder),
            "REMUDA_HOME": str(self.home),
            "REHEARSAL_HOME": str(folder / "rehearsal"),
            "TERM": "xterm",
            "PYTHONWARNINGS": "error",
            "REMUDA_HOOK_ENGINE": "python",
        }

    def program(self, name: str, text: str) -> Path:
        """Put a program on the PATH."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def write(self, name: str, text: str) -> Path:
        """Put a file into the working folder."""
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL, **env: str) -> subprocess.Popen[bytes]:
        """Start ``remuda`` in the working folder, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "remuda", *arguments],
            cwd=self.cwd,
            env={**self.env, **env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def remuda(self, *arguments: str, stdin: bytes = b"", **env: str) -> Ended:
        """Run ``remuda`` to its end."""
        ended = subprocess.run(
            [sys.executable, "-m", "remuda", *arguments],
            cwd=self.cwd,
            env={**self.env, **env},
            input=stdin,
            capture_output=True,
            timeout=2 * PATIENCE,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def processes(self) -> list[int]:
        """The living processes that were started with this site's environment."""
        return carrying(f"REMUDA_HOME={self.home}")


class Ended:
    """How a command ended. A traceback is never an expected end."""

    def __init__(self, code: int, stdout: bytes, stderr: bytes) -> None:
        self.code = code
        self.stdout = stdout.decode()
        self.stderr = stderr.decode()
        assert "Traceback" not in self.stderr, self.stderr

    @property
    def json(self) -> dict[str, object]:
        """Standard output as one JSON document."""
        document = json.loads(self.stdout)
        assert isinstance(document, dict)
        return document

    @property
    def events(self) -> list[dict[str, object]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def result(self) -> dict[str, object]:
        """The result in the last line."""
        result = self.events[-1]["result"]
        assert isinstance(result, dict)
        return result

    @property
    def error(self) -> dict[str, str]:
        """The error in the result."""
        error = self.result["error"]
        assert isinstance(error, dict)
        return error


def finish(process: subprocess.Popen[bytes], timeout: float = PATIENCE) -> Ended:
    """Wait for a started command."""
    stdout, stderr = process.communicate(timeout=timeout)
    return Ended(process.returncode, stdout, stderr)


def _status(pid: int) -> str:
    """A process's state letter; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return _status(pid) not in ("", "Z", "X")


def stopped(pid: int) -> bool:
    """Whether a process is suspended."""
    return _status(pid) == "T"


def waits(pid: int) -> bool:
    """Whether a process has an event loop by now, which it leaves in an orderly way."""
    try:
        handles = [os.readlink(handle) for handle in Path(f"/proc/{pid}/fd").iterdir()]  # noqa: PTH115
    except OSError:
        return False
    return "anon_inode:[eventpoll]" in handles


def sleeps(pid: int) -> int:
    """How often a process went to sleep of its own accord so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def settled(pid: int) -> None:
    """Wait until a process goes round in its event loop, and has been round it some times."""
    eventually(lambda: waits(pid))
    before = sleeps(pid)
    eventually(lambda: sleeps(pid) >= before + 40)


def carrying(entry: str) -> list[int]:
    """The living processes with this entry in their environment, this one excepted."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                environ = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if entry.encode() in environ and alive(int(folder.name)):
                found.append(int(folder.name))
    return found


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until something holds; fails when it never does. What looks into a file that is not there yet does
    not hold yet."""
    end = time.monotonic() + seconds
    while not _holds(condition):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except FileNotFoundError:
        return False


def kill(pid: int) -> None:
    """Kill a process, and wait until it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(pid))


def read_pid(path: Path) -> int:
    """The process id that a program writes to a file once it runs."""
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def python(code: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """What a Python program prints."""
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


_IN_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A program on a real terminal: what is typed, and what the screen has shown so far."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _IN_TERMINAL, *argv],
            cwd=cwd,
            env=dict(env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self.shown = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, keys: str) -> None:
        """Press keys; control characters do what they do on a keyboard."""
        os.write(self._master, keys.encode())

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)

    def expect(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until the screen shows a text behind the one that was waited for last."""
        end = time.monotonic() + seconds
        while (place := self.shown.find(text, self._seen)) < 0:
            self._read(0.05)
            assert time.monotonic() < end, f"{text!r} is not in {self.shown[self._seen :]!r}"
        self._seen = place + len(text)

    def end(self, seconds: float = PATIENCE) -> int:
        """The exit code, 128+n for signal n."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            self._read(0.02)
            assert time.monotonic() < end, f"it still runs: {self.shown!r}"
        while self._read(0):
            pass
        code = self.process.returncode
        return 128 - code if code < 0 else code
