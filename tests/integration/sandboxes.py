"""What the tests of sandboxes share: an agent inside that runs a shell command, and listeners that count."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Iterator

from tests.support import Ended, Site

RUN = ("run", "--agent", "rehearsal", "--permission", "bypass", "--json")


def scenario(site: Site, command: str) -> str:
    """A model that has the agent run a command and answers with what it said."""
    whole = f"export PATH=$PATH:/usr/bin:/bin; {command}"
    steps = [{"tool": "shell", "input": {"command": whole}}, {"text": "{tool_result}"}]
    rules = [{"when": {"contains": "go"}, "steps": steps}, {"steps": [{"text": "idle"}]}]
    place = site.folder / "scenario.yaml"
    place.write_text(json.dumps({"name": "t", "rules": rules}))
    return str(place)


def inside(site: Site, profile: str, command: str, *options: str, **env: str) -> Ended:
    """Run a command inside a sandbox; no network is needed for that."""
    told = scenario(site, command)
    return site.remuda(*RUN, "--sandbox", profile, *options, "go", REHEARSAL_SCENARIO=told, **env)


def with_model(site: Site, profile: str, command: str, *options: str) -> Ended:
    """The same with a model at an endpoint."""
    told = scenario(site, command)
    site.env["PYTHONDONTWRITEBYTECODE"] = "1"
    return site.remuda(
        *("rehearse", "--scenario", told, "--", "remuda"), *RUN, "--sandbox", profile, *options, "go"
    )


def said(ended: Ended) -> str:
    """What the command said."""
    assert ended.code == 0, ended.stdout + ended.stderr
    text = ended.result["text"]
    assert isinstance(text, str)
    return text


def config(site: Site, text: str) -> None:
    """Profiles of the user's own."""
    folder = site.home / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def connects(port: int, host: str = "127.0.0.1") -> str:
    """A shell command that connects to a port and prints what it hears, or why it cannot."""
    code = (
        "import socket\n"
        f"try: print(socket.create_connection(({host!r}, {port}), 5).recv(99).decode())\n"
        "except OSError as error: print(type(error).__name__)"
    )
    return f'{sys.executable} -I -S -c "{code}"'


class Listener:
    """Greets whoever connects, and counts them."""

    def __init__(self, greeting: str = "welcome") -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.count = 0
        self._greeting = greeting.encode()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                self.count += 1
                with peer:
                    peer.sendall(self._greeting)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextlib.contextmanager
def listener() -> Iterator[Listener]:
    """Somebody who listens at a port of this machine's loopback."""
    made = Listener()
    try:
        yield made
    finally:
        made.close()
