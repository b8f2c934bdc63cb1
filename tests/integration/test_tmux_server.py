"""Where the tmux server lives, and what becomes of calls when it does not: on a real tmux."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.tmuxes import ENV, PATH, ROOT, raw, served, server_pid, written
from tests.support import Terminal, alive, carrying, eventually

from remuda.core.errors import NotInstalledError, RefusedError
from remuda.sessions.tmux import errors
from remuda.sessions.tmux.panes import Pane
from remuda.sessions.tmux.server import Tmux


def test_a_server_outlives_who_started_it_and_keeps_nothing_of_them(place: Path) -> None:
    """Not their output, or who reads that would wait for it; not their mark, or the reaper would end it."""
    code = (
        "import os, sys; from pathlib import Path; from remuda.sessions.tmux.server import Tmux\n"
        "tmux = Tmux(Path(sys.argv[1]), os.environ)\n"
        "tmux.new('a', ['sleep', '1000'], {'PATH': os.environ['PATH']}, Path('/'))\n"
    )
    mark = f"test-{os.urandom(6).hex()}"
    with served(place / "tmux.sock") as tmux:
        began = time.monotonic()
        argv = [sys.executable, "-c", code, str(place / "tmux.sock")]
        done = subprocess.run(argv, env={**ENV, "REMUDA_MARK": mark}, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert time.monotonic() - began < 60
        assert tmux.alive(tmux.find("a").pane)
        assert carrying(f"REMUDA_MARK={mark}") == []
        group = os.getpgid(server_pid(tmux))
        assert group not in (os.getpgid(0), os.getpgid(tmux.find("a").pane.pid))
    assert list(place.iterdir()) == []


def test_many_may_start_the_server_at_once(tmux: Tmux) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = [f"n{number}" for number in range(8)]
        panes = list(pool.map(lambda name: tmux.new(name, ["sleep", "1000"], ENV, ROOT), names))
    assert sorted(tmux.sessions()) == names
    assert all(map(tmux.alive, panes))


def test_two_servers_never_see_each_other(place: Path) -> None:
    with served(place / "1/tmux.sock") as one, served(place / "2/tmux.sock") as two:
        first = one.new("a", ["sleep", "1000"], ENV, ROOT)
        assert two.sessions() == ()
        second = two.new("a", ["sleep", "1000"], ENV, ROOT)
        assert first.id == second.id
        assert two.kill("a")
        assert one.alive(first)


def test_a_socket_may_lie_deep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place / "t"))
    deep = place / ("d" * 100) / ("e" * 100) / "run"
    with served(deep / "tmux.sock") as tmux:
        pane = tmux.new("a", ["sleep", "1000"], ENV, ROOT)
        assert tmux.alive(pane)
        assert deep.stat().st_mode & 0o777 == 0o700
        eventually(lambda: [file.name for file in deep.iterdir()] == ["tmux.sock"])
        assert Tmux(deep / "tmux.sock", ENV).sessions() == ("a",)
    assert list(deep.iterdir()) == []
    assert list((place / "t").iterdir()) == []


def test_a_folder_that_others_may_enter_is_closed_first(place: Path) -> None:
    (place / "run").mkdir(mode=0o755)
    (place / "run").chmod(0o755)
    with served(place / "run/tmux.sock") as tmux:
        tmux.new("a", ["sleep", "1000"], ENV, ROOT)
        assert (place / "run").stat().st_mode & 0o777 == 0o700
        assert (place / "run/tmux.sock").stat().st_mode & 0o077 == 0


def test_a_way_that_somebody_else_prepared_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / f"remuda-{os.getuid()}").mkdir(mode=0o755)
    (place / f"remuda-{os.getuid()}").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with pytest.raises(RefusedError):
        Tmux(place / ("d" * 100) / "tmux.sock", ENV).new("a", ["true"], ENV, ROOT)


def test_without_tmux_the_error_says_how_to_get_it(place: Path) -> None:
    tmux = Tmux(place / "run/tmux.sock", {"PATH": str(place)})
    with pytest.raises(NotInstalledError, match="apt-get install tmux"):
        tmux.new("a", ["true"], ENV, ROOT)
    with pytest.raises(NotInstalledError):
        tmux.sessions()
    assert not list(place.rglob("start-*"))


def test_a_tmux_that_is_too_old_is_named(place: Path) -> None:
    (place / "tmux").write_text("#!/bin/sh\necho tmux 3.1c\n")
    (place / "tmux").chmod(0o755)
    with pytest.raises(NotInstalledError, match=r"3\.1c is too old"):
        Tmux(place / "run/tmux.sock", {"PATH": f"{place}:{PATH}"}).new("a", ["true"], ENV, ROOT)


def test_without_a_server_there_is_nothing(tmux: Tmux, place: Path) -> None:
    (place / "run").mkdir()
    assert tmux.sessions() == ()
    assert tmux.kill("a") is False
    with pytest.raises(errors.ServerGoneError):
        tmux.find("a")
    with pytest.raises(errors.ServerGoneError):
        tmux.look(Pane("a", "%0", 1))
    assert not tmux.alive(Pane("a", "%0", 1))


def test_a_killed_server_is_noticed_and_replaced(tmux: Tmux) -> None:
    pane = tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    os.kill(server_pid(tmux), signal.SIGKILL)
    eventually(lambda: not alive(pane.pid))
    with pytest.raises(errors.ServerGoneError):
        tmux.look(pane)
    again = tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    assert tmux.alive(again)
    assert not tmux.alive(pane)


def test_a_server_that_does_not_answer_is_told(tmux: Tmux, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    pid = server_pid(tmux)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(errors.NoAnswerError):
            tmux.client.run(("list-sessions",), timeout=0.5)
    finally:
        os.kill(pid, signal.SIGCONT)


def left(terminal: Terminal) -> bool:
    """Press the keys that leave, on their own: of keys that come all at once, as a paste, none leaves."""
    time.sleep(0.3)
    with contextlib.suppress(OSError):
        terminal.type("\x02d")
    time.sleep(0.3)
    return terminal.process.poll() is not None


def test_a_terminal_is_handed_to_a_session_and_taken_back(tmux: Tmux, place: Path) -> None:
    pane = raw(tmux, place / "got", "\r")
    environ = {"PATH": PATH, "TERM": "xterm", "TMUX": "/x,1,0"}
    for read_only in (True, False):
        how = Tmux(tmux.socket, environ).attachment("raw", read_only=read_only)
        assert "TMUX" not in how.env
        with Terminal(how.argv, place, how.env) as terminal:
            terminal.expect("ready")
            terminal.type("no\r" if read_only else "x\r")
            if not read_only:
                assert written(place / "got") == b"x\r"
            eventually(lambda terminal=terminal: left(terminal))  # type: ignore[misc]
            assert terminal.end() == 0
    assert tmux.find("raw").pane == pane
