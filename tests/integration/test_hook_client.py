"""The hook's client when something is wrong: what is forbidden is never let through."""

from __future__ import annotations

import os
import posix
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.residents import (
    FORBIDDEN,
    HARMLESS,
    address,
    answered,
    ask,
    begin,
    connected,
    listening,
    none_left,
    payload,
    pid_of,
    place,
    program,
)
from tests.support import Site, eventually, finish

from remuda.hooks import asking, client, starting, wire

ALLOWED = wire.message(wire.ANSWERED, b"\0", b"{}\n", b"")
SAYINGS: dict[str, bytes] = {
    "nothing": b"",
    "another protocol": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "another version": b"RMD2" + ALLOWED[4:],
    "half an answer": ALLOWED[:-2],
    "too long an answer": wire.MAGIC + b"\xff\xff\xff\xff" + b"x" * 100,
    "too few fields": wire.message(wire.ANSWERED, b"\0"),
    "too many fields": wire.message(wire.ANSWERED, b"\0", b"{}", b"", b""),
    "no exit code": wire.message(wire.ANSWERED, b"", b"{}\n", b""),
    "a long exit code": wire.message(wire.ANSWERED, b"\0\0", b"{}\n", b""),
    "no status": wire.message(b"", b"\0", b"{}\n", b""),
    "an unknown status": wire.message(b"?", b"\0", b"{}\n", b""),
    "elsewhere": wire.message(wire.ELSEWHERE, b"\0", b"{}\n", b""),
}


@contextmanager
def pretender(site: Site, conduct: Callable[[socket.socket], None]) -> Iterator[None]:
    """Somebody else at the socket, with the lock, so that nobody else takes the place."""
    place(site).mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        with address(place(site)) as name:
            listener.bind(name)
        listener.listen()
        listener.settimeout(0.1)
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                with suppress(OSError):
                    peer, _ = listener.accept()
                    with peer:
                        peer.settimeout(5)
                        conduct(peer)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture
def unattended(site: Site) -> Site:
    """A site where nothing is started on demand."""
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text("[guard]\nresident = false\n")
    return site


@pytest.mark.parametrize("said", SAYINGS)
def test_an_answer_that_is_none_is_not_taken_for_one(unattended: Site, said: str) -> None:
    def conduct(peer: socket.socket) -> None:
        wire.receive(peer.recv, wire.REQUEST)
        peer.sendall(SAYINGS[said])

    with pretender(unattended, conduct):
        assert ask(unattended, FORBIDDEN).code == 2
        assert ask(unattended, HARMLESS).code == 0


def test_a_pretender_is_heard_at_all(unattended: Site) -> None:
    """Guards the tests around it: an answer in the right form would have been taken."""

    def conduct(peer: socket.socket) -> None:
        wire.receive(peer.recv, wire.REQUEST)
        peer.sendall(ALLOWED)

    with pretender(unattended, conduct):
        assert ask(unattended, FORBIDDEN).code == 0


@pytest.mark.parametrize("conduct", ["hangs", "hangs up", "drips", "does not listen"])
def test_a_bad_listener_costs_time_at_most(unattended: Site, conduct: str) -> None:
    def behave(peer: socket.socket) -> None:
        if conduct == "hangs up":
            return
        if conduct != "does not listen":
            wire.receive(peer.recv, wire.REQUEST)
        for byte in ALLOWED if conduct == "drips" else b"\0" * 8:
            time.sleep(0.4)
            if conduct == "drips":
                peer.sendall(bytes([byte]))

    started = time.monotonic()
    with pretender(unattended, behave):
        data = payload(FORBIDDEN)[:-1] + b', "padding": "' + b"x" * 3_000_000 + b'"}'
        assert answered(begin(unattended), data).code == 2
    assert time.monotonic() - started < 30


