"""Workers: real processes, on both databases, killed and told to end."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.repositories import git, repository
from tests.postgres import SharedStore
from tests.support import PATIENCE, Ended, Site, alive, eventually, finish, kill, read_pid

from remuda.core.events import MessageChunk
from remuda.core.files import locked
from remuda.dispatch.tasks import events

SCENARIO = """
name: work
rules:
  - when: {contains: "ended before you were done"}
    steps:
      - text: "I went on."
  - when: {contains: "long"}
    steps:
      - text: "I begin. "
        tool: shell
        input: {command: 'echo $$ > pid; echo asked >> asked; sleep 60'}
      - text: "It took long."
  - when: {contains: "hands on"}
    steps:
      - tool: shell
        input: {command: 'remuda task submit --agent free --permission bypass long > inner'}
      - text: "Handed on."
  - when: {contains: "slow"}
    steps:
      - tool: shell
        input: {command: 'sleep 1'}
      - text: "That was slow."
  - when: {contains: "patient"}
    steps:
      - tool: shell
        input: {command: 'echo $$ > pid; while [ ! -e go ]; do sleep 0.1; done'}
      - text: "I waited."
  - steps:
      - text: "Done."
"""

CONFIG = """
[agents.free]
runtime = "rehearsal"
[agents.narrow]
runtime = "rehearsal"
limits.max_concurrent = 1
tags = ["few"]
[tasks]
lease = 12.0
idle = 1.0
"""


class Yard:
    """A site with tasks, and workers that are ended with it."""

    def __init__(self, site: Site, shared: SharedStore) -> None:
        self.site, self.shared = site, shared
        self.workers: list[subprocess.Popen[bytes]] = []
        (site.home / "config").mkdir(parents=True)
        (site.home / "config" / "config.toml").write_text(CONFIG)
        (site.folder / "work.yaml").write_text(SCENARIO)
        site.env.update(shared.environ, REHEARSAL_SCENARIO=str(site.folder / "work.yaml"))
        assert site.remuda("trust", "add", str(site.cwd)).code == 0

    def work(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it is on record."""
        before = len(self.living())
        worker = self.site.start("worker", *options)
        self.workers.append(worker)
        eventually(lambda: len(self.living()) > before)
        return worker

    def living(self) -> list[dict[str, object]]:
        """The workers that are on record and live."""
        status = self.site.remuda("worker", "--status", "--json").json["workers"]
        assert isinstance(status, list)
        return [each for each in status if each["alive"]]

    def submit(self, prompt: str, *options: str, agent: str = "free") -> str:
        """Hand a task in."""
        asked = ("--agent", agent, "--permission", "bypass", "--json", *options)
        ended = self.site.remuda("task", "submit", *asked, prompt)
        assert ended.code == 0, ended.stderr
        return str(ended.json["id"])

    def get(self, task: str) -> Ended:
        return self.site.remuda("task", "get", "--json", task)

    def state(self, task: str) -> object:
        return self.get(task).json["state"]

    def ended(self, task: str) -> dict[str, object]:
        """The task once it has ended."""
        eventually(lambda: self.state(task) not in ("queued", "running"))
        return self.get(task).json

    def said(self, task: str) -> str:
        """The agent's answer so far."""
        database = self.shared.open()
        try:
            updates = [event.update for event in events.after(database, task, 0)]
        finally:
            database.close()
        return "".join(update.content.text for update in updates if isinstance(update, MessageChunk))

    def cancel(self, task: str) -> None:
        """Break a task off, and wait until it has ended."""
        assert self.site.remuda("task", "cancel", task).code == 0
        assert self.ended(task)["state"] == "cancelled"

    def is_ending(self) -> bool:
        """Whether the only worker was told to end, and knows."""
        return [each["slots"] for each in self.living()] == [0]

    @contextlib.contextmanager
    def at_its_limit(self) -> Iterator[None]:
        """Somebody else has the only place of the narrow agent."""
        holder = self.site.start("run", "--agent", "narrow", "--permission", "bypass", "long")
        eventually(lambda: self.asked() == 1)
        try:
            yield
        finally:
            holder.send_signal(signal.SIGINT)
            finish(holder)

    def asked(self) -> int:
        """How often the model was given the long task."""
        place = self.site.cwd / "asked"
        return place.read_text().count("asked") if place.exists() else 0


