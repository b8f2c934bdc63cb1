"""``remuda task`` from the outside, with a real worker that starts by itself: what people and scripts see."""

from __future__ import annotations

import os
import re
import signal

from tests.integration.tasked import SUBMIT, got, submitted, waited
from tests.integration.tasked import tasked as tasked
from tests.support import Site, alive, carrying, finish, read_pid, settled

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KEYS = {
    *("id", "state", "agent", "tag", "result", "error", "usage", "cost_usd", "attempts", "takeovers"),
    *("session", "worker", "key", "priority", "cwd", "created_at", "expires_at", "started_at"),
    *("ended_at", "cancel", "last_seq", "prompt"),
}


class TestACourse:
    def test_from_submission_to_result(self, tasked: Site) -> None:
        ended = tasked.remuda(*SUBMIT, "--json", "hello")
        ident = str(ended.json["id"])
        assert ended.code == 0
        assert re.fullmatch(r"[0-9A-Z]{26}", ident)
        end = waited(tasked, ident[:20].lower())
        assert (end.code, end.stdout) == (0, "Heard hello, and done.\n")
        task = got(tasked, ident)
        assert set(task) == KEYS
        assert (task["state"], task["agent"], task["error"]) == ("succeeded", "rehearsal", None)
        assert task["result"]["text"] == "Heard hello, and done."
        assert task["usage"] == task["result"]["usage"]
        assert task["cwd"] == str(tasked.cwd)
        assert task["prompt"] is None
        for name in ("created_at", "started_at", "ended_at"):
            assert RFC3339.fullmatch(task[name])
        (attempt,) = task["attempts"]
        assert (attempt["number"], attempt["phase"], attempt["outcome"]) == (1, "ended", "succeeded")
        assert task["session"] == attempt["session"]
        shown = tasked.remuda("task", "get", "--prompt", ident)
        assert "hello" in shown.stdout
        assert "Heard hello, and done." in shown.stdout

    def test_events_are_followed_and_taken_up_again_by_their_number(self, tasked: Site) -> None:
        ident = submitted(tasked, "hello")
        live = tasked.remuda("task", "watch", "--json", ident)
        assert live.code == 0
        numbers = [event["seq"] for event in live.events]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert live.result["text"] == "Heard hello, and done."
        assert sum("result" in event for event in live.events) == 1
        again = tasked.remuda("task", "watch", "--json", "--since", "1", ident)
        assert again.events == live.events[1:]
        nothing = tasked.remuda("task", "watch", "--json", "--since", str(numbers[-1]), ident)
        assert (nothing.code, nothing.stdout) == (0, "")
        assert got(tasked, ident)["last_seq"] == numbers[-1]

    def test_a_runtime_stands_for_its_sole_agent(self, tasked: Site) -> None:
        """A worker elsewhere serves it by that name."""
        config = tasked.home / "config" / "config.toml"
        config.write_text(config.read_text() + '[agents.sole]\nruntime = "rehearsal"\n')
        ident = submitted(tasked, "--expires", "0.001", "hello")
        assert got(tasked, ident)["agent"] == "sole"

    def test_submitting_and_waiting_is_like_a_run(self, tasked: Site) -> None:
        ended = tasked.remuda(*SUBMIT, "--wait", "hello")
        assert (ended.code, ended.stdout) == (0, "Heard hello, and done.\n")
        assert re.search(r"^task [0-9A-Z]{26}$", ended.stderr, re.MULTILINE)
        document = tasked.remuda(*SUBMIT, "--wait", "--json", "@@at")
        assert document.json["state"] == "succeeded"
        assert document.json["id"]

    def test_a_failure_is_told_by_kind_and_exit_code(self, tasked: Site) -> None:
        ended = tasked.remuda(*SUBMIT, "--wait", "--json", "fail")
        assert ended.code == 1
        error = ended.json["error"]
        assert isinstance(error, dict)
        assert (ended.json["state"], error["kind"]) == ("failed", "model")
        assert waited(tasked, str(ended.json["id"])).code == 1

    def test_a_time_limit_is_kept_by_the_worker(self, tasked: Site) -> None:
        ended = tasked.remuda(*SUBMIT, "--wait", "--json", "--permission", "bypass", "--timeout", "1", "hang")
        assert (ended.code, ended.json["state"]) == (3, "failed")
        assert carrying(f"REMUDA_TASK={ended.json['id']}") == []

    def test_higher_priority_first_then_age(self, tasked: Site) -> None:
        submitted(tasked, "--permission", "bypass", "hang")
        pid = read_pid(tasked.cwd / "pid")
        todo = [("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)]
        ids = [
            submitted(
                tasked, "--permission", "bypass", "--env", f"ORDER={n}", "--priority", str(p), f"order {n}"
            )
            for n, p in todo
        ]
        os.kill(pid, signal.SIGKILL)
        assert waited(tasked, *ids).code == 0
        assert (tasked.cwd / "order").read_text().split() == ["b", "d", "a", "c", "e"]


class TestCancelling:
    def test_the_agent_and_all_that_it_started_is_ended(self, tasked: Site) -> None:
        ident = submitted(tasked, "--permission", "bypass", "hang")
        pid = read_pid(tasked.cwd / "pid")
        assert got(tasked, ident)["state"] == "running"
        first = tasked.remuda("task", "cancel", ident)
        assert (first.code, first.stdout) == (0, f"{ident} is being cancelled\n")
        assert waited(tasked, ident).code == 130
        assert not alive(pid)
        assert carrying(f"REMUDA_TASK={ident}") == []
        task = got(tasked, ident)
        assert (task["state"], task["error"]["kind"]) == ("cancelled", "cancelled")
        again = tasked.remuda("task", "cancel", "--json", ident)
        assert again.code == 0
        assert again.json["tasks"][0]["ended_at"] == task["ended_at"]  # type: ignore[index]

    def test_one_that_waits_never_starts(self, tasked: Site) -> None:
        first = submitted(tasked, "--permission", "bypass", "hang")
        read_pid(tasked.cwd / "pid")
        second = submitted(tasked, "--permission", "bypass", "order")
        assert tasked.remuda("task", "cancel", second, first).code == 0
        watched = tasked.remuda("task", "watch", "--json", second)
        assert (watched.code, watched.error["kind"]) == (130, "cancelled")
        assert waited(tasked, first).code == 130
        assert not (tasked.cwd / "order").exists()
        assert got(tasked, second)["attempts"] == []


class TestWaiting:
    def test_whoever_stops_waiting_stops_nothing(self, tasked: Site) -> None:
        ident = submitted(tasked, "--permission", "bypass", "hang")
        pid = read_pid(tasked.cwd / "pid")
        timed = tasked.remuda("task", "wait", "--timeout", "0.3", ident)
        assert timed.code == 3
        for verb in (("wait",), ("watch",), ("watch", "--json")):
            process = tasked.start("task", *verb, ident)
            settled(process.pid)
            process.send_signal(signal.SIGINT)
            ended = finish(process)
            assert ended.code == 130
            assert "goes on" in ended.stderr
            assert f"remuda task wait {ident}" in ended.stderr
        assert alive(pid)
        assert got(tasked, ident)["state"] == "running"
        assert tasked.remuda("task", "cancel", ident).code == 0
        assert waited(tasked, ident).code == 130

    def test_the_first_of_several(self, tasked: Site) -> None:
        ids = [submitted(tasked, "hello"), submitted(tasked, "--permission", "bypass", "hang")]
        first = tasked.remuda("task", "wait", "--first", "--timeout", "50", "--json", *reversed(ids))
        assert first.code == 0
        assert [task["id"] for task in first.json["tasks"]] == ids  # type: ignore[attr-defined]
        assert first.json["timed_out"] is False
        assert tasked.remuda("task", "cancel", ids[1]).code == 0
        both = waited(tasked, *ids)
        assert both.code == 130
        assert both.stdout == f"{ids[0]}  succeeded\n{ids[1]}  cancelled\n"
