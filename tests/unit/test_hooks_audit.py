"""The audit: private, bounded, in one piece, and silent about commands."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from remuda.guard.tools import ToolCall
from remuda.hooks import audit
from remuda.hooks.audit import Record


def record(number: int = 0, rule: str = "", session: str = "") -> Record:
    time = f"2026-01-01T00:00:{number:02d}.000Z"
    return Record(time=time, event="PreToolUse", dialect="claude", rule=rule, session=session)


def numbers(records: list[Record]) -> list[int]:
    return [int(each.time[17:19]) for each in records]


def test_a_record_is_a_private_line(tmp_path: Path) -> None:
    path = tmp_path / "state" / "guard.jsonl"
    before = os.umask(0)
    try:
        audit.store(path, record(1, rule="git.force"))
    finally:
        os.umask(before)
    audit.store(path, record(2))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_bytes().splitlines()) == 2
    assert [*audit.read(path)] == [record(1, rule="git.force"), record(2)]


def test_a_digest_is_of_the_command_or_else_of_the_input() -> None:
    assert audit.digest(ToolCall("Bash", {"command": "pwd"})) == ("a1159e9df3670d54", 3)
    assert audit.digest(ToolCall("Bash", "pwd")) == ("a1159e9df3670d54", 3)
    mark, length = audit.digest(ToolCall("Write", {"file_path": "x"}))
    assert (len(mark), length) == (16, 17)
    assert audit.digest(ToolCall("Bash", {"command": "\udc80" * 2}))[1] == 2


def test_full_files_are_put_aside_and_the_oldest_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "guard.jsonl"
    monkeypatch.setattr(audit, "FULL", 200)
    for number in range(12):
        audit.store(path, record(number))
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["guard.jsonl", "guard.jsonl.1", "guard.jsonl.2", "guard.jsonl.3"]
    assert all(each.stat().st_size < 200 for each in tmp_path.iterdir())
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in tmp_path.iterdir())
    assert numbers([*audit.read(path)]) == list(range(4, 12))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "guard.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        audit.store(tmp_path / "guard.jsonl", record())
    assert not (tmp_path / "elsewhere").exists()


def _write(path: Path) -> None:
    audit.FULL = 4000
    for _ in range(50):
        audit.store(path, record(session="s" * 40))


def test_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "guard.jsonl"
    crowd = [multiprocessing.get_context("fork").Process(target=_write, args=(path,)) for _ in range(3)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    assert [each.exitcode for each in crowd] == [0, 0, 0]
    lines = [line for each in tmp_path.iterdir() for line in each.read_bytes().splitlines()]
    assert len({*lines}) == 1
    assert len([*audit.read(path)]) == len(lines) > 50


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "guard.jsonl"
    audit.store(path, record(1))
    with path.open("ab") as stream:
        stream.write(b'garbage\n{"time": 5}\n\xff\n\n')
    audit.store(path, record(2))
    assert numbers([*audit.read(path)]) == [1, 2]
    assert [*audit.read(tmp_path / "none")] == []


def test_a_log_is_followed_through_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "guard.jsonl"
    monkeypatch.setattr(audit, "FULL", 200)
    coming = iter(range(12))
    stream = audit.follow(path, lambda: audit.store(path, record(next(coming))))
    seen: list[Record] = []
    while len(seen) < 12:
        each = next(stream)
        seen += [each] if each else []
    assert numbers(seen) == list(range(12))


def test_half_a_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "guard.jsonl"
    audit.store(path, record(1))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])

    def wait() -> None:
        with path.open("ab") as stream:
            stream.write(whole[20:])

    stream = audit.follow(path, wait)
    assert [next(stream), next(stream), next(stream)] == [record(1), None, record(1)]
