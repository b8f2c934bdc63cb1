"""The scripted model server: life cycle and state. The HTTP part is in `handler`, what to say in `brain`."""

from __future__ import annotations

import hashlib
import ipaddress
import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from remuda.rehearsal.brain import Place, choose
from remuda.rehearsal.exchange import Ask
from remuda.rehearsal.handler import Listener
from remuda.rehearsal.journal import Heard, Journal
from remuda.rehearsal.scenario import Scenario, Step


class NotLoopbackError(Exception):
    """The server was to listen where other machines could reach it."""

    def __init__(self, host: str) -> None:
        self.message = f"The rehearsal only listens on loopback, and {host!r} is not: use 127.0.0.1"
        super().__init__(self.message)


class Stage:
    """A scenario being played: the script, and which of its limited faults have happened to whom."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._happened: Counter[tuple[Place, bytes]] = Counter()
        self._lock = threading.Lock()

    def set(self, scenario: Scenario) -> None:
        """Play another scenario from its beginning."""
        with self._lock:
            self._scenario = scenario
            self._happened.clear()

    def step(self, ask: Ask) -> Step:
        """The step that answers a request. Faults are counted per prompt, so side calls use none up."""
        asker = hashlib.sha256(ask.prompt.encode("utf-8", "surrogatepass")).digest()

        def claim(place: Place, times: int) -> bool:
            self._happened[place, asker] += 1
            return self._happened[place, asker] <= times

        with self._lock:
            return choose(self._scenario, ask, claim)


class RehearsalServer:
    """Serves a scenario on loopback between entering and leaving its context."""

    def __init__(
        self,
        scenario: Scenario,
        port: int = 0,
        host: str = "127.0.0.1",
        record: Path | None = None,
        *,
        record_bodies: bool = False,
    ) -> None:
        self._address = (_loopback(host), port)
        self._stage = Stage(scenario)
        self._record = record
        self._record_bodies = record_bodies

    def __enter__(self) -> Self:
        self._journal = Journal(self._record, bodies=self._record_bodies)
        try:
            self._listener = Listener(self._address, self._stage.step, self._journal)
        except OSError:
            self._journal.close()
            raise
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.stop()
        self._thread.join()
        self._journal.close()

    @property
    def url(self) -> str:
        """The address to point an agent CLI at, without a path."""
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}"

    def heard(self) -> tuple[Heard, ...]:
        """Every request so far."""
        return self._journal.heard()

    def set_scenario(self, scenario: Scenario) -> None:
        """Change the script while running."""
        self._stage.set(scenario)


def _loopback(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError as problem:
        raise NotLoopbackError(host) from problem
    if not address.is_loopback:
        raise NotLoopbackError(host)
    return host
