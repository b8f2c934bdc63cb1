"""A tmux server of its own for every test, and a program that tells what was typed to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import alive, eventually

from remuda.sessions.tmux.panes import Pane
from remuda.sessions.tmux.server import Tmux

PATH = os.environ["PATH"]
ENV = {"PATH": PATH}
ROOT = Path("/")

_RAW = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004hready")
got = b""
end = sys.argv[2].encode()
while not got.endswith(end):
    got += os.read(0, 65536)
with open(sys.argv[1] + "~", "wb") as stream:
    stream.write(got)
os.rename(sys.argv[1] + "~", sys.argv[1])
"""
"""Reads what is typed as a terminal interface does: raw, with pastes in brackets, up to an end."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path: that of a socket may have some hundred bytes."""
    folder = Path(tempfile.mkdtemp(prefix="rmd-"))
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def served(socket: Path, **environ: str) -> Iterator[Tmux]:
    """A server that is gone afterwards, with everything that it ran."""
    tmux = Tmux(socket, {"PATH": PATH, **environ})
    pids: list[int] = []
    try:
        yield tmux
        pids = [view.pane.pid for view in tmux.panes()]
    finally:
        tmux.kill_server()
    eventually(lambda: not any(map(alive, pids)))


@pytest.fixture
def tmux(place: Path) -> Iterator[Tmux]:
    with served(place / "run/tmux.sock") as server:
        yield server
    assert list((place / "run").iterdir()) == []


def raw(tmux: Tmux, file: Path, end: str, name: str = "raw") -> Pane:
    pane = tmux.new(name, [sys.executable, "-c", _RAW, str(file), end], ENV, ROOT)
    eventually(lambda: "ready" in tmux.capture(pane))
    return pane


def written(file: Path) -> bytes:
    eventually(file.exists)
    return file.read_bytes()


def server_pid(tmux: Tmux) -> int:
    argv = (*tmux.client.argv(), "display-message", "-p", "#{pid}")
    return int(subprocess.run(argv, capture_output=True, check=True).stdout)
