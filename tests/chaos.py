"""Chaos: many tasks, several workers, and everything killed at random, until all tasks have ended."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
from tests.integration.residents import call
from tests.postgres import SharedStore
from tests.support import PATIENCE, Site, alive, carrying, eventually

from remuda.core.sql import Database, StoreGoneError
from remuda.dispatch.tasks import events, store
from remuda.dispatch.tasks.model import FINAL, Attempt, Task
from remuda.operations.requests import RunRequest
from remuda.operations.task.requests import SubmitRequest
from remuda.operations.task.submitting import submit
from remuda.operations.worker.execution import CONTINUE
from remuda.operations.world import open_world

SCENARIO = f"""
name: chaos
rules:
  - when: {{contains: "{CONTINUE[:40]}"}}
    steps:
      - tool: shell
        input: {{command: 'case "$(cat marks)" in *$REMUDA_TASK*) ;; *) echo $REMUDA_TASK >> marks ;; esac'}}
      - text: "I went on, and it is done."
  - steps:
      - tool: shell
        input: {{command: 'sleep 0.2; echo "$REMUDA_TASK" >> marks; sleep 0.3'}}
      - text: "It is done."
"""
"""The model adds one line to a file, blindly when it is asked for the first time; when it is told to go on it
looks whether the line is there already."""

CONFIG = """
[agents.free]
runtime = "rehearsal"
[agents.narrow]
runtime = "rehearsal"
limits.max_concurrent = 2
[tasks]
lease = 10.0
idle = 3.0
"""


class Chaos:
    """A site with workers on one database, and somebody who kills them."""

    def __init__(self, site: Site, shared: SharedStore, seed: int, workers: int) -> None:
        self.site, self.shared, self.wanted = site, shared, workers
        self.rng = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.blows = 0
        self.accepted = 0
        """How many tasks the resident process took in."""
        self.workers: list[subprocess.Popen[bytes]] = []
        self.resident: subprocess.Popen[bytes] | None = None
        (site.home / "config").mkdir(parents=True)
        (site.home / "config" / "config.toml").write_text(CONFIG)
        (site.folder / "chaos.yaml").write_text(SCENARIO)
        site.env.update(shared.environ, REHEARSAL_SCENARIO=str(site.folder / "chaos.yaml"))
        assert site.remuda("trust", "add", str(site.cwd)).code == 0
        self.world = open_world(site.env, site.cwd)

    def submit(self, number: int) -> str:
        """Hand a task in, every other one through the resident process; again and again while that or the
        database is away, under one key."""
        agent = "narrow" if number % 4 == 3 else "free"
        run = RunRequest(prompt=f"task {number}", agent=agent, permission="bypass", unattended=True)
        request = SubmitRequest(run=run, key=f"task-{number}")
        while True:
            with contextlib.suppress(StoreGoneError, OSError, http.client.HTTPException):
                if number % 2 == 0:
                    return submit(self.world, request).id
                if given := self._submit_over_http(request):
                    return given
            time.sleep(0.1)
            self.staff()

    def _submit_over_http(self, request: SubmitRequest) -> str | None:
        """The task's id; None where the database was away."""
        body = {**msgspec.to_builtins(request), "cwd": str(self.site.cwd)}
        code, answer = call(self.site, "task.submit", body)
        if code == 200:
            self.accepted += 1
            return str(answer["id"])
        assert code == 503, answer
        return None

    def staff(self) -> None:
        """See to it that there are as many workers as there should be, and a resident process."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        with (self.site.folder / "workers.log").open("ab") as log:
            for _ in range(self.wanted - len(self.workers)):
                self.workers.append(self._start(log, "-v", "worker", "--slots", "4", "--grace", "0.5"))
            if self.resident is None or self.resident.poll() is not None:
                self.resident = self._start(log, "serve", "--keep")

    def _start(self, log: IO[bytes], *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "remuda", *arguments],
            cwd=self.site.cwd,
            env=self.site.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )

    def strike(self) -> None:
        """Kill something."""
        what = self.rng.choices(("worker", "polite", "agent", "resident"), (6, 2, 3, 3))[0]
        self.kills[what] += 1
        if what == "agent":
            self._kill_agent()
        elif what == "resident":
            assert self.resident is not None
            self.resident.kill()
        elif self.workers:
            victim = self.rng.choice(self.workers)
            victim.send_signal(signal.SIGKILL if what == "worker" else signal.SIGTERM)

    def _kill_agent(self) -> None:
        entry = f"REMUDA_HOME={self.site.home}"
        agents = [pid for pid in carrying(entry) if b"remuda.rehearsal.agent" in _argv(pid)]
        if agents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(agents), signal.SIGKILL)

    def restart_database(self) -> None:
        """End the server like a crash and start it again; a file is locked for a while instead."""
        self.kills["database"] += 1
        if self.shared.server is not None:
            self.shared.server.restart("immediate")
            return
        with self._database() as database, database.transaction():
            time.sleep(1.0)

    @contextlib.contextmanager
    def _database(self) -> Iterator[Database]:
        database = self.shared.open()
        try:
            yield database
        finally:
            database.close()

    def open(self) -> int:
        """How many tasks have not ended."""
        with self._database() as database, database.transaction() as t:
            found = t.rows("SELECT count(*) FROM tasks WHERE state IN ('queued', 'running')")
        return int(str(found[0][0]))

    def run(self, tasks: int, pause: float, restarts: int, limit: float) -> list[str]:
        """Hand tasks in while everything is killed, and go on until all have ended. There is a blow for every
        other task, however long they take: on a slow machine none would survive one for every second."""
        end, self.blows = time.monotonic() + limit, tasks // 2
        ids: list[str] = []
        self.staff()
        due = [tasks * (each + 1) // (restarts + 1) for each in range(restarts)]
        while len(ids) < tasks:
            ids += [self.submit(number) for number in range(len(ids), min(len(ids) + 5, tasks))]
            time.sleep(pause / 4)
            self._disturb()
        while left := self.open():
            assert time.monotonic() < end, f"{left} tasks have not ended"
            if due and tasks - left >= due[0]:
                self.restart_database()
                del due[0]
            time.sleep(pause)
            self._disturb()
        return ids

    def _disturb(self) -> None:
        if self.blows:
            self.blows -= 1
            self.strike()
        self.staff()

    def end(self) -> None:
        """End what is left, however the test went."""
        for process in (*self.workers, *([self.resident] if self.resident else [])):
            process.kill()
            process.wait(PATIENCE)

    def finish(self) -> None:
        """End the workers; one more finds what the dead have left, and a run the places that they held."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.wait(PATIENCE)
        ended = self.site.remuda("worker", "--once")
        assert ended.code == 0, ended.stderr
        self.site.remuda("run", "--agent", "narrow", "whose place is free?")
        self.site.remuda("serve", "--stop")

    def check(self, ids: list[str]) -> Counter[str]:
        """Every task ended once, nothing was done twice, and nothing is left behind."""
        eventually(lambda: not self.site.processes())
        with self._database() as database:
            found = [store.get(database, ident) for ident in ids]
            logs = [events.after(database, ident, 0, 100_000) for ident in ids]
            with database.transaction() as t:
                left = [t.rows(f"SELECT * FROM {table}") for table in ("workers", "slots")]
        marks = Counter((self.site.cwd / "marks").read_text().split())
        for (task, attempts), log in zip(found, logs, strict=True):
            _check_task(task, attempts)
            assert [event.seq for event in log] == list(range(1, task.last_seq + 1))
            assert [event.result is not None for event in log] == [False] * (len(log) - 1) + [True]
            assert marks[task.id] == 1 or (task.state != "succeeded" and not marks[task.id]), task
        assert not set(marks) - set(ids)
        assert left == [[], []], left
        return Counter(task.state for task, _ in found)


def _check_task(task: Task, attempts: tuple[Attempt, ...]) -> None:
    assert task.state in FINAL
    assert task.ended_at is not None
    assert task.result is not None
    assert all(attempt.ended_at is not None for attempt in attempts)


def _argv(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() if alive(pid) else b""
    except OSError:
        return b""
