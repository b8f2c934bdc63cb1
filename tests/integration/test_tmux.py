"""Remuda's own tmux server, on a real tmux."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.tmuxes import ENV, PATH, ROOT, raw, served, written
from tests.support import alive, eventually

from remuda.core.errors import UsageError
from remuda.sessions.tmux import errors, protocol
from remuda.sessions.tmux.panes import Ending, Pane, Size
from remuda.sessions.tmux.server import TERMINAL, Tmux

_SHOW = """
import os, sys
with open(sys.argv[1] + "~", "wb") as stream:
    stream.write(b"\\0".join(map(os.fsencode, (os.getcwd(), *sys.argv[2:]))) + b"\\0\\0")
    stream.write(b"\\0".join(sorted(name + b"=" + value for name, value in os.environb.items())))
os.rename(sys.argv[1] + "~", sys.argv[1])
"""
"""Writes its folder, its arguments and its environment to a file."""


def test_stopping_one_never_touches_another_whose_name_begins_alike(tmux: Tmux) -> None:
    first = tmux.new("b10", ["sleep", "1000"], ENV, ROOT)
    assert tmux.kill("b1") is False
    second = tmux.new("b1", ["sleep", "1000"], ENV, ROOT)
    assert set(tmux.sessions()) == {"b1", "b10"}
    assert tmux.kill("b1") is True
    eventually(lambda: not alive(second.pid))
    assert tmux.sessions() == ("b10",)
    assert alive(first.pid)
    assert tmux.alive(first)
    assert not tmux.alive(second)
    with pytest.raises(errors.NoSuchSessionError):
        tmux.find("b1")


def test_nothing_reaches_a_pane_that_is_not_the_one_that_is_meant(tmux: Tmux) -> None:
    cat = tmux.new("cat", ["cat"], ENV, ROOT)
    tmux.new("other", ["cat"], ENV, ROOT)
    wrong = [
        Pane("other", cat.id, cat.pid),
        Pane("cat", cat.id, cat.pid + 1),
        Pane("cat", "%77", cat.pid),
        Pane("gone", cat.id, cat.pid),
    ]
    attempts: list[Callable[[Pane], object]] = [
        lambda pane: tmux.keys(pane, ["x", "Enter"]),
        lambda pane: tmux.type(pane, "typed\n"),
        lambda pane: tmux.paste(pane, "pasted\n"),
        lambda pane: tmux.resize(pane, Size(80, 24)),
        tmux.look,
    ]
    for pane in wrong:
        for attempt in attempts:
            with pytest.raises((errors.NoSuchPaneError, errors.NoSuchSessionError)):
                attempt(pane)
    tmux.type(cat, "end\n")
    eventually(lambda: tmux.capture(cat).split() == ["end", "end"])
    assert tmux.find("other").size == Size()


def test_a_name_is_taken_once(tmux: Tmux) -> None:
    first = tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    with pytest.raises(errors.NameTakenError):
        tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    assert tmux.find("a").pane == first


def test_a_program_gets_its_arguments_and_environment_exactly(place: Path) -> None:
    """Whatever the user's shell is, whatever settings tmux would read, and whatever we have in our own."""
    home = place / "home"
    (home / ".config/tmux").mkdir(parents=True)
    for file in (".tmux.conf", ".config/tmux/tmux.conf"):
        (home / file).write_text(
            "set -g default-command 'false'\nset-environment -g LEAK 1\nset -g status on\n"
        )
    folder = place / "a folder; $(touch x) 'ü'"
    folder.mkdir()
    words = [
        "a b",
        "",
        "'",
        '"',
        "$HOME",
        "`id`",
        "#{pane_id}",
        "; x",
        "\\",
        "l1\nl2",
        "--",
        "-x",
        "ü",
        "\udcff",
    ]
    env = {
        "PATH": PATH,
        "HOME": str(home),
        "A": "x y\n'",
        "npm_config_//r/:x": "1",
        "EMPTY": "",
        "SHELL": "/odd",
    }
    for shell in ("/bin/sh", "/usr/sbin/nologin", "/nowhere/fish"):
        given_env = {"HOME": str(home), "SHELL": shell, "TMUX": "/x,1,0", "TMUX_PANE": "%0", "SECRET": "1"}
        with served(place / "tmux.sock", **given_env) as tmux:
            file = place / f"seen-{shell.rpartition('/')[2]}"
            tmux.new("a", [sys.executable, "-c", _SHOW, str(file), *words, "last"], env, folder)
            arguments, _, variables = written(file).partition(b"\0last\0\0")
            assert arguments.split(b"\0") == [os.fsencode(word) for word in (str(folder), *words)]
            wanted = {**env, "TERM": TERMINAL}
            seen = dict(entry.split(b"=", 1) for entry in variables.split(b"\0"))
            seen.pop(b"LC_CTYPE", None)  # Python sets it for itself
            assert seen == {os.fsencode(name): os.fsencode(value) for name, value in wanted.items()}


