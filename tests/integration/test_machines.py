"""Many machines on one PostgreSQL: each has a home of its own, and processes that the others cannot see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.postgres import Server, SharedStore
from tests.support import PATIENCE, Site, alive, carrying, eventually

SCENARIO = """
name: work
rules:
  - when: {contains: "long"}
    steps:
      - text: "I begin. "
        tool: shell
        input: {command: 'echo asked >> asked; sleep 60'}
      - text: "It took long."
  - when: {contains: "slow"}
    steps:
      - tool: shell
        input: {command: 'echo asked >> asked; sleep 13'}
      - text: "That was slow."
  - steps:
      - text: "Done."
"""

CONFIG = """
[agents.one]
runtime = "rehearsal"
[agents.two]
runtime = "rehearsal"
tags = ["quick"]
[tasks]
lease = 10.0
"""


class Net:
    """Machines that share a database and a file system, and a desk from which tasks are handed in."""

    def __init__(self, site: Site, shared: SharedStore) -> None:
        self.site, self.shared = site, shared
        self.workers: list[subprocess.Popen[bytes]] = []
        self._furnish(site.home)
        (site.folder / "work.yaml").write_text(SCENARIO)
        site.env.update(shared.environ, REHEARSAL_SCENARIO=str(site.folder / "work.yaml"))
        assert site.remuda("trust", "add", str(site.cwd)).code == 0

    def _furnish(self, home: Path) -> None:
        (home / "config").mkdir(parents=True)
        (home / "config" / "config.toml").write_text(CONFIG)

    def machine(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """A worker on a machine of its own, once it is on record."""
        home = self.site.folder / name
        self._furnish(home)
        own = {"REMUDA_HOME": str(home), "REHEARSAL_HOME": str(home / "rehearsal"), "HOME": str(home)}
        assert self.site.remuda("trust", "add", str(self.site.cwd), **own).code == 0
        before = self.living()
        inside = [sys.executable, "-m", "remuda", "worker", *options]
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        worker = subprocess.Popen(
            ["/usr/bin/unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL", *inside],
            cwd=self.site.cwd,
            env={**self.site.env, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.workers.append(worker)
        eventually(lambda: self.living() - before)
        return worker

    def living(self) -> set[str]:
        """The ids of the workers that live."""
        status = self.site.remuda("worker", "--status", "--json").json["workers"]
        assert isinstance(status, list)
        return {each["id"] for each in status if each["alive"]}

    def submit(self, prompt: str, *options: str) -> str:
        ended = self.site.remuda("task", "submit", *options, "--permission", "bypass", "--json", prompt)
        assert ended.code == 0, ended.stderr
        return str(ended.json["id"])

    def ended(self, task: str) -> dict[str, object]:
        """The task once it has ended, as the desk sees it."""

        def seen() -> dict[str, object]:
            return self.site.remuda("task", "get", "--json", task).json

        eventually(lambda: seen()["state"] not in ("queued", "running"))
        return seen()


@pytest.fixture
def net(site: Site, postgres: Server, tmp_path: Path) -> Iterator[Net]:
    with postgres.fresh() as url:
        made = Net(site, SharedStore(tmp_path / "none", postgres, url))
        yield made
        for worker in made.workers:
            worker.kill()
            worker.wait()


def workers_of(task: dict[str, object]) -> list[object]:
    attempts = task["attempts"]
    assert isinstance(attempts, list)
    return [each["worker"] for each in attempts]


def test_each_machine_carries_out_what_it_is_there_for(net: Net) -> None:
    net.machine("left", "--agents", "one")
    (left,) = net.living()
    net.machine("right", "--tags", "quick")
    ours = [net.submit(f"hello {number}", "--agent", "one") for number in range(2)]
    tagged = net.submit("hello", "--tag", "quick")
    found = [net.ended(task) for task in ours]
    assert [each["state"] for each in found] == ["succeeded"] * 2
    assert [workers_of(each) for each in found] == [[left]] * 2
    right = net.ended(tagged)
    assert right["state"] == "succeeded"
    assert workers_of(right) != [left]


def test_a_machine_that_is_gone_has_its_tasks_taken_over(net: Net) -> None:
    first = net.machine("left", "--slots", "1")
    task = net.submit("long", "--agent", "one")
    waits = net.submit("hello", "--agent", "two")
    asked = net.site.cwd / "asked"
    eventually(asked.exists)
    first.kill()
    first.wait()
    net.machine("right")
    found = net.ended(task)
    assert found["state"] == "interrupted"
    assert len(workers_of(found)) == 2
    assert net.ended(waits)["state"] == "succeeded"
    assert asked.read_text() == "asked\n"


def inner(worker: subprocess.Popen[bytes]) -> int:
    """The worker itself, in its machine."""
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    return int(children[0])


def test_one_that_is_told_to_end_keeps_what_it_finishes(net: Net) -> None:
    first = net.machine("left", "--grace", "30")
    task = net.submit("slow", "--agent", "one")
    eventually((net.site.cwd / "asked").exists)
    net.machine("right")
    os.kill(inner(first), signal.SIGTERM)
    found = net.ended(task)
    assert found["state"] == "succeeded"
    assert len(workers_of(found)) == 1
    assert first.wait(PATIENCE) == 0


def test_one_that_slept_past_its_lease_says_nothing_more_of_its_task(net: Net) -> None:
    first = net.machine("left")
    task = net.submit("long", "--agent", "one")
    eventually((net.site.cwd / "asked").exists)
    agents = carrying(f"REMUDA_TASK={task}")
    os.kill(inner(first), signal.SIGSTOP)
    net.machine("right")
    found = net.ended(task)
    assert found["state"] == "interrupted"
    assert any(alive(pid) for pid in agents)
    os.kill(inner(first), signal.SIGCONT)
    eventually(lambda: not any(alive(pid) for pid in agents))
    assert net.ended(task) == found
    eventually(lambda: len(net.living()) == 2)
