"""Child processes: their own group, no deadlock, and nothing left when the block is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest
from tests.support import alive, carrying, eventually, python, read_pid

from remuda.core import children, reaper
from remuda.core.children import Child, ask, running
from remuda.core.errors import StartError
from remuda.core.processes import Command

ENV = {"PATH": os.environ["PATH"]}
SECRET = "the prompt nobody may see"


def program(code: str, *arguments: str, stdin: bytes | None = None) -> Command:
    """A Python program as a command."""
    argv = (sys.executable, "-I", "-S", "-c", textwrap.dedent(code), *arguments)
    return Command(argv=argv, env=ENV, cwd=Path("/"), stdin=stdin)


def shell(code: str, *arguments: str) -> Command:
    """A shell program as a command; its arguments are $1, $2 …"""
    return Command(argv=("/bin/sh", "-c", code, "sh", *arguments), env=ENV, cwd=Path("/"))


async def said(child: Child) -> bytes | None:
    """The next line of stdout."""
    while (line := await child.line()) is not None:
        if line.stream == "stdout":
            return line.data
    return None


async def output(child: Child) -> list[bytes]:
    lines = []
    while (line := await said(child)) is not None:
        lines.append(line)
    return lines


async def gone(*pids: int) -> None:
    """Nothing of this is alive the moment the block has been left."""
    assert [pid for pid in pids if alive(pid)] == []


async def test_a_child_leads_its_own_group_and_session(tmp_path: Path) -> None:
    async with running(program("import os; print(os.getpid(), os.getpgid(0), os.getsid(0))")) as child:
        [line] = await output(child)
        assert await child.wait() == 0
    assert line.split() == [str(child.pid).encode()] * 3


async def test_five_megabytes_each_way_at_once_do_not_deadlock() -> None:
    code = """
        import os, sys
        sys.stdout.buffer.write(b"x" * 5_000_000 + b"\\n")
        sys.stdout.buffer.flush()
        print(len(sys.stdin.buffer.read()))
    """
    async with asyncio.timeout(60), running(program(code, stdin=b"y" * 5_000_000)) as child:
        lines = await output(child)
        assert await child.wait() == 0
    assert [len(lines[0]), lines[1]] == [5_000_000, b"5000000"]


async def test_a_child_that_does_not_read_its_input_is_no_error() -> None:
    code = "import os; os.close(0); print('done')"
    async with running(program(code, stdin=b"y" * 5_000_000)) as child:
        assert await output(child) == [b"done"]
        assert await child.wait() == 0


async def test_without_input_stdin_is_at_its_end() -> None:
    async with running(program("import sys; print(repr(sys.stdin.read()))")) as child:
        assert await output(child) == [b"''"]


async def test_stderr_is_drained_and_its_tail_kept() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000 + '\\nlast words\\n'); print('done')"
    async with running(program(code)) as child:
        assert await output(child) == [b"done"]
        await child.wait()
        assert child.stderr_tail.endswith("\nlast words")
        assert len(child.stderr_tail) <= children.STDERR_TAIL


async def test_last_words_that_come_after_the_end_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LINGER", 30.0)
    async with running(shell("(sleep 0.3; echo last words >&2) & exec >&-; exit 3")) as child:
        assert await output(child) == []
        assert await child.wait() == 3
        assert child.stderr_tail == "last words"


async def test_both_streams_are_heard_and_told_apart() -> None:
    async with running(shell("echo out; echo err >&2; sleep 0.2; echo end")) as child:
        lines = []
        while (line := await child.line()) is not None:
            lines.append((line.stream, line.data))
    assert sorted(lines) == [("stderr", b"err"), ("stdout", b"end"), ("stdout", b"out")]


async def test_a_noisy_stderr_holds_no_answer_up() -> None:
    code = "import sys\nfor number in range(50_000): print(number, file=sys.stderr)\nprint('done')"
    async with asyncio.timeout(60), running(program(code)) as child:
        assert await child.wait() == 0
        assert await output(child) == [b"done"]


async def test_a_conversation() -> None:
    code = "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)\nprint('over')"
    command = program(code)
    async with asyncio.timeout(60), running(msgspec.structs.replace(command, converses=True)) as child:
        child.answer(lambda: b"one\n")
        assert await said(child) == b"heard one"
        child.answer(lambda: b"")
        child.answer(lambda: b"two\n")
        assert await said(child) == b"heard two"
        child.answer(lambda: None)
        assert await output(child) == [b"over"]
        child.answer(lambda: b"too late\n")
        assert await child.wait() == 0


async def test_a_slow_reader_loses_no_line() -> None:
    code = "for number in range(20_000): print(number)"
    async with running(program(code)) as child:
        await asyncio.sleep(children.LINGER + 0.5)
        assert await output(child) == [str(number).encode() for number in range(20_000)]


async def test_an_over_long_line_is_dropped_and_the_next_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children.Lines.__init__, "__defaults__", (1000,))
    async with running(program("print('a'); print('x' * 5000); print('b')")) as child:
        assert await output(child) == [b"a", b"b"]


async def test_a_child_that_ignores_term_is_killed() -> None:
    code = """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", flush=True)
        signal.pause()
    """
    async with running(program(code)) as child:
        assert await said(child) == b"up"
        started = time.monotonic()
        await child.stop(grace=0.3)
        assert 0.3 <= time.monotonic() - started < 30
        assert await child.wait() == -signal.SIGKILL
    await gone(child.pid)


async def test_a_child_may_use_its_grace_to_clean_up(tmp_path: Path) -> None:
    code = """
        import pathlib, signal, sys
        def end(*_):
            pathlib.Path(sys.argv[1]).write_text("clean")
            sys.exit(7)
        signal.signal(signal.SIGTERM, end)
        print("up", flush=True)
        signal.pause()
    """
    async with running(program(code, str(tmp_path / "note"))) as child:
        assert await said(child) == b"up"
    assert (tmp_path / "note").read_text() == "clean"
    assert await child.wait() == 7


ESCAPES = {
    "background": "sleep 300 & echo $! > $1; wait",
    "group": "sleep 300 > /dev/null 2>&1 & echo $! > $1",
    "session": "setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1 & wait",
    "session holding the output": "setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1 &",
    "double fork": "(setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1 > /dev/null 2>&1 &)",
    "cleared environment": "env -i sleep 300 & echo $! > $1; wait",
    "cleared and ignoring term": "(trap '' TERM; exec env -i sleep 300) & echo $! > $1; wait",
    "ignoring term": "trap '' TERM; setsid sleep 300 & echo $! > $1; wait",
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
async def test_what_a_child_starts_is_gone_with_it(tmp_path: Path, escape: str) -> None:
    note = tmp_path / "pid"
    async with running(shell(escape, str(note))) as child:
        pid = await asyncio.to_thread(read_pid, note)
        assert alive(pid)
    await gone(child.pid, pid)


async def test_output_held_open_by_what_was_left_behind_still_ends(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with asyncio.timeout(60), running(shell("echo out; sleep 300 & echo $! > $1", str(note))) as child:
        assert await output(child) == [b"out"]
        assert await child.wait() == 0
        await gone(read_pid(note))


async def test_a_process_out_of_reach_that_holds_the_output_does_not_hold_us(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "env -i setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1 & wait"
    async with asyncio.timeout(60):
        async with running(shell(code, str(note))) as child:
            pid = await asyncio.to_thread(read_pid, note)
        await gone(child.pid)
    os.kill(pid, signal.SIGKILL)


async def test_a_cancelled_block_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    async def work() -> None:
        async with running(
            shell("setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1; wait", str(note))
        ) as child:
            await child.wait()

    task = asyncio.create_task(work())
    pid = await asyncio.to_thread(read_pid, note)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pid)


async def test_a_block_cancelled_while_it_cleans_up_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "trap '' TERM; sleep 300 & echo $! > $1; while :; do wait; done"

    async def work() -> None:
        async with running(shell(code, str(note))) as child:
            await child.wait()

    task = asyncio.create_task(work())
    pid = await asyncio.to_thread(read_pid, note)
    task.cancel()
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pid)


VICTIM = """
import asyncio, sys
from pathlib import Path
from remuda.core.children import running
from remuda.core.processes import Command
async def main():
    command = Command(argv=("/bin/sh", "-c", sys.argv[1], "sh", *sys.argv[2:]), env={}, cwd=Path("/"))
    async with running(command) as child:
        print(child.pid, flush=True)
        await child.wait()
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "escape",
    [
        "sleep 300 & echo $! > $1; wait",
        "trap '' TERM; sleep 300 & echo $! > $1; wait",
        "setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1 & wait",
        "env -i sleep 300 & echo $! > $1; wait",
    ],
    ids=["background", "ignoring term", "session", "cleared environment"],
)
def test_killing_us_outright_leaves_nothing(tmp_path: Path, escape: str) -> None:
    note = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, escape, str(note)],
        stdout=subprocess.PIPE,
        text=True,
        env={**ENV, "VICTIM": str(note)},
    ) as victim:
        assert victim.stdout is not None
        child = int(victim.stdout.readline())
        pid = read_pid(note)
        assert alive(pid)
        victim.kill()
        eventually(lambda: not alive(child) and not alive(pid))
    eventually(lambda: not carrying(f"VICTIM={note}"))


