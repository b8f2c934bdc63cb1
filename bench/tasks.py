"""Measures durable tasks: how fast they are taken in, claimed and started, and what an idle worker costs.

Against DBOS as it comes (a queue that is polled every 100 ms, the same file system) and against a floor: the
bare statements in SQLite, which keep no steps, no events and no results.

Usage: python bench/tasks.py [TASKS]
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from remuda.core.clock import seconds
from remuda.core.ids import ulid
from remuda.core.sql import Database
from remuda.dispatch.tasks import carrying, store, workers
from remuda.dispatch.tasks.model import Ending, Served, Submission
from remuda.operations.requests import RunRequest
from remuda.operations.task.requests import SubmitRequest, packed
from remuda.operations.task.submitting import submit
from remuda.operations.world import World, open_world
from remuda.sessions import store as sessions

TASKS = 10_000
PACED = 40
PACE = (0.3, 0.5)
"""Seconds between two submissions, at random: a steady pace would meet a steady poll at one moment of it."""

IDLE = 30.0
COLD = 3
TICKS = os.sysconf("SC_CLK_TCK")
HERE = Path(__file__).parent
BASE = "/var/tmp"

CONFIG = '[agents.quick]\nruntime = "rehearsal"\n[agents.never]\nruntime = "rehearsal"\n'


class Loaded(NamedTuple):
    """What was measured; latencies in ms, rates by the second, memory in MB, CPU in percent of a core."""

    tasks: int
    rates: dict[str, float]
    latencies: dict[str, list[float]]
    memory: dict[str, float]
    idle: dict[str, float]


class Bench:
    """A home with tasks in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "remuda"
        (self.home / "config").mkdir(parents=True)
        (self.home / "config" / "config.toml").write_text(CONFIG)
        self.work = folder / "work"
        self.work.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "REMUDA_HOME": str(self.home)}
        self.env = {**env, "REHEARSAL_HOME": str(folder / "rehearsal"), "LANG": "C.UTF-8"}
        self.world: World = open_world(self.env, self.work)
        self.database: Database = self.world.shared()
        self.calls: list[float] = []

    @contextlib.contextmanager
    def worker(self, *options: str) -> Iterator[int]:
        """A worker that is ready; its process."""
        argv = [sys.executable, "-m", "remuda", "worker", *options]
        process = subprocess.Popen(argv, cwd=self.work, env=self.env, stderr=subprocess.DEVNULL)
        while not workers.living(self.database, 15.0):
            time.sleep(0.02)
        time.sleep(2.0)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def submit(self, agent: str) -> str:
        """Hand a task in, as a program does."""
        return submit(self.world, SubmitRequest(run=RunRequest(prompt="hello", agent=agent))).id

    def began(self, task: str) -> float:
        """When the agent of a task was started."""
        while True:
            found = store.look(self.database, task)
            row = found.session and sessions.find(self.world.folders.database, found.session)
            if row:
                return seconds(row.started_at)
            time.sleep(0.02)

    def latency(self) -> float:
        """Milliseconds from a submission to the start of its agent."""
        began = time.time()
        task = self.submit("quick")
        self.calls.append((time.time() - began) * 1000)
        return (self.began(task) - began) * 1000

    def settled(self) -> None:
        """Wait until nothing is under way."""
        while workers.load(self.database) != (0, {}):
            time.sleep(0.05)


def memory(pid: int) -> float:
    """The resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def cpu(pid: int) -> float:
    """The CPU time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def idle(pid: int) -> float:
    """What a process does with nothing to do."""
    before, began = cpu(pid), time.monotonic()
    time.sleep(IDLE)
    return 100 * (cpu(pid) - before) / (time.monotonic() - began)


def measure(tasks: int = TASKS) -> Loaded:
    """Everything, in a folder that is thrown away."""
    loaded = Loaded(tasks, {}, {}, {}, {})
    with tempfile.TemporaryDirectory(prefix="remuda-tasks-", dir=BASE) as folder:
        place = Path(folder)
        ours(Bench(place), loaded)
        raw(place, loaded)
        floor(place, loaded)
    return loaded


def ours(bench: Bench, loaded: Loaded) -> None:
    """A worker as people have it. The queue is filled with tasks that it does not serve, which stay."""
    with bench.worker("--agents", "quick") as pid:
        bench.latency()
        bench.settled()
        loaded.memory["remuda, idle"] = memory(pid)
        loaded.idle["remuda"] = idle(pid)
        loaded.latencies["remuda, warm"] = paced(bench)
        loaded.rates["remuda submit (store)"] = filled(bench, loaded.tasks)
        loaded.memory[f"remuda, {loaded.tasks} queued"] = memory(pid)
        loaded.latencies[f"remuda, {loaded.tasks} queued"] = paced(bench)
        loaded.latencies["remuda, the submission itself"] = bench.calls[1:]
    loaded.rates["remuda claim"], loaded.rates["remuda claim and settle"] = claims(bench, loaded.tasks)
    loaded.latencies["remuda, cold"] = [cold(bench) for _ in range(COLD)]


def paced(bench: Bench) -> list[float]:
    """Submissions at a walking pace."""
    found = []
    for _ in range(PACED):
        found.append(bench.latency())
        time.sleep(random.uniform(*PACE))
    bench_idle = time.monotonic() + 10
    while workers.load(bench.database)[1] and time.monotonic() < bench_idle:
        time.sleep(0.05)
    return found


def filled(bench: Bench, tasks: int) -> float:
    """Submissions as fast as they go."""
    request = packed(RunRequest(prompt="", agent="never", cwd=bench.work))
    began = time.monotonic()
    for _ in range(tasks):
        store.submit(bench.database, Submission(prompt="hello", request=request, agent="never"))
    return tasks / (time.monotonic() - began)


