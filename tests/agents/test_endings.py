"""However a run ends, its last word is a result and none of its processes is left."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from tests.agents.lab import DONE, Ended, Lab, shell
from tests.agents.processes import everyone, wait_until

from remuda.core.errors import EXIT_INTERRUPTED, EXIT_TIMEOUT, ErrorKind
from remuda.rehearsal.scenario import Step

HANG = Step(hang=True)
SLEEP = shell("sh -c 'setsid nohup sleep 300 >/dev/null 2>&1 & sleep 300'")
"""One sleeper in the tool call's own group, and one that left it."""


def sleepers(lab: Lab) -> int:
    return sum(process.argv == b"sleep\x00300\x00" for process in lab.processes())


def sessions(lab: Lab) -> set[int]:
    """The process sessions that the run uses: the agent's, the reaper's, those of detached tools."""
    return {process.session for process in lab.processes()} - {os.getsid(0)}


def await_work(lab: Lab, step: Step) -> set[int]:
    """Wait until the agent is in the middle of it; the answer is the sessions it uses."""
    ready = (lambda: len(lab.prompts()) > 0) if step is HANG else (lambda: sleepers(lab) == 2)
    assert wait_until(ready, lab.within(15))
    return sessions(lab)


def check_gone(lab: Lab, used: set[int]) -> None:
    """Nothing is left, neither by its environment nor in the sessions that were used."""
    assert lab.processes() == []
    assert [process for process in everyone() if process.session in used] == []


def check_cut_short(ended: Ended, kind: ErrorKind, code: int) -> None:
    assert ended.code == code, ended.stderr
    assert ended.result.error is not None
    assert ended.result.error.kind == kind
    assert ended.stderr == ""


@pytest.mark.parametrize("limit", ["--timeout", "--idle-timeout"])
def test_a_hanging_model_is_timed_out(lab: Lab, limit: str) -> None:
    lab.play(HANG)
    with lab.running("Hello.", limit, "3") as process:
        wait_until(lambda: len(sessions(lab)) > 1 or process.poll() is not None, 15)
        used = sessions(lab)
        ended = lab.finish(process)
    check_gone(lab, used)
    check_cut_short(ended, "timeout", EXIT_TIMEOUT)


def test_a_sleeping_tool_is_timed_out(shell_lab: Lab) -> None:
    lab = shell_lab
    lab.play(SLEEP, DONE)
    limit = min(lab.within(5), 26.0)  # OpenClaw itself gives up a tool that takes longer
    with lab.running("Hello.", "--timeout", str(limit), *lab.bypass) as process:
        used = await_work(lab, SLEEP)
        ended = lab.finish(process)
    check_gone(lab, used)
    check_cut_short(ended, "timeout", EXIT_TIMEOUT)


def interrupt(lab: Lab, step: Step) -> None:
    lab.play(step, DONE)
    with lab.running("Hello.", *lab.bypass) as process:
        used = await_work(lab, step)
        process.send_signal(signal.SIGINT)
        ended = lab.finish(process)
    check_gone(lab, used)
    check_cut_short(ended, "cancelled", EXIT_INTERRUPTED)
    assert ended.result.stop_reason == "cancelled"
    assert ended.seconds < 5


def test_an_interrupt_ends_everything_while_the_model_hangs(lab: Lab) -> None:
    interrupt(lab, HANG)


def test_an_interrupt_ends_everything_while_tools_sleep(shell_lab: Lab) -> None:
    interrupt(shell_lab, SLEEP)


def kill(lab: Lab, step: Step) -> None:
    lab.play(step, DONE)
    with lab.running("Hello.", *lab.bypass) as process:
        used = await_work(lab, step)
        process.kill()
        assert wait_until(lambda: not lab.processes(), 60)
    check_gone(lab, used)


def test_killing_remuda_ends_everything_while_the_model_hangs(lab: Lab) -> None:
    kill(lab, HANG)


def test_killing_remuda_ends_everything_while_tools_sleep(shell_lab: Lab) -> None:
    kill(shell_lab, SLEEP)


def test_a_turn_that_ends_by_itself_leaves_nothing(shell_lab: Lab) -> None:
    shell_lab.play(shell("sh -c 'setsid nohup sleep 300 >/dev/null 2>&1 &'"), DONE)
    ended = shell_lab.run("Hello.", *shell_lab.bypass)
    assert ended.code == 0 or not shell_lab.runtime.conduct.leftovers, ended.stderr
    assert shell_lab.processes() == []


def test_a_reader_that_goes_away_ends_the_run(shell_lab: Lab) -> None:
    """As in ``remuda run … | head -1``."""
    lab = shell_lab
    lab.play(shell("sleep 1"), shell("sleep 1"), shell("sleep 1"), DONE)
    with subprocess.Popen(
        lab.command(*lab.bypass), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=lab.cwd, env=lab.env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello.")
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        process.wait(lab.within(15))
    assert lab.processes() == []
