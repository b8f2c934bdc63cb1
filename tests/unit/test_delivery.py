"""A prompt on its way: intact, in private, and gone afterwards."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remuda.core.errors import UsageError
from remuda.core.processes import Command
from remuda.prompts.delivery import check_prompt, deliver, payload, scratch_folder
from remuda.runtimes import registry
from remuda.runtimes.base import PROMPT, PROMPT_FILE, Channel, Invocation, ScratchFile

TRICKY = "-x {prompt} {prompt_file} {} %s \\ \"q\" 'a' $(id) `id`\n\t\r\n漢字 🐎 \x01"
ARGV = Channel("argv", ("--", PROMPT), "1.0")
STDIN = Channel("stdin", ("-",), "1.0")
FILE = Channel("tempfile", ("--prompt-file", PROMPT_FILE), "1.0")
COMMAND = Command(argv=("agent", "--flag"), env={}, cwd=Path("/"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "prompt", ["", " ", "\n\t \r\n", "\u2003", "a\0b", "\0", "lone \ud800 half", "\udcff"]
)
def test_prompts_that_cannot_arrive_are_refused(prompt: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_prompt(prompt)
    assert "lone" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("prompt", ["x", " x ", "/help", "!ls", "@file", "-", "--", TRICKY, "\ufeffbom"])
def test_anything_else_is_a_prompt(prompt: str) -> None:
    check_prompt(prompt)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.just(TRICKY))
def test_the_text_arrives_unchanged_through_every_channel(tmp_path: Path, text: str) -> None:
    with scratch_folder(tmp_path / "scratch") as scratch:
        by_argv = deliver(COMMAND, ARGV, text, (), scratch)
        by_stdin = deliver(COMMAND, STDIN, text, (), scratch)
        by_file = deliver(COMMAND, FILE, text, (), scratch)
        assert by_argv.argv == ("agent", "--flag", "--", text)
        assert by_argv.stdin is None
        assert by_stdin.argv == ("agent", "--flag", "-")
        assert by_stdin.stdin == text.encode()
        assert by_file.argv[:3] == ("agent", "--flag", "--prompt-file")
        assert Path(by_file.argv[3]).read_bytes() == text.encode()
        assert by_file.stdin is None


def test_a_placeholder_inside_an_argument_is_filled_once(tmp_path: Path) -> None:
    joined = Channel("argv", (f"--prompt={PROMPT}",), "1.0")
    with scratch_folder(tmp_path) as scratch:
        assert deliver(COMMAND, joined, "{prompt}{prompt_file}", (), scratch).argv[-1] == (
            "--prompt={prompt}{prompt_file}"
        )


def test_the_prompt_file_is_private_in_a_private_folder_and_gone_afterwards(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with scratch_folder(tmp_path / "scratch") as scratch:
            files = (ScratchFile("system.md", "be brief"),)
            path = Path(deliver(COMMAND, FILE, "secret", files, scratch).argv[-1])
            assert (mode(path), mode(path.parent), mode(scratch.parent)) == (0o600, 0o700, 0o700)
            assert mode(scratch / "system.md") == 0o600
            assert path.parent == scratch
    finally:
        os.umask(before)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_folder_goes_when_the_run_fails(tmp_path: Path) -> None:
    def interrupted() -> None:
        with scratch_folder(tmp_path) as scratch:
            (scratch / "prompt.md").write_text("secret")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_two_runs_of_one_process_do_not_share_a_folder(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as one, scratch_folder(tmp_path) as two:
        assert one != two
        assert one.is_dir()
        assert two.is_dir()


def test_leftovers_of_killed_runs_are_cleared_and_living_ones_kept(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from remuda.prompts.delivery import scratch_folder\n"
        "with scratch_folder(Path(sys.argv[1])) as scratch:\n"
        "    (scratch / 'prompt.md').write_text('secret')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert ended.returncode == -signal.SIGKILL
    [leftover] = tmp_path.iterdir()
    foreign = tmp_path / "somebody-else"
    living = tmp_path / f"{os.getppid()}-X"
    huge = tmp_path / f"{'9' * 40}-X"
    for folder in (foreign, living, huge):
        folder.mkdir()
    with scratch_folder(tmp_path):
        assert not leftover.exists()
        assert foreign.exists()
        assert living.exists()


def test_a_planted_file_is_never_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("old")
    with scratch_folder(tmp_path / "scratch") as scratch:
        (scratch / "prompt.md").symlink_to(victim)
        with pytest.raises(FileExistsError):
            deliver(COMMAND, FILE, "secret", (), scratch)
    assert victim.read_text() == "old"


def test_a_preamble_goes_in_front_and_traps_are_disarmed() -> None:
    claude, rehearsal = registry.get("claude"), registry.get("rehearsal")
    plain, led = Invocation(arguments=()), Invocation(arguments=(), preamble="Be brief.")
    assert payload(rehearsal, plain, "/help") == "/help"
    assert payload(rehearsal, led, "hi") == "Be brief.\n\nhi"
    assert payload(claude, plain, "/help") == " /help"
    assert payload(claude, plain, "a /help") == "a /help"