@pytest.fixture
def yard(site: Site, shared_store: SharedStore) -> Iterator[Yard]:
    yard = Yard(site, shared_store)
    yield yard
    for worker in yard.workers:
        with contextlib.suppress(ProcessLookupError):
            worker.kill()
        finish(worker)


@pytest.fixture
def alone(site: Site, tmp_path: Path) -> Iterator[Yard]:
    """A yard on one machine, where workers are started on demand."""
    yield Yard(site, SharedStore(tmp_path / "site" / "remuda" / "state" / "dispatch.db", None, None))
    eventually(lambda: not site.processes())


class TestOnDemand:
    def test_a_worker_comes_with_the_first_task_and_ends_by_itself(self, alone: Yard) -> None:
        task = alone.submit("patient")
        read_pid(alone.site.cwd / "pid")
        assert len(alone.living()) == 1
        (alone.site.cwd / "go").touch()
        assert alone.ended(task)["state"] == "succeeded"
        eventually(lambda: not alone.living())

    def test_two_submissions_at_once_start_one_worker(self, alone: Yard) -> None:
        submissions = [
            alone.site.start("task", "submit", "--agent", "free", "--json", f"hello {number}")
            for number in range(3)
        ]
        tasks = [str(finish(each).json["id"]) for each in submissions]
        assert [alone.ended(task)["state"] for task in tasks] == ["succeeded"] * 3
        assert len(alone.living()) <= 1

    def test_one_that_takes_its_time_to_end_is_waited_for(self, alone: Yard) -> None:
        place = alone.site.home / "runtime" / "worker.lock"
        with locked(place):
            task = alone.submit("hello")
            time.sleep(4)
            assert alone.state(task) == "queued"
        assert alone.ended(task)["state"] == "succeeded"

    def test_nobody_waits_for_the_place_of_one_that_stays(self, alone: Yard) -> None:
        task = alone.submit("patient")
        read_pid(alone.site.cwd / "pid")
        assert finish(alone.site.start("worker", "--on-demand")).code == 0
        assert len(alone.living()) == 1
        (alone.site.cwd / "go").touch()
        assert alone.ended(task)["state"] == "succeeded"

    def test_a_killed_one_is_replaced_when_somebody_asks_for_more(self, alone: Yard) -> None:
        task = alone.submit("long")
        child = read_pid(alone.site.cwd / "pid")
        (worker,) = alone.living()
        _kill(worker)
        alone.submit("hello")
        assert alone.ended(task)["state"] == "succeeded"
        assert not alive(child)
        assert alone.asked() == 1

    def test_a_killed_one_is_replaced_when_its_task_is_handed_in_again(self, alone: Yard) -> None:
        task = alone.submit("long", "--key", "nightly")
        read_pid(alone.site.cwd / "pid")
        (worker,) = alone.living()
        _kill(worker)
        assert alone.submit("long", "--key", "nightly") == task
        assert alone.ended(task)["state"] == "succeeded"
        assert alone.asked() == 1

    def test_a_killed_one_is_replaced_when_somebody_waits(self, alone: Yard) -> None:
        task = alone.submit("long")
        read_pid(alone.site.cwd / "pid")
        (worker,) = alone.living()
        _kill(worker)
        assert alone.site.remuda("task", "wait", task).code == 0
        assert alone.state(task) == "succeeded"

    def test_a_killed_one_is_replaced_though_another_lives_that_serves_others(self, alone: Yard) -> None:
        other = alone.work("--agents", "narrow")
        task = alone.submit("long")
        read_pid(alone.site.cwd / "pid")
        (worker,) = (each for each in alone.living() if not each["agents"])
        _kill(worker)
        assert alone.site.remuda("task", "wait", "--timeout", "60", task).code == 0
        other.send_signal(signal.SIGTERM)
        assert finish(other).code == 0

    def test_one_that_an_agent_needs_has_nothing_of_that_agents_account(self, alone: Yard) -> None:
        config = alone.site.home / "config" / "config.toml"
        config.write_text(
            f'{CONFIG}[agents.homed]\nruntime = "rehearsal"\nhome = "{alone.site.folder}/own"\n'
        )
        ended = alone.site.remuda("run", "--agent", "homed", "--permission", "bypass", "hands on")
        assert ended.code == 0, ended.stderr
        task = (alone.site.cwd / "inner").read_text().strip()
        read_pid(alone.site.cwd / "pid")
        (worker,) = alone.living()
        environ = Path(f"/proc/{worker['pid']}/environ").read_bytes()
        alone.cancel(task)
        for name in (b"REHEARSAL_HOME=", b"REMUDA_AGENT_BINARY=", b"REMUDA_ORIGIN="):
            assert name not in environ

    def test_one_that_is_about_to_end_is_not_counted_on(self, alone: Yard) -> None:
        task = alone.submit("long")
        read_pid(alone.site.cwd / "pid")
        stopping = alone.site.start("worker", "--stop")
        eventually(alone.is_ending)
        assert alone.ended(alone.submit("hello"))["state"] == "succeeded"
        assert finish(stopping).code == 0
        assert alone.site.remuda("task", "wait", "--timeout", "60", task).code == 0
        assert alone.asked() == 1

    def test_what_it_keeps_is_private(self, alone: Yard) -> None:
        task, state = alone.submit("long, with a secret prompt"), alone.site.home / "state"
        read_pid(alone.site.cwd / "pid")
        (wake,) = (alone.site.home / "runtime" / "workers").iterdir()
        for file in (state / "engine.db", state / "dispatch.db", wake):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert alone.site.remuda("task", "cancel", task).code == 0
        alone.ended(task)
        assert b"secret prompt" not in (state / "engine.db").read_bytes()