def test_no_secret_is_seen_in_any_argument_or_file(tmux: Tmux, place: Path) -> None:
    """Looked at all the time while a session is started, pasted and typed into."""
    secret = f"s3cret-{os.urandom(8).hex()}"
    watch = (
        "import os, sys\nseen = set()\nprint('on', flush=True)\n"
        "while not os.path.exists(sys.argv[1]):\n"
        "    for pid in os.listdir('/proc'):\n"
        "        if pid.isdigit() and int(pid) != os.getpid():\n"
        "            try: line = open(f'/proc/{pid}/cmdline', 'rb').read()\n"
        "            except OSError: continue\n"
        "            if b's3cret-' in line: print(line)\n"
        "            seen.add(b'tmux.sock' in line)\n"
        "print(True in seen)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", watch, str(place / "stop")], stdout=subprocess.PIPE
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == b"on\n"
        for turn in range(8):
            pane = tmux.new(f"n{turn}", ["cat"], {**ENV, "TOKEN": secret}, ROOT)
            eventually(lambda pane=pane: f"TOKEN={secret}".encode() in _environ(pane.pid))  # type: ignore[misc]
            tmux.paste(pane, f"{secret}\n")
            tmux.type(pane, f"{secret}\n")
            assert not list((place / "run").glob("start-*"))
        (place / "stop").touch()
        assert watcher.stdout.read() == b"True\n"
    argv = (
        *tmux.client.argv(),
        "show-environment",
        "-g",
        ";",
        "list-buffers",
        ";",
        "show-environment",
        "-t",
        "n1",
    )
    assert secret.encode() not in subprocess.run(argv, capture_output=True, check=True).stdout


def _environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_a_program_that_cannot_be_started_says_so_and_ends(tmux: Tmux) -> None:
    missing = tmux.new("m", ["/nowhere/program"], ENV, ROOT)
    folder = tmux.new("f", ["cat"], ENV, Path("/nowhere"))
    eventually(lambda: tmux.exit_status(missing) == Ending(127))
    eventually(lambda: tmux.exit_status(folder) == Ending(127))
    assert "cannot start /nowhere/program" in tmux.capture(missing, history=True)


