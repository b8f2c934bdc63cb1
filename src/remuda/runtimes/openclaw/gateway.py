"""Runs OpenClaw's bridge to the Agent Client Protocol together with a gateway that only it uses.

A program of its own, for the interpreter alone: ``gateway.py CONFIG OPENCLAW… -- acp …``. The bridge has the
standard streams; the gateway is there before it and gone after it, whichever way it ends, and what it says
goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_GRACE = 4.0
_LOOK = 0.2
_ATTEMPTS = 3
_GAVE_UP = 78
"""How a gateway ends whose configuration is wrong, or whose start took longer than it has patience for."""


class _Gateway:
    """A gateway of our own, on a port of this machine that was free, with a token that nobody else knows."""

    def __init__(self, config: Path, program: list[str]) -> None:
        token = secrets.token_hex(32)
        self._port = _free_port()
        self.url = f"ws://127.0.0.1:{self._port}"
        self.token = config.with_name("gateway.token")
        self.env = {**os.environ, "OPENCLAW_CONFIG_PATH": str(config.with_name("gateway.json"))}
        settings = json.loads(config.read_text("utf-8"))
        auth = {"mode": "token", "token": token}
        settings["gateway"] = {"mode": "local", "port": self._port, "bind": "loopback", "auth": auth}
        _write(config.with_name("gateway.json"), json.dumps(settings))
        _write(self.token, token)
        self.process = subprocess.Popen(
            [*program, "gateway", "run"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def answers(self) -> bool:
        """Whether it comes to answer, or ends before that."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while True:
                if selector.select(_LOOK) and not self._listen():
                    return False
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", self._port), 1).close()
                    return True

    def watch(self, bridge: subprocess.Popen[bytes]) -> None:
        """Pass on what the gateway says until its end. A bridge without one is of no use."""
        while self._listen():
            pass
        bridge.terminate()

    @property
    def _output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def _listen(self) -> bool:
        chunk = os.read(self._output, 65536)
        with contextlib.suppress(OSError):
            sys.stderr.buffer.write(chunk)
            sys.stderr.flush()
        return bool(chunk)


def main(arguments: list[str]) -> int:
    """Start both, and wait for the end of either."""
    cut = arguments.index("--")
    config, program, asked = Path(arguments[0]), arguments[1:cut], arguments[cut + 1 :]
    for number in _SIGNALS:
        signal.signal(number, _leave)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(_ATTEMPTS):
            gateway = _Gateway(config, program)
            started.append(gateway.process)
            if gateway.answers():
                break
            code = gateway.process.wait()
            if code != _GAVE_UP:
                return code or 1
        else:
            return _GAVE_UP
        address = ("--url", gateway.url, "--token-file", str(gateway.token))
        bridge = subprocess.Popen([*program, *asked, *address], env=gateway.env)
        started.append(bridge)
        threading.Thread(target=gateway.watch, args=(bridge,), daemon=True).start()
        return bridge.wait()
    finally:
        _end(started)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _write(file: Path, text: str) -> None:
    """A file for nobody else."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """The bridge first: a gateway ends at once when nobody uses it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for process in reversed(started):
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