def test_killing_us_before_the_child_runs_leaves_no_reaper() -> None:
    code = "import os, signal; from remuda.core.processes import Reaper; Reaper('x'); os.kill(os.getpid(), 9)"
    env = {**ENV, "VICTIM": "early"}
    subprocess.run([sys.executable, "-c", code], env=env)
    eventually(lambda: not carrying("VICTIM=early"))


async def test_a_run_inside_a_run_is_swept_by_the_outer_one(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    inner = "setsid sh -c 'echo $$ > $1; exec sleep 300' sh $1; wait"
    command = Command(
        argv=(sys.executable, "-c", VICTIM, inner, str(note)), env={**ENV, "NESTED": str(note)}, cwd=Path("/")
    )
    async with running(command) as child:
        line = await said(child)
        assert line is not None
        pid = await asyncio.to_thread(read_pid, note)
        entry = next(
            entry
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if entry.startswith(b"REMUDA_MARK=")
        )
        assert entry.count(b"/") == 1
        os.kill(child.pid, signal.SIGKILL)
    await gone(int(line), pid)
    assert carrying(f"NESTED={note}") == []


def test_a_process_is_known_while_it_becomes_another_program(tmp_path: Path) -> None:
    """For a moment it has no environment, by which it would be known."""
    again = tmp_path / "again"
    again.write_text('#!/bin/sh\nexec "$0"\n')
    again.chmod(0o700)
    process = subprocess.Popen([again], env={reaper.MARK: "restless"})
    try:
        assert all(process.pid in reaper.marked("restless") for _ in range(300))
    finally:
        process.kill()
        process.wait()
    assert reaper.marked("restless") == []


async def test_runs_side_by_side_do_not_sweep_each_other() -> None:
    async with running(shell("exec sleep 300")) as one:
        async with running(shell("exec sleep 300")) as two:
            assert alive(one.pid)
        await gone(two.pid)
        assert alive(one.pid)
    await gone(one.pid)


async def test_a_question_is_answered() -> None:
    answer = await ask(shell("echo one; echo two; echo no >&2; exit 3"), 10)
    assert answer is not None
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, "one\ntwo", "no")