def _kill(worker: dict[str, object]) -> None:
    pid = worker["pid"]
    assert isinstance(pid, int)
    kill(pid)


class TestTakeover:
    def test_a_dead_workers_task_goes_on_in_its_session(self, yard: Yard) -> None:
        first = yard.work()
        task = yard.submit("long")
        child = read_pid(yard.site.cwd / "pid")
        eventually(lambda: "I begin" in yard.said(task))
        first.kill()
        first.wait()
        yard.work()
        found = yard.ended(task)
        assert found["state"] == "succeeded"
        attempts = found["attempts"]
        assert isinstance(attempts, list)
        assert [each["outcome"] for each in attempts] == ["lost", "succeeded"]
        assert attempts[0]["session"] == attempts[1]["session"]
        assert not alive(child)
        assert yard.asked() == 1
        watched = yard.site.remuda("task", "watch", "--json", task)
        assert "ended in the middle" in watched.stdout

    def test_one_whose_agent_is_at_its_limit_waits_for_it(self, yard: Yard) -> None:
        first = yard.work()
        task = yard.submit("long", agent="narrow")
        read_pid(yard.site.cwd / "pid")
        first.kill()
        first.wait()
        (yard.site.cwd / "asked").unlink()
        with yard.at_its_limit():
            yard.work()
            eventually(lambda: len(yard.get(task).json["attempts"]) == 2)  # type: ignore[arg-type]
            time.sleep(2)
            assert yard.state(task) == "running"
        assert yard.ended(task)["state"] == "succeeded"

    def test_without_a_history_it_is_interrupted_with_what_is_known(self, yard: Yard) -> None:
        first = yard.work()
        task = yard.submit("long")
        read_pid(yard.site.cwd / "pid")
        eventually(lambda: "I begin" in yard.said(task))
        first.kill()
        first.wait()
        for transcript in (yard.site.folder / "rehearsal" / "sessions").iterdir():
            transcript.unlink()
        yard.work()
        found = yard.ended(task)
        assert found["state"] == "interrupted"
        result, error = found["result"], found["error"]
        assert isinstance(result, dict)
        assert isinstance(error, dict)
        assert "I begin" in result["text"]
        assert "remuda run --session" in error["message"]
        assert yard.asked() == 1

    def test_an_isolated_one_never_goes_on_outside_of_its_worktree(self, alone: Yard) -> None:
        repository(alone.site.cwd)
        script = f"echo more > new; echo $$ > {alone.site.cwd}/pid; echo asked >> {alone.site.cwd}/asked"
        scenario = SCENARIO.replace("echo $$ > pid; echo asked >> asked", script)
        (alone.site.folder / "work.yaml").write_text(scenario)
        task = alone.submit("long", "--isolated")
        read_pid(alone.site.cwd / "pid")
        eventually(lambda: "I begin" in alone.said(task))
        (worker,) = alone.living()
        _kill(worker)
        with (
            contextlib.closing(sqlite3.connect(alone.site.home / "state" / "remuda.db")) as sessions,
            sessions,
        ):
            sessions.execute("DELETE FROM sessions")
        alone.submit("hello")
        found = alone.ended(task)
        assert found["state"] == "interrupted"
        result = found["result"]
        assert isinstance(result, dict)
        assert result["work"]["files"] == 1
        assert git(alone.site.cwd, "show", f"{result['work']['branch']}:new") == "more"


