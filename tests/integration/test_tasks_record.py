"""Tasks on record, from the outside: keys, lists, what is kept and where, what cannot be, and a server."""

from __future__ import annotations

import json
import signal
import stat
import time
from pathlib import Path

import pytest
from tests.integration.tasked import SCENARIO, SUBMIT, database, got, submitted, waited
from tests.integration.tasked import tasked as tasked
from tests.integration.test_imports import loaded
from tests.postgres import Server
from tests.support import Site, alive, eventually, finish, read_pid, settled, waits

from remuda.dispatch.tasks import store

SECRET = "Xyzzy-the-prompt-that-nobody-else-may-see"


class TestTheRecord:
    def test_a_key_makes_it_happen_once(self, tasked: Site) -> None:
        ids = {submitted(tasked, "--key", "nightly 1", "hello") for _ in range(2)}
        assert len(ids) == 1
        other = tasked.remuda(*SUBMIT, "--key", "nightly 1", SECRET)
        assert other.code == 2
        assert ids.pop() in other.stderr
        assert SECRET not in other.stderr
        again = tasked.remuda(*SUBMIT, "--json", "--key", "nightly 1", "hello")
        assert again.json["new"] is False

    def test_what_waited_too_long_has_expired(self, tasked: Site) -> None:
        submitted(tasked, "--permission", "bypass", "hang")
        read_pid(tasked.cwd / "pid")
        ident = submitted(tasked, "--expires", "0.2", "order")
        ended = waited(tasked, ident)
        assert ended.code == 3
        assert got(tasked, ident)["state"] == "expired"
        assert got(tasked, ident)["attempts"] == []

    def test_lists_go_on_where_they_ended(self, tasked: Site) -> None:
        ids = [submitted(tasked, f"hello {number}") for number in range(3)]
        page = tasked.remuda("task", "list", "--limit", "2", "--json").json
        rest = tasked.remuda("task", "list", "--before", str(page["next"]), "--json").json
        listed = [task["id"] for task in (*page["tasks"], *rest["tasks"])]  # type: ignore[misc]
        assert listed == sorted(ids, reverse=True)
        assert rest["next"] is None
        assert waited(tasked, *ids).code == 0
        for options, number in (
            (("--state", "succeeded"), 3),
            (("--state", "queued", "--state", "failed"), 0),
            (("--agent", "rehearsal"), 3),
            (("--agent", "claude"), 0),
        ):
            found = tasked.remuda("task", "list", "--json", *options).json["tasks"]
            assert isinstance(found, list)
            assert len(found) == number
        table = tasked.remuda("task", "list").stdout
        assert all(ident in table for ident in ids)
        assert "hello" not in table

    def test_what_is_old_is_forgotten(self, tasked: Site) -> None:
        ident = submitted(tasked, "hello")
        assert waited(tasked, ident).code == 0
        assert tasked.remuda("task", "gc", "--json").json == {"forgotten": 0}
        assert tasked.remuda("task", "gc", "--older-than", "0", "--json").json == {"forgotten": 1}
        assert tasked.remuda("task", "get", ident).code == 4

    def test_the_prompt_is_in_the_database_and_nowhere_else(self, tasked: Site) -> None:
        ident = submitted(tasked, "--permission", "bypass", f"hang {SECRET}")
        pid = read_pid(tasked.cwd / "pid")
        worker = got(tasked, ident)["worker"]
        assert worker
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    text = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                assert SECRET.encode() not in text
        assert tasked.remuda("task", "cancel", ident).code == 0
        assert waited(tasked, ident).code == 130
        assert not alive(pid)
        kept = [path for path in tasked.home.rglob("*") if path.is_file()]
        holding = [path for path in kept if SECRET.encode() in path.read_bytes()]
        assert {path.name.partition("-")[0] for path in holding} == {"dispatch.db"}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holding)


class TestHostile:
    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            ((" ",), 2, "empty"),
            (("--key", "", "hi"), 2, "key"),
            (("--key", "k" * 201, "hi"), 2, "key"),
            (("--key", "a\nb", "hi"), 2, "key"),
            (("--expires", "nan", "hi"), 2, "expires"),
            (("--expires", "-1", "hi"), 2, "expires"),
            (("--priority", "99999999999999999999", "hi"), 2, "priority"),
            (("--cwd", "missing", "hi"), 4, "not a folder"),
            (("--env", "MY_API_KEY=1", "hi"), 5, "MY_API_KEY"),
            (("--env", "REMUDA_DATABASE_URL=1", "hi"), 5, "REMUDA_DATABASE_URL"),
            (("--sandbox", "danger-full-access", "hi"), 5, "--unsafe-yes"),
            (("--permission", "bypass", "hi"), 5, "remuda trust add"),
            (("--tag", "x", "hi"), 2, "exclude each other"),
            (("--session", "unknown", "--policy", "round-robin", "@missing"), 2, "missing"),
        ],
    )
    def test_what_cannot_be_is_said_at_once(
        self, site: Site, arguments: tuple[str, ...], code: int, told: str
    ) -> None:
        ended = site.remuda(*SUBMIT, *arguments)
        assert ended.code == code, ended.stderr
        assert told in ended.stderr
        assert site.remuda("task", "list", "--json").json["tasks"] == []
        assert not (site.home / "state" / "dispatch.db").exists()

    def test_unknown_agents_and_tags_are_errors(self, site: Site) -> None:
        assert site.remuda("task", "submit", "--agent", "nobody", "hi").code in (2, 4)
        assert site.remuda("task", "submit", "--tag", "nothing", "hi").code == 2
        assert site.remuda("task", "submit", "hi").code == 2

    @pytest.mark.parametrize("ident", ["", "%", "' OR 1=1 --", "../../etc", "01" * 40, "漢字"])
    @pytest.mark.parametrize("verb", ["get", "wait", "watch", "cancel"])
    def test_ids_that_are_none(self, site: Site, verb: str, ident: str) -> None:
        ended = site.remuda("task", verb, "--", ident)
        assert ended.code == 4
        assert "there is no such task" in ended.stderr

    def test_what_is_odd_arrives_unchanged(self, tasked: Site) -> None:
        odd = "{prompt} \"q\" 'a' $(id) \\n\n\ttab 漢字 🐎 \x01 end"
        ident = tasked.remuda(*SUBMIT, "-", stdin=odd.encode()).stdout.strip()
        assert waited(tasked, ident).code == 0
        with_prompt = tasked.remuda("task", "get", "--json", "--prompt", ident).json
        assert with_prompt["prompt"] == odd
        result = with_prompt["result"]
        assert isinstance(result, dict)
        assert odd in result["text"]