async def test_a_question_that_takes_too_long_is_dropped(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    started = time.monotonic()
    assert await ask(shell("sleep 300 & echo $! > $1; wait", str(note)), 0.5) is None
    assert time.monotonic() - started < 30
    await gone(read_pid(note))


async def test_an_answer_with_a_process_left_behind_is_an_answer(tmp_path: Path) -> None:
    answer = await ask(shell("echo 1.2.3; sleep 300 &"), 10)
    assert answer is not None
    assert answer.stdout == "1.2.3"


def _broken(tmp_path: Path) -> dict[str, tuple[str, ...]]:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    strange = tmp_path / "strange"
    strange.write_bytes(b"\x7fELF rubbish")
    strange.chmod(0o755)
    return {
        "missing": (str(tmp_path / "missing"), SECRET),
        "not executable": (str(plain), SECRET),
        "no program": (str(strange), SECRET),
        "NUL": ("/bin/echo", f"{SECRET}\0"),
        "too long": ("/bin/echo", SECRET * 10_000),
        "folder": (str(tmp_path), SECRET),
    }


@pytest.mark.parametrize("case", ["missing", "not executable", "no program", "NUL", "too long", "folder"])
async def test_what_cannot_start_says_so_without_its_arguments(tmp_path: Path, case: str) -> None:
    argv = _broken(tmp_path)[case]
    with pytest.raises(StartError) as caught:
        async with running(Command(argv=argv, env=ENV, cwd=Path("/"))):
            pass
    assert caught.value.exit_code == 6
    assert argv[0] in caught.value.message
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_working_folder_that_is_gone_is_a_start_error(tmp_path: Path) -> None:
    with pytest.raises(StartError):
        async with running(Command(argv=("/bin/true",), env=ENV, cwd=tmp_path / "gone")):
            pass


def test_no_descriptor_and_no_reaper_is_left_over() -> None:
    code = """
import asyncio, os
from pathlib import Path
from remuda.core.children import running
from remuda.core.processes import Command
async def one():
    async with running(Command(argv=("/bin/true",), env={}, cwd=Path("/"))) as child:
        await child.wait()
asyncio.run(one())
before = len(os.listdir("/proc/self/fd"))
for _ in range(3):
    asyncio.run(one())
print(len(os.listdir("/proc/self/fd")) - before)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
    assert python(code, env=ENV).splitlines() == ["0", "no child"]