class TestEnding:
    def test_all_of_this_machine_can_be_told_to_end(self, yard: Yard) -> None:
        first, second = yard.work(), yard.work("--slots", "1")
        assert "2 have ended" in yard.site.remuda("worker", "--stop").stderr
        assert (first.wait(PATIENCE), second.wait(PATIENCE)) == (0, 0)
        assert yard.living() == []

    def test_told_to_end_it_finishes_what_runs(self, yard: Yard) -> None:
        worker = yard.work("--grace", "60")
        task = yard.submit("patient")
        read_pid(yard.site.cwd / "pid")
        worker.send_signal(signal.SIGTERM)
        eventually(yard.is_ending)
        (yard.site.cwd / "go").touch()
        assert worker.wait(PATIENCE) == 0
        assert yard.state(task) == "succeeded"
        assert yard.living() == []

    def test_what_does_not_finish_in_time_is_left_to_another(self, yard: Yard) -> None:
        worker = yard.work("--grace", "0.1")
        task = yard.submit("long")
        child = read_pid(yard.site.cwd / "pid")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 1
        assert not alive(child)
        assert yard.state(task) == "running"
        yard.work()
        assert yard.ended(task)["state"] == "succeeded"
        assert yard.asked() == 1

    def test_a_second_signal_ends_it_at_once(self, yard: Yard) -> None:
        worker = yard.work("--grace", "600")
        yard.submit("long")
        child = read_pid(yard.site.cwd / "pid")
        worker.send_signal(signal.SIGTERM)
        eventually(yard.is_ending)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 1
        assert not alive(child)

    def test_once_ends_when_nothing_is_left(self, yard: Yard) -> None:
        assert yard.site.remuda("worker", "--agents", "nobody").code == 4
        first = yard.work("--agents", "free")
        tasks = [yard.submit("slow", agent="narrow") for _ in range(3)] if yard.shared.url else []
        first.send_signal(signal.SIGTERM)
        first.wait(PATIENCE)
        ended = yard.site.remuda("worker", "--once")
        assert ended.code == 0, ended.stderr
        assert [yard.state(task) for task in tasks] == ["succeeded"] * len(tasks)


