"""The command line in strange hands: arguments that are no text, numbers that are none, streams that are
closed, terminals of other times, a shell that completes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.support import Ended, Site, Terminal

NO_TEXT = os.fsdecode(b"\xff\xfe")
CONFIG = """
[agents.work]
runtime = "rehearsal"
tags = ["fast"]
[sandboxes.cave]
extends = "offline"
"""


def ended(site: Site, *arguments: str, closed: str = "", **env: str) -> Ended:
    """Run ``remuda`` from a shell that closes some of its streams."""
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "remuda", *arguments],
        cwd=site.cwd,
        env={**site.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "x", "--agent", "rehearsal", "--session"),
        ("run", "x", "--agent", "rehearsal", "--system-prompt"),
        ("send", "rehearsal"),
        ("worker", "--once", "--tags"),
        ("peer", "register", "--runtime", "rehearsal", "--pane"),
    ],
)
def test_an_argument_that_is_no_text_is_an_error(site: Site, arguments: tuple[str, ...]) -> None:
    said = site.remuda(*arguments, NO_TEXT)
    assert (said.code, "UTF-8" in said.stderr) == (2, True), said.stderr


def test_a_name_that_is_no_text_is_nobodys(site: Site) -> None:
    said = site.remuda("worker", "--once", "--agents", NO_TEXT)
    assert (said.code, "no agent named" in said.stderr) == (4, True), said.stderr


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_a_number_of_seconds_is_one(site: Site, number: str) -> None:
    said = site.remuda("send", "rehearsal", "x", "--timeout", number)
    assert (said.code, "--timeout" in said.stderr) == (2, True), said.stderr


def test_streams_may_be_closed(site: Site) -> None:
    assert ended(site, "run", "hi", "--agent", "rehearsal", closed=">&-").code == 0
    assert ended(site, "agents", closed="<&- >&- 2>&-").code == 0


def test_a_terminal_of_other_times_is_written_to(site: Site) -> None:
    said = ended(site, "--help", PYTHONIOENCODING="ascii")
    assert (said.code, "Verbs:" in said.stdout) == (0, True), said.stderr
    assert ended(site, "sandbox", "list", PYTHONIOENCODING="ascii").code == 0


def test_the_resident_process_is_ended_whatever_the_configuration_says(site: Site) -> None:
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text("[agents")
    assert site.remuda("serve", "--status", "--json").json["running"] is False
    assert site.remuda("serve", "--stop").code == 0


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run --agent w", "work"),
        ("run --tag ", "fast"),
        ("task submit --sandbox c", "cave"),
        ("send w", "work"),
        ("sandbox show off", "offline"),
        ("launch cod", "codex"),
        ("peer show m", "mine"),
    ],
)
def test_a_shell_completes_names(site: Site, words: str, offered: str) -> None:
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text(CONFIG)
    if offered == "mine":
        registered = ("--runtime", "rehearsal", "--name", "mine", "--pid", str(os.getpid()))
        assert site.remuda("peer", "register", *registered).code == 0
    typed = f"remuda {words}"
    given = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    said = site.remuda(_REMUDA_COMPLETE="bash_complete", **given)
    assert said.stdout.split() == [f"plain,{offered}"], said.stderr


def test_a_narrow_terminal_breaks_no_name(site: Site) -> None:
    argv = [sys.executable, "-m", "remuda", "agents"]
    with Terminal(argv, site.cwd, {**site.env, "COLUMNS": "40", "NO_COLOR": "1"}) as terminal:
        assert terminal.end() == 0
    assert "agent: rehearsal\r\nruntime: rehearsal\r\nstatus: callable" in terminal.shown
    assert "\x1b" not in terminal.shown


LOADING = """
import sys
import remuda.__main__ as entry

class Interrupted:
    def find_spec(self, name, *_):
        if name == "remuda.surfaces.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
sys.argv = ["remuda", "agents"]
entry.main()
"""


def test_an_interrupt_while_it_loads_is_one(site: Site) -> None:
    said = subprocess.run([sys.executable, "-c", LOADING], env=site.env, capture_output=True, timeout=60)
    assert (said.returncode, said.stderr) == (130, b"")
