"""What the tests of the resident process and of its client share."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support import PATIENCE, Ended, Site

from remuda.hooks import client, wire

FORBIDDEN, HARMLESS = "git push --force", "ls"


def payload(command: str) -> bytes:
    return json.dumps({"tool_name": "Bash", "tool_input": {"command": command}}).encode()


def program(*options: str) -> list[str]:
    """The client, as agent CLIs call it."""
    return [sys.executable, "-I", "-S", *options, str(client.__file__)]


def begin(site: Site, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program(), "pre-tool-use", *arguments],
        cwd=site.cwd,
        env={**site.env, "REMUDA_HOOK_ENGINE": "auto", **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ask(site: Site, command: str, *arguments: str, **env: str) -> Ended:
    """Ask the client about a command."""
    return answered(begin(site, *arguments, **env), payload(command))


def answered(process: subprocess.Popen[bytes], data: bytes) -> Ended:
    stdout, stderr = process.communicate(data, timeout=30)
    return Ended(process.returncode, stdout, stderr)


def status(site: Site, **env: str) -> dict[str, object]:
    ended = site.remuda("serve", "--status", "--json", **env)
    assert ended.code == 0
    return ended.json


def pid_of(site: Site) -> int:
    found = status(site)["pid"]
    assert isinstance(found, int)
    return found


def none_left(site: Site) -> bool:
    """End the resident process; whether there is none any more, nor one that is about to be."""
    site.remuda("serve", "--stop")
    return not site.processes()


def place(site: Site) -> Path:
    return site.home / "runtime"


@contextlib.contextmanager
def address(folder: Path) -> Iterator[str]:
    """The name of a folder's socket, however long the path of the folder is."""
    name, handle = wire.address(str(folder))
    try:
        yield name
    finally:
        if handle is not None:
            os.close(handle)


def connected(site: Site) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX)
    try:
        with address(place(site)) as name:
            peer.connect(name)
    except OSError:
        peer.close()
        raise
    return peer


def listening(site: Site) -> bool:
    try:
        connected(site).close()
    except OSError:
        return False
    return True


class Client(http.client.HTTPConnection):
    """A connection to a site's resident process."""

    def __init__(self, site: Site) -> None:
        super().__init__("remuda", timeout=PATIENCE)
        self._site = site

    def connect(self) -> None:
        self.sock = connected(self._site)
        self.sock.settimeout(PATIENCE)


def call(site: Site, name: str, body: object = None, method: str = "POST") -> tuple[int, dict[str, object]]:
    """Ask the resident process for an operation: the status of its answer, and what it says."""
    client = Client(site)
    try:
        text = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        client.request(method, f"/v1/{name}", text)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()