def test_a_listener_of_somebody_else_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"REMUDA_HOME": str(tmp_path)}
    site = tmp_path / "runtime"
    site.mkdir()
    heard = []
    with socket.socket(socket.AF_UNIX) as listener:
        with address(site) as name:
            listener.bind(name)
        listener.listen()

        def run() -> None:
            for _ in range(2):
                peer, _ = listener.accept()
                with peer:
                    heard.append(peer.recv(4))
                    with suppress(OSError):
                        peer.sendall(ALLOWED)

        thread = threading.Thread(target=run)
        thread.start()
        assert asking._told(environ, wire.message(b"x")) == [wire.ANSWERED, b"\0", b"{}\n", b""]
        monkeypatch.setattr(posix, "geteuid", lambda: os.getuid() + 1)
        assert asking._told(environ, wire.message(b"x")) is None
        thread.join()
    assert heard == [wire.MAGIC, b""]


def test_killed_at_any_moment_it_lets_nothing_through(quiet: Site) -> None:
    for delay in (0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08):
        resident = subprocess.Popen(starting.COMMAND, env=quiet.env, cwd=quiet.cwd)
        eventually(lambda: listening(quiet))
        forbidden, harmless = begin(quiet), begin(quiet)
        for process, command in ((forbidden, FORBIDDEN), (harmless, HARMLESS)):
            assert process.stdin is not None
            process.stdin.write(payload(command))
            process.stdin.flush()
        time.sleep(delay)
        resident.kill()
        resident.wait()
        assert (answered(forbidden, b"").code, answered(harmless, b"").code) == (2, 0)
        eventually(lambda: none_left(quiet))


def test_slow_and_broken_clients_do_not_keep_others_waiting(serving: Site) -> None:
    crowd = [connected(serving) for _ in range(60)]
    try:
        for number, peer in enumerate(crowd):
            with suppress(OSError):
                peer.sendall(
                    (wire.MAGIC + b"\0\0\1\0abc", b"GET / HTTP/1.1\r\n", b"", wire.MAGIC)[number % 4]
                )
        crowd[1].shutdown(socket.SHUT_WR)
        started = time.monotonic()
        assert (ask(serving, FORBIDDEN).code, ask(serving, HARMLESS).code) == (2, 0)
        assert time.monotonic() - started < 5
        time.sleep(2.5)
        assert (ask(serving, FORBIDDEN).code, ask(serving, HARMLESS).code) == (2, 0)
        for peer in crowd:
            peer.settimeout(5)
            with suppress(ConnectionError):
                assert wire.ANSWERED not in peer.recv(100)
    finally:
        for peer in crowd:
            peer.close()
    assert pid_of(serving)


def test_a_verdict_that_hangs_is_denied_and_ends_the_process(serving: Site) -> None:
    audit = serving.home / "state" / "guard.jsonl"
    audit.parent.mkdir(parents=True)
    os.mkfifo(audit)
    before = pid_of(serving)
    started = time.monotonic()
    ended = ask(serving, HARMLESS)
    assert (ended.code, "hook.time" in ended.stderr) == (2, True)
    assert time.monotonic() - started < 20
    eventually(lambda: not listening(serving))
    eventually(lambda: serving.remuda("serve", "--status", "--json").json["pid"] != before)
    audit.unlink()
    assert ask(serving, HARMLESS).code == 0


def test_a_request_of_another_installation_is_sent_away(serving: Site) -> None:
    with connected(serving) as peer:
        fields = (b"/elsewhere/client.py", b"pre-tool-use", b"claude", b"", b"/", b"", payload(HARMLESS))
        peer.sendall(wire.message(*fields))
        assert wire.receive(peer.recv, wire.ANSWER)[0] == wire.ELSEWHERE
    with connected(serving) as peer:
        own = str(client.__file__).encode()
        environ = f"REMUDA_HOME={serving.home}".encode()
        peer.sendall(wire.message(own, b"pre-tool-use", b"claude", b"", b"/", environ, payload(FORBIDDEN)))
        status, code, _, told = wire.receive(peer.recv, wire.ANSWER)
    assert (status, code, b"git.force" in told) == (wire.ANSWERED, b"\2", True)