def test_200_kib_arrive_byte_for_byte_in_brackets(tmux: Tmux, place: Path) -> None:
    line = "tab\t; $HOME 'quotes\" \\033 #{x} ünïcödé 🐎 \x01\x7f\r|\n"
    text = (line * (220 * 1024 // len(line.encode()) + 1)) + "last"
    assert len(text.encode()) > 220 * 1024
    pane = raw(tmux, place / "got", "last\x1b[201~")
    tmux.paste(pane, text)
    assert written(place / "got") == b"\x1b[200~" + text.encode() + b"\x1b[201~"
    listed = subprocess.run((*tmux.client.argv(), "list-buffers"), capture_output=True, check=True)
    assert listed.stdout == b""


def test_a_text_that_would_end_its_own_brackets_is_refused(tmux: Tmux) -> None:
    pane = tmux.new("a", ["cat"], ENV, ROOT)
    for text in ("x\x1b[201~rm", "x\x9b201~rm"):
        with pytest.raises(UsageError):
            tmux.paste(pane, text)


def test_typing_is_literal_and_keys_have_names(tmux: Tmux, place: Path) -> None:
    text = "Enter C-c 'x\" $HOME ; #{pane_id} \\n ~ é🐎" + "-" * 5000 + ";"
    pane = raw(tmux, place / "got", "\x04")
    tmux.type(pane, text)
    tmux.keys(pane, ["Enter", "Escape", "Up", "C-c", "Tab", "BSpace", ";", "-", "C-d"])
    assert written(place / "got") == text.encode() + b"\r\x1b\x1b[A\x03\t\x7f;-\x04"


def test_any_text_is_one_word_for_tmux(tmux: Tmux) -> None:
    """Given to tmux and asked for again."""
    tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    characters = st.characters(exclude_categories=("Cs",), exclude_characters="\0")

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.text(characters, min_size=1), min_size=1))
    def held(texts: list[str]) -> None:
        """A buffer that every text and a mark are appended to keeps every byte."""
        words = [word for text in texts for word in (text, "\x1f")]
        commands = [("set-buffer", "-a", "-b", "t", "--", word) for word in words]
        script = protocol.sequence([*commands, ("show-buffer", "-b", "t"), ("delete-buffer", "-b", "t")])
        argv = (*tmux.client.argv(), "source-file", "-")
        done = subprocess.run(argv, input=script.encode(), capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == "".join(words).encode()

    held()


def test_a_screen_is_told_as_it_is(tmux: Tmux) -> None:
    code = "printf '\\033]2;a | title\\007\\033[?1049h\\033[31mred\\033[0m  x\\n%090d' 7; cat"
    pane = tmux.new("a", ["sh", "-c", code], ENV, ROOT, Size(80, 24))
    eventually(lambda: "07" in tmux.capture(pane))
    view = tmux.look(pane)
    assert view.text.splitlines()[:3] == ["red  x", "0" * 80, "0" * 9 + "7"]
    assert (view.size, view.cursor, view.alternate, view.title) == (Size(80, 24), (10, 2), True, "a | title")
    assert "\x1b[31mred" in tmux.capture(pane, escapes=True)
    tmux.resize(pane, Size(120, 30))
    assert tmux.look(pane).size == Size(120, 30)


def test_history_is_kept(tmux: Tmux) -> None:
    pane = tmux.new("a", ["sh", "-c", "seq 500; cat"], ENV, ROOT)
    eventually(lambda: "500" in tmux.capture(pane))
    assert "\n77\n" not in tmux.capture(pane)
    assert "\n77\n" in tmux.capture(pane, history=True)


def test_the_end_of_a_program_is_told_every_time(tmux: Tmux) -> None:
    """tmux itself misses every fourth one until another program ends."""
    for turn in range(20):
        pane = tmux.new(f"n{turn}", ["sh", "-c", "exit 3"], ENV, ROOT)
        eventually(lambda pane=pane: tmux.exit_status(pane) is not None)  # type: ignore[misc]
        eventually(lambda pane=pane: tmux.exit_status(pane) == Ending(3))  # type: ignore[misc]
        assert not tmux.alive(pane)
    with pytest.raises(errors.NoSuchPaneError):
        tmux.keys(pane, ["Enter"])
    with pytest.raises(errors.NoSuchPaneError):
        tmux.paste(pane, "x")


def test_a_signal_is_told(tmux: Tmux) -> None:
    pane = tmux.new("a", ["sleep", "1000"], ENV, ROOT)
    assert tmux.exit_status(pane) is None
    os.kill(pane.pid, signal.SIGKILL)
    eventually(lambda: tmux.exit_status(pane) is not None)
    known = subprocess.run(["tmux", "-V"], capture_output=True, text=True).stdout >= "tmux 3.3"
    eventually(lambda: tmux.exit_status(pane) == (Ending(None, 9) if known else Ending()))