def test_cancelling_kills_the_agent_and_what_it_started(yard: Yard) -> None:
    yard.work()
    task = yard.submit("long")
    child = read_pid(yard.site.cwd / "pid")
    assert yard.site.remuda("task", "cancel", task).code == 0
    assert yard.ended(task)["state"] == "cancelled"
    eventually(lambda: not alive(child))


def test_a_task_whose_agent_is_at_its_limit_is_in_nobodys_way(yard: Yard) -> None:
    yard.work("--slots", "2")
    narrow = [yard.submit("long", agent="narrow") for _ in range(3)]
    read_pid(yard.site.cwd / "pid")
    assert yard.ended(yard.submit("hello"))["state"] == "succeeded"
    assert yard.asked() == 1
    for task in narrow:
        yard.site.remuda("task", "cancel", task)
    assert [yard.ended(task)["state"] for task in narrow] == ["cancelled"] * 3


def test_a_tag_whose_agents_are_at_their_limit_is_in_nobodys_way(yard: Yard) -> None:
    with yard.at_its_limit():
        yard.work("--slots", "2")
        submit = ("task", "submit", "--tag", "few", "hello")
        for each in [yard.site.start(*submit) for _ in range(12)]:
            assert finish(each).code == 0
        assert yard.ended(yard.submit("hello"))["state"] == "succeeded"
        assert yard.site.remuda("worker", "--status", "--json").json["queued"] != 0


def test_an_isolated_task_makes_no_worktree_while_it_waits(yard: Yard) -> None:
    repository(yard.site.cwd)
    with yard.at_its_limit():
        yard.work()
        task = yard.submit("hello", "--isolated", agent="narrow")
        time.sleep(4)
        assert yard.site.remuda("worktree", "list", "--json").json["worktrees"] == []
    found = yard.ended(task)
    assert found["state"] == "succeeded"
    assert len(yard.site.remuda("worktree", "list", "--json").json["worktrees"]) == 1  # type: ignore[arg-type]


def test_a_worker_serves_what_it_is_there_for(yard: Yard) -> None:
    yard.work("--agents", "narrow")
    ours = yard.submit("hello", agent="narrow")
    assert yard.ended(ours)["state"] == "succeeded"
    if yard.shared.url:
        other = yard.submit("hello")
        time.sleep(1)
        assert yard.state(other) == "queued"


class TestServer:
    """What only a server can do: be away."""

    @pytest.fixture
    def shared_store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedStore]:
        server = request.getfixturevalue("postgres")
        with server.fresh() as url:
            yield SharedStore(tmp_path / "none", server, url)

    def test_nobody_is_started_and_that_is_said(self, yard: Yard) -> None:
        ended = yard.site.remuda("task", "submit", "--agent", "free", "--json", "hello")
        assert "remuda worker" in ended.stderr
        assert yard.living() == []

    def test_a_restart_interrupts_nothing(self, yard: Yard) -> None:
        yard.work()
        task = yard.submit("patient")
        read_pid(yard.site.cwd / "pid")
        assert yard.shared.server is not None
        yard.shared.server.restart("immediate")
        (yard.site.cwd / "go").touch()
        found = yard.ended(task)
        assert found["state"] == "succeeded"
        assert len(found["attempts"]) == 1  # type: ignore[arg-type]

    def test_a_worker_that_cannot_reach_it_ends_its_agents(self, yard: Yard) -> None:
        worker = yard.work()
        task = yard.submit("long")
        child = read_pid(yard.site.cwd / "pid")
        assert yard.shared.server is not None
        yard.shared.server.stop("immediate")
        try:
            assert worker.wait(PATIENCE) == 1
            assert not alive(child)
        finally:
            yard.shared.server.start()
        yard.work()
        assert yard.ended(task)["state"] == "succeeded"
        assert yard.asked() == 1
