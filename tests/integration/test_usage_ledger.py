"""The ledger: nothing is lost and nothing counted twice, whatever happens to files and processes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.claude_history import answer

from remuda.core.database import opened
from remuda.runtimes import registry
from remuda.runtimes.transcripts import Places
from remuda.sessions import store
from remuda.usage import ledger, prices
from remuda.usage.report import Question, Report, report

REFRESH = """
import sys
from pathlib import Path
from remuda.runtimes import registry
from remuda.runtimes.transcripts import Places
from remuda.usage import ledger
ledger.FLUSH = 200
places = Places(environ={"HOME": sys.argv[2]})
ledger.refresh(Path(sys.argv[1]), {"claude": registry.transcripts()["claude"]}, places)
"""


UNREADABLE = "/proc/self/mem"
"""A file that nobody can read from its beginning, not even root."""


class History:
    """Transcripts of Claude Code in a home, and a ledger of them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = self.home / ".claude" / "projects" / "-projects-one"
        self.folder.mkdir(parents=True)
        self.database = folder / "state" / "remuda.db"

    def write(self, name: str, *lines: str) -> Path:
        path = self.folder / f"{name}.jsonl"
        path.write_text("".join(lines))
        return path

    def append(self, name: str, *lines: str) -> None:
        with (self.folder / f"{name}.jsonl").open("a") as stream:
            stream.write("".join(lines))

    def refresh(self) -> ledger.Refreshed:
        claude = {"claude": registry.transcripts()["claude"]}
        return ledger.refresh(self.database, claude, Places(environ={"HOME": str(self.home)}))

    def report(self, question: Question | None = None) -> Report:
        return report(self.database, prices.load({}), question or Question())

    @property
    def outputs(self) -> int:
        return self.report().total.output_tokens

    def command(self) -> list[str]:
        return [sys.executable, "-c", REFRESH, str(self.database), str(self.home)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_only_what_is_new_is_read(history: History) -> None:
    history.write("s1", answer("a", (1, 10, 0, 0)))
    history.write("s2", answer("b", (1, 100, 0, 0)))
    assert history.refresh() == ledger.Refreshed(2, 2)
    assert history.refresh() == ledger.Refreshed(2, 0)
    history.append("s2", answer("c", (1, 1000, 0, 0)))
    assert history.refresh() == ledger.Refreshed(2, 1)
    assert history.outputs == 1110


def test_an_answer_counts_once_over_all_files_and_runs(history: History) -> None:
    """A session that was forked repeats the lines of the first one."""
    history.write("s1", answer("a", (1, 10, 0, 0)), answer("a", (1, 10, 0, 0)))
    history.refresh()
    history.write("s2", answer("a", (1, 10, 0, 0), session="s2"), answer("b", (1, 5, 0, 0), session="s2"))
    history.refresh()
    history.write("s3", answer("a", (1, 12, 0, 0), session="s3"))
    history.refresh()
    by_session = history.report(Question(by="session"))
    assert {row.name: row.output_tokens for row in by_session.rows} == {"s1": 12, "s2": 5}


def test_sums_are_those_of_the_single_answers(history: History) -> None:
    """However they came about: an odd moment makes the report look at the answers themselves."""
    history.write("s1", answer("a", (1, 10, 0, 0)), answer("b", (1, 10, 0, 0), day=2))
    history.refresh()
    history.write("s2", answer("a", (1, 99, 0, 0), session="s2"), answer("c", (1, 5, 0, 0), cost=0.5))
    history.refresh()
    for by in ("day", "session", "model", "runtime", "project", "agent"):
        whole = history.report(Question(by=by))
        assert whole.total.output_tokens == 114
        assert history.report(Question(by=by, since=1)) == whole


def test_an_answer_belongs_to_the_older_session(history: History) -> None:
    copied = history.write("a-fork", answer("a", session="fork"), answer("b", session="fork"))
    first = history.write("b-first", answer("a", session="first"))
    os.utime(first, (1000, 1000))
    os.utime(copied, (2000, 2000))
    history.refresh()
    by_session = history.report(Question(by="session"))
    assert {row.name: row.answers for row in by_session.rows} == {"first": 1, "fork": 1}


def test_a_file_that_was_replaced_is_read_anew(history: History) -> None:
    path = history.write("s1", answer("a", (1, 10, 0, 0)), answer("b", (1, 10, 0, 0)))
    history.refresh()
    beside = history.write("other", answer("c", (1, 100, 0, 0)), answer("d", (1, 100, 0, 0)), answer("e"))
    beside.replace(path)
    history.refresh()
    assert history.outputs == 240


def test_a_file_that_shrank_or_was_rewritten_is_read_anew(history: History) -> None:
    path = history.write("s1", answer("a", (1, 10, 0, 0)), answer("b", (1, 10, 0, 0)))
    history.refresh()
    path.write_text(answer("c", (1, 100, 0, 0)))
    history.refresh()
    assert history.outputs == 120
    path.write_text("".join(answer(f"n{number}", (1, 1000, 0, 0)) for number in range(3)))
    history.refresh()
    assert history.outputs == 3120


def test_what_is_gone_is_still_known(history: History) -> None:
    path = history.write("s1", answer("a", (1, 10, 0, 0)))
    history.refresh()
    path.unlink()
    assert history.refresh() == ledger.Refreshed(0, 0)
    assert history.outputs == 10


def test_damage_is_counted_once(history: History) -> None:
    history.write("s1", answer("a", (1, 10, 0, 0)), "{broken\n", answer("b", (1, 10, 0, 0)))
    (history.folder / "unreadable.jsonl").symlink_to(UNREADABLE)
    history.refresh()
    history.append("s1", "also broken\n")
    history.refresh()
    found = history.report()
    assert (found.skipped_lines, found.total.output_tokens) == (2, 20)
    assert [bool(each.trouble) for each in found.damaged] == [False, True]


def test_an_unreadable_file_is_tried_again(history: History) -> None:
    place = history.folder / "s1.jsonl"
    place.symlink_to(UNREADABLE)
    history.refresh()
    assert history.report().damaged
    place.unlink()
    history.write("s1", answer("a", (1, 10, 0, 0)))
    history.refresh()
    assert (history.report().damaged, history.outputs) == ([], 10)


def test_what_is_no_file_is_left_alone(history: History) -> None:
    """Opening a pipe would wait for somebody to write."""
    os.mkfifo(history.folder / "pipe.jsonl")
    (history.folder / "folder.jsonl").mkdir()
    (history.folder / "gone.jsonl").symlink_to("nothing")
    history.write("s1", answer("a", (1, 10, 0, 0)))
    history.refresh()
    assert (history.report().damaged, history.outputs) == ([], 10)


def test_our_own_sessions_lend_their_agent(history: History) -> None:
    history.write("s1", answer("a", (1, 10, 0, 0)))
    history.write("s2", answer("b", (1, 5, 0, 0), session="s2"))
    began = "2026-11-01T00:00:00Z"
    ours = store.Session(
        id="01AB",
        agent="reviewer",
        runtime="claude",
        runtime_session="s2",
        cwd="/projects/two",
        state="exited",
        seen_at=began,
        started_at=began,
    )
    store.begin(history.database, ours)
    history.refresh()
    by_agent = history.report(Question(by="agent"))
    assert {row.name: row.output_tokens for row in by_agent.rows} == {"claude": 10, "reviewer": 5}


def large(history: History, seed: int) -> int:
    """Many sessions with duplicates in and between them; the true sum of their output."""
    dice, truth = random.Random(seed), {}
    for session in range(12):
        lines = []
        for _ in range(150):
            name = str(dice.randrange(1500))
            truth[name] = int(name) + 1
            lines.append(answer(name, (1, truth[name], 0, 0), session=f"s{session}"))
        history.write(f"s{session}", *lines)
    return sum(truth.values())


def test_being_killed_loses_nothing_and_doubles_nothing(history: History) -> None:
    truth, dice = large(history, 5), random.Random(6)
    started = time.monotonic()
    subprocess.run(history.command(), check=True)
    whole = time.monotonic() - started
    for number in range(12):
        for file in history.database.parent.glob("remuda.db*") if number % 4 == 0 else ():
            file.unlink()
        process = subprocess.Popen(history.command())
        time.sleep(dice.uniform(0.2, 1.0) * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
        history.append(f"s{number % 12}", answer(f"more{number}", (1, 1, 0, 0)))
        if history.database.exists():
            with opened(history.database) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    history.refresh()
    assert history.outputs == truth + 12


def test_two_at_once_agree(history: History) -> None:
    truth = large(history, 7)
    processes = [subprocess.Popen(history.command(), stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate()[1] for process in processes] == [b""] * 4
    assert {process.returncode for process in processes} == {0}
    assert history.outputs == truth
    assert history.refresh().read == 0


def test_transcripts_are_only_ever_read(history: History) -> None:
    path = history.write("s1", answer("a"))
    os.utime(path, ns=(1, 1))
    history.refresh()
    assert path.stat().st_mtime_ns == 1
    assert sorted(each.name for each in history.folder.iterdir()) == ["s1.jsonl"]


def test_an_older_store_gets_the_ledger(history: History) -> None:
    from remuda.core import database

    history.database.parent.mkdir()
    with sqlite3.connect(history.database) as old:
        old.executescript(database.MIGRATIONS[0])
        old.execute("PRAGMA user_version = 1")
    old.close()
    history.write("s1", answer("a", (1, 10, 0, 0)))
    history.refresh()
    assert history.outputs == 10
