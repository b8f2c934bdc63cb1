"""The program that runs OpenClaw's bridge and a gateway for it, with a stand-in for both."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remuda.runtimes.openclaw import gateway

STANDIN = """#!{python}
import json, os, pathlib, socket, sys, time
notes = pathlib.Path(os.environ["NOTES"])
config = pathlib.Path(os.environ["OPENCLAW_CONFIG_PATH"])
if sys.argv[1:] == ["gateway", "run"]:
    print("starting", flush=True)
    attempts = notes / "attempts"
    attempts.write_text(attempts.read_text() + "x" if attempts.exists() else "x")
    if len(attempts.read_text()) <= int(os.environ.get("GIVES_UP", "0")):
        print("no heartbeat", flush=True)
        sys.exit(int(os.environ.get("CODE", "78")))
    settings = json.loads(config.read_text())["gateway"]
    assert settings["bind"] == "loopback"
    server = socket.create_server(("127.0.0.1", settings["port"]))
    (notes / "gateway").write_text(str(os.getpid()))
    while True:
        server.accept()[0].close()
else:
    (notes / "bridge").write_text(json.dumps([os.getpid(), *sys.argv]))
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where the stand-in leaves what it knows."""
    folder = tmp_path / "notes"
    folder.mkdir()
    program = tmp_path / "openclaw"
    program.write_text(STANDIN.replace("{python}", sys.executable))
    program.chmod(0o755)
    (tmp_path / "openclaw.json").write_text('{"tools": {}}')
    return folder


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(notes: Path) -> Iterator[Start]:
    """Starts both; what is left of them at the end is ended."""
    processes: list[subprocess.Popen[bytes]] = []

    def begin(**variables: str) -> subprocess.Popen[bytes]:
        words = [str(notes.parent / "openclaw.json"), str(notes.parent / "openclaw"), "--", "acp", "--extra"]
        process = subprocess.Popen(
            [sys.executable, "-I", gateway.__file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"NOTES": str(notes), "PATH": os.environ["PATH"], **variables},
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def spoken(process: subprocess.Popen[bytes]) -> None:
    """Have a line go to the bridge and back."""
    assert process.stdin is not None
    assert process.stdout is not None
    line = b'{"id": 1, "text": "\xf0\x9f\x90\x8e \\u0000"}\r\n'
    process.stdin.write(line)
    process.stdin.flush()
    assert process.stdout.readline() == line


def pids(notes: Path) -> tuple[int, int]:
    return int((notes / "gateway").read_text()), json.loads((notes / "bridge").read_text())[0]


def gone(*wanted: int) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() for pid in wanted):
            return True
        time.sleep(0.02)
    return False


def test_the_bridge_has_the_streams_and_a_secret_that_is_in_files_only(start: Start, notes: Path) -> None:
    process = start()
    spoken(process)
    gateway_pid, bridge_pid = pids(notes)
    _, _, *words = json.loads((notes / "bridge").read_text())
    settings = json.loads((notes.parent / "gateway.json").read_text())
    token = (notes.parent / "gateway.token").read_text()
    url = f"ws://127.0.0.1:{settings['gateway']['port']}"
    assert words == ["acp", "--extra", "--url", url, "--token-file", str(notes.parent / "gateway.token")]
    assert settings["gateway"]["auth"] == {"mode": "token", "token": token}
    assert settings["tools"] == {}
    for name in ("gateway.json", "gateway.token"):
        assert stat.S_IMODE((notes.parent / name).stat().st_mode) == 0o600
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"")
    assert b"starting" in stderr
    assert gone(gateway_pid, bridge_pid)


def test_a_gateway_that_gives_up_its_start_gets_another_chance(start: Start, notes: Path) -> None:
    process = start(GIVES_UP="2")
    spoken(process)
    assert (notes / "attempts").read_text() == "xxx"


@pytest.mark.parametrize(("code", "attempts"), [("78", "xxx"), ("3", "x")])
def test_a_gateway_that_does_not_start_is_told_of(
    start: Start, notes: Path, code: str, attempts: str
) -> None:
    process = start(GIVES_UP="9", CODE=code)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == int(code)
    assert b"no heartbeat" in stderr
    assert (notes / "attempts").read_text() == attempts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_both(start: Start, notes: Path, number: signal.Signals) -> None:
    process = start()
    spoken(process)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert gone(*pids(notes))


def test_without_its_gateway_the_bridge_ends(start: Start, notes: Path) -> None:
    process = start()
    spoken(process)
    os.kill(pids(notes)[0], signal.SIGKILL)
    assert process.wait(60) != 0
    assert gone(*pids(notes))
