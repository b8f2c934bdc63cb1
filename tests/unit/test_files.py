"""Files are replaced whole or not at all, and stay private."""

from __future__ import annotations

import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from remuda.core.files import append_line, private_folder, read_left, write_atomic

LIMITED_WRITE = """
import resource, signal, sys
from pathlib import Path
from remuda.core.files import write_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write_atomic(Path(sys.argv[1]), b"n" * 100_000)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomic(tmp_path / "new", b"data")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o600
    assert (tmp_path / "new").read_bytes() == b"data"


@pytest.mark.parametrize("kept", [0o644, 0o640, 0o400, 0o755])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(kept)
    write_atomic(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


def test_a_given_mode_wins(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_atomic(path, b"new", 0o600)
    assert mode(path) == 0o600


@pytest.mark.parametrize("relative", [True, False])
def test_a_symlink_stays_one_and_its_target_is_replaced(tmp_path: Path, relative: bool) -> None:
    target = tmp_path / "dotfiles" / "config"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "config"
    link.symlink_to(Path("dotfiles/config") if relative else target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [entry.name for entry in target.parent.iterdir()] == ["config"]


def test_a_dangling_symlink_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "file")
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_bytes() == b"new"


def test_a_write_that_fails_midway_leaves_the_old_content_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", LIMITED_WRITE, str(path)], capture_output=True, text=True)
    assert ended.returncode != 0
    assert "File too large" in ended.stderr
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_rename_that_fails_leaves_no_litter(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        write_atomic(tmp_path / "taken", b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_a_parent_that_is_a_file_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        write_atomic(tmp_path / "file" / "below", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


def _write_often(path: str, letter: str) -> None:
    for _ in range(25):
        write_atomic(Path(path), letter.encode() * 50_000)


def test_of_concurrent_writers_one_wins_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(str(path), letter)) for letter in "abcd"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            seen = path.read_bytes()
            assert len(seen) == 50_000
            assert len(set(seen)) == 1
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def _append_often(path: str, letter: str) -> None:
    for number in range(200):
        append_line(Path(path), letter.encode() * (number % 50 * 100 + 1))


def test_lines_of_several_processes_do_not_interleave(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_often, args=(str(path), letter)) for letter in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    lines = path.read_bytes().splitlines()
    assert len(lines) == 800
    assert all(len(set(line)) == 1 for line in lines)
    assert mode(path) == 0o600


def test_a_line_gets_exactly_one_line_end(tmp_path: Path) -> None:
    append_line(tmp_path / "log", b"one\n")
    append_line(tmp_path / "log", b"two")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_appending_does_not_follow_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / "log").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path / "log", b"line")
    assert (tmp_path / "victim").read_bytes() == b"old"


def test_a_private_folder_and_its_new_parents_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path / "a") == 0o700


def test_what_was_left_is_read_up_to_a_bound(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.write_bytes(b"abcdef")
    assert (read_left(left, 10), read_left(left, 3)) == (b"abcdef", b"abc")


def test_nobody_is_led_away_or_kept_waiting_by_what_was_left(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.write_bytes(b"abcdef")
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(left)
    os.mkfifo(pipe)
    places = (link, pipe, tmp_path, tmp_path / "nothing", Path("/dev/zero"))
    assert [read_left(place, 10) for place in places] == [None] * 5