def test_where_a_server_keeps_the_tasks_nothing_is_started(site: Site, postgres: Server) -> None:
    with postgres.fresh() as url:
        site.env["REMUDA_DATABASE_URL"] = url
        site.env["REHEARSAL_SCENARIO"] = str(site.write("tasks.yaml", SCENARIO))
        ended = site.remuda(*SUBMIT, "hello")
        ident = ended.stdout.strip()
        assert "remuda worker" in ended.stderr
        assert site.processes() == []
        assert site.remuda("task", "wait", "--timeout", "0.2", ident).code == 3
        assert site.remuda("worker", "--once").code == 0
        watched = site.remuda("task", "watch", "--json", ident)
        assert (watched.code, watched.result["text"]) == (0, "Heard hello, and done.")
        assert not (site.home / "state" / "dispatch.db").exists()


def test_whoever_waits_is_still_there_after_a_restart_of_the_server(site: Site, postgres: Server) -> None:
    with postgres.fresh() as url:
        site.env["REMUDA_DATABASE_URL"] = url
        site.env["REHEARSAL_SCENARIO"] = str(site.write("tasks.yaml", SCENARIO))
        ident = site.remuda(*SUBMIT, "hello").stdout.strip()
        crowd = [site.start("task", verb, ident) for verb in ("wait", "watch")]
        for process in crowd:
            settled(process.pid)
        postgres.restart("immediate")
        assert site.remuda("worker", "--once").code == 0
        for process in crowd:
            ended = finish(process, 60)
            assert (ended.code, ended.stdout) == (0, "Heard hello, and done.\n"), ended.stderr


def test_whoever_waits_can_leave_while_the_server_hangs(site: Site, postgres: Server) -> None:
    with postgres.fresh() as url:
        site.env["REMUDA_DATABASE_URL"] = url
        waiting = site.start("task", "wait", submitted(site, "hello"))
        settled(waiting.pid)
        with postgres.frozen():
            time.sleep(0.5)
            waiting.send_signal(signal.SIGINT)
            ended = finish(waiting)
    assert ended.code == 130
    assert "The task goes on" in ended.stderr


@pytest.mark.parametrize("verb", ["wait", "watch"])
def test_so_they_can_where_it_hung_before_they_came(site: Site, postgres: Server, verb: str) -> None:
    with postgres.fresh() as url:
        site.env["REMUDA_DATABASE_URL"] = url
        task = submitted(site, "hello")
        with postgres.frozen():
            waiting = site.start("task", verb, task)
            eventually(lambda: waits(waiting.pid))
            waiting.send_signal(signal.SIGINT)
            assert finish(waiting, 8).code == 130


def test_what_is_let_go_of_after_its_end_was_waited_for(tasked: Site) -> None:
    first = submitted(tasked, "hello")
    assert waited(tasked, first).code == 0
    second = submitted(tasked, "--permission", "bypass", "hang")
    waiting = tasked.start("task", "wait", "--json", first, second)
    read_pid(tasked.cwd / "pid")
    settled(waiting.pid)
    assert "1 old" in tasked.remuda("task", "gc", "--older-than", "0").stdout
    assert tasked.remuda("task", "cancel", second).code == 0
    ended = finish(waiting)
    assert [each["state"] for each in ended.json["tasks"]] == ["succeeded", "cancelled"]  # type: ignore[attr-defined]
    assert ended.code == 130


def test_a_submission_is_quick_and_loads_no_engine(tasked: Site) -> None:
    tasked.env["REMUDA_AGENT_BINARY"] = "rehearsal"
    modules = loaded(tasked, "task", "submit", "hello")
    assert "remuda.operations.task.submitting" in modules
    assert not modules & {"dbos", "sqlalchemy", "psycopg", "asyncio", "starlette", "rich", "tomlkit"}
    (task,) = store.listed(database(tasked), store.Listing())
    assert waited(tasked, task.id).code == 0


def test_ids_are_completed(tasked: Site) -> None:
    ident = submitted(tasked, "hello")
    words = {"_REMUDA_COMPLETE": "bash_complete", "COMP_CWORD": "3"}
    offered = tasked.remuda(COMP_WORDS=f"remuda task get {ident[:10]}", **words)
    assert ident in offered.stdout
    assert waited(tasked, ident).code == 0


def test_every_answer_is_one_document(tasked: Site) -> None:
    ident = submitted(tasked, "hello")
    for verb in (("get", ident), ("list",), ("wait", ident), ("cancel", ident), ("gc",)):
        ended = tasked.remuda("task", *verb, "--json")
        assert ended.code == 0
        assert isinstance(json.loads(ended.stdout), dict)
    eventually(lambda: not tasked.processes())