def claims(bench: Bench, tasks: int) -> tuple[float, float]:
    """Claims by four, as a worker does it, and the same with a final state for each."""
    half = tasks // 2
    began = time.monotonic()
    for _ in range(half // 4):
        carrying.claim(bench.database, "bench", Served(), 4)
    claimed = half / (time.monotonic() - began)
    began = time.monotonic()
    while found := carrying.claim(bench.database, "bench", Served(), 4):
        for each in found:
            carrying.settle(bench.database, each.held, Ending(state="succeeded", result="{}"))
    return claimed, (tasks - half) / (time.monotonic() - began)


def cold(bench: Bench) -> float:
    """With no worker there: one is started on demand, and ended afterwards."""
    with bench.database.transaction() as t:
        t.run("DELETE FROM tasks")
        t.run("DELETE FROM workers")
    taken = bench.latency()
    bench.settled()
    for worker in workers.living(bench.database, 15.0):
        os.kill(int(worker.process.split("/")[1]), signal.SIGTERM)
    while workers.living(bench.database, 15.0):
        time.sleep(0.05)
    return taken


def raw(place: Path, loaded: Loaded) -> None:
    """DBOS as it comes."""
    from dbos import DBOSClient
    from rawqueue import engine

    file, ready = place / "raw.db", place / "ready"
    argv = [sys.executable, str(HERE / "rawqueue.py"), str(file), str(ready)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while not ready.exists():
            time.sleep(0.02)
        time.sleep(2.0)
        client = DBOSClient(system_database_url=f"sqlite:///{file}", system_database_engine=engine(str(file)))
        try:
            loaded.memory["raw DBOS, idle"] = memory(process.pid)
            loaded.idle["raw DBOS, 100 ms"] = idle(process.pid)
            found = []
            for _ in range(PACED):
                began, key = time.time(), ulid()
                client.enqueue({"queue_name": "raw", "workflow_name": "started", "workflow_id": key}, key)
                found.append((float(process.stdout.readline().split()[1]) - began) * 1000)
                time.sleep(random.uniform(*PACE))
            loaded.latencies["raw DBOS, 100 ms"] = found
            began, many = time.monotonic(), loaded.tasks // 10
            for _ in range(many):
                client.enqueue({"queue_name": "raw", "workflow_name": "started", "workflow_id": ulid()}, "x")
            loaded.rates["raw DBOS enqueue"] = many / (time.monotonic() - began)
        finally:
            client.destroy()
            process.kill()


def floor(place: Path, loaded: Loaded) -> None:
    """The bare statements; what is put on record is on the disk, as with Remuda."""
    connection = sqlite3.connect(place / "floor.db", isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, state TEXT, prompt TEXT)")
    connection.execute("CREATE INDEX waiting ON t (id) WHERE state = 'queued'")
    began = time.monotonic()
    for _ in range(loaded.tasks):
        connection.execute("INSERT INTO t (state, prompt) VALUES ('queued', 'hello')")
    loaded.rates["floor insert"] = loaded.tasks / (time.monotonic() - began)
    connection.execute("PRAGMA synchronous = NORMAL")
    began = time.monotonic()
    for _ in range(loaded.tasks // 4):
        connection.execute(
            "UPDATE t SET state = 'running' WHERE id IN"
            " (SELECT id FROM t WHERE state = 'queued' ORDER BY id LIMIT 4)"
        )
    loaded.rates["floor claim"] = loaded.tasks / (time.monotonic() - began)
    connection.close()


def percentile(values: list[float], share: int) -> float:
    """So much of them is not above it."""
    return sorted(values)[min(len(values) * share // 100, len(values) - 1)]


def show(loaded: Loaded) -> None:
    """Print it."""
    print(f"\nTasks: {loaded.tasks:,} in the queue")
    for name, rate in loaded.rates.items():
        print(f"  {name:32}{rate:10,.0f} a second")
    print(f"  {'from submission to start':32}{'p50 ms':>10}{'p95 ms':>10}{'n':>6}")
    for name, values in loaded.latencies.items():
        print(f"  {name:32}{statistics.median(values):10.1f}{percentile(values, 95):10.1f}{len(values):6}")
    for name, megabytes in loaded.memory.items():
        print(f"  {name:32}{megabytes:10.0f} MB")
    for name, share in loaded.idle.items():
        print(f"  {name + ', idle':32}{share:10.2f} % of a core")


def judge(loaded: Loaded) -> dict[str, bool]:
    """The targets, and whether they are met."""
    warm, raw_ = loaded.latencies["remuda, warm"], loaded.latencies["raw DBOS, 100 ms"]
    queued = loaded.latencies[f"remuda, {loaded.tasks} queued"]
    return {
        "a task starts within 150 ms (p95) of its submission": percentile(warm, 95) < 150,
        "the same with a full queue": percentile(queued, 95) < 150,
        "an idle worker takes under 1 % of a core": loaded.idle["remuda"] < 1,
        "a task starts no later than with raw DBOS (p50)": statistics.median(warm) <= statistics.median(raw_),
        "an idle worker takes less than raw DBOS": loaded.idle["remuda"] < loaded.idle["raw DBOS, 100 ms"],
    }


def rows(loaded: Loaded) -> dict[str, object]:
    """As it is written down."""
    latencies = {
        name: {"p50_ms": statistics.median(values), "p95_ms": percentile(values, 95), "n": len(values)}
        for name, values in loaded.latencies.items()
    }
    return {**loaded._asdict(), "latencies": latencies}


def main() -> None:
    loaded = measure(int(sys.argv[1]) if len(sys.argv) > 1 else TASKS)
    show(loaded)
    for target, met in judge(loaded).items():
        print(f"  {'met   ' if met else 'missed'}  {target}")


if __name__ == "__main__":
    main()