def test_a_place_that_cannot_be_used(site: Site) -> None:
    site.home.mkdir()
    place(site).write_text("a file")
    assert (ask(site, FORBIDDEN).code, ask(site, HARMLESS).code) == (2, 0)
    assert site.remuda("serve").code == 1
    for home in ("relative", "", "/dev/null/nothing"):
        assert ask(site, FORBIDDEN, REMUDA_HOME=home, HOME=str(site.folder)).code == 2
    eventually(lambda: not site.processes())
    site.remuda("serve", "--stop", REMUDA_HOME="", HOME=str(site.folder))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_client_that_is_ended_denies(site: Site, number: signal.Signals) -> None:
    process = begin(site, REMUDA_HOOK_ENGINE="python")
    status = Path(f"/proc/{process.pid}/status")

    def ready() -> bool:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGHUP - 1) & 1)

    eventually(ready)
    process.send_signal(number)
    assert process.wait(timeout=30) == 2
    ended = finish(process)
    assert ('"permissionDecision":"deny"' in ended.stdout, "hook.time" in ended.stderr) == (True, True)


def test_a_payload_that_never_ends_is_denied_in_time(serving: Site) -> None:
    process = begin(serving)
    assert process.wait(timeout=30) == 2
    assert "hook.time" in finish(process).stderr


def test_closed_streams_change_no_exit_code(serving: Site) -> None:
    for command, code in ((FORBIDDEN, 2), (HARMLESS, 0)):
        shell = 'exec "$@" <&- >&- 2>&-'
        argv = ["sh", "-c", shell, "sh", *program(), "pre-tool-use", payload(command).decode()]
        assert subprocess.run(argv, cwd=serving.cwd, env=serving.env).returncode == code


def test_an_installation_that_cannot_be_loaded_denies(site: Site) -> None:
    lonely = site.folder / "remuda" / "hooks" / "client.py"
    lonely.parent.mkdir(parents=True)
    lonely.write_bytes(Path(client.__file__).read_bytes())
    argv = [sys.executable, "-I", "-S", str(lonely), "pre-tool-use", payload(HARMLESS).decode()]
    ended = subprocess.run(argv, env=site.env, cwd=site.cwd, capture_output=True)
    assert (ended.returncode, ended.stderr) == (2, b"remuda: denied: the guard cannot be started\n")


def test_a_repository_cannot_bring_a_guard_of_its_own(serving: Site) -> None:
    names = ("msgspec.py", "signal.py", "site.py", "remuda/__init__.py", "remuda/hooks/asking.py")
    traps = [serving.write(name, "import os\nos.write(1, b'{}')\nos._exit(0)\n") for name in names]
    paths = {"PYTHONPATH": str(serving.cwd), "PYTHONSTARTUP": str(serving.cwd / "site.py")}
    assert ask(serving, FORBIDDEN, **paths).code == 2
    assert ask(serving, FORBIDDEN, REMUDA_HOOK_ENGINE="python", **paths).code == 2
    for trap in traps:
        trap.unlink()


def test_the_client_loads_next_to_nothing(serving: Site) -> None:
    def loaded(**env: str) -> set[str]:
        argv = [*program("-X", "importtime"), "pre-tool-use", payload(HARMLESS).decode()]
        ended = subprocess.run(
            argv, env={**serving.env, **env}, cwd=serving.cwd, capture_output=True, text=True
        )
        assert (ended.returncode, ended.stdout) == (0, "{}\n")
        lines = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}

    bare = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", "-c", ""], capture_output=True, text=True
    )
    floor = {line.rpartition("|")[2].strip() for line in bare.stderr.splitlines()}
    ours = {"remuda", "remuda.hooks", "remuda.hooks.asking", "remuda.hooks.wire"}
    assert loaded() - floor <= ours | {"_socket", "time", "_signal"}
    assert {"site", "msgspec", "remuda.hooks.program"} <= loaded(REMUDA_HOOK_ENGINE="python")
