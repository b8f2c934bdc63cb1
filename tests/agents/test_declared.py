"""A program that no code knows, Qwen Code: all that Remuda has of it is a file in the user's folder."""

from __future__ import annotations

import shutil
import signal
import socket
from pathlib import Path

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, Lab, shell
from tests.agents.processes import wait_until
from tests.agents.test_errors import SOON
from tests.agents.test_fidelity import KIB, MARKER, long_prompt, seen_on_command_lines
from tests.agents.test_turns import check_stream, check_tool_call
from tests.agents.test_verify import verify

from remuda.core.errors import ErrorKind
from remuda.core.events import Usage
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step
from remuda.runtimes import declared

FILE = Path(__file__).parents[2] / "examples" / "runtimes" / "qwen.toml"


@pytest.fixture
def qwen(make_lab: MakeLab) -> Lab:
    """A home with the example in its configuration folder."""
    lab = make_lab(declared.load(FILE))
    folder = lab.home / "remuda" / "config" / "runtimes"
    folder.mkdir(parents=True)
    shutil.copy(FILE, folder)
    return lab


def test_a_long_prompt_arrives_exactly_and_in_private(qwen: Lab) -> None:
    prompt = long_prompt(200 * KIB)
    qwen.play(Step(text="Heard.", delay=1))
    with qwen.running(prompt) as process:
        assert not seen_on_command_lines(qwen)
        ended = qwen.finish(process)
    assert ended.code == 0, ended.stderr
    assert MARKER not in ended.stderr
    assert qwen.arrived(prompt)


def test_a_turn_is_told_like_anybodys(qwen: Lab) -> None:
    qwen.play(
        Step(
            tool="shell",
            input={"command": "echo written > f.txt && cat f.txt"},
            usage=exchange.Usage(1000, 50, 600),
        ),
        Step(text="It says: written", usage=exchange.Usage(1100, 30, 1000)),
    )
    ended = qwen.run("Write a file.", *qwen.bypass)
    check_stream(ended, "qwen")
    assert ended.kinds == ["tool_call", "tool_call_update", "agent_message_chunk"]
    check_tool_call(ended)
    assert ended.result.text == "It says: written"
    assert ended.result.usage == Usage(2100, 80, 1600)


def check_failure(lab: Lab, prompt: str, kind: ErrorKind) -> None:
    """Told soon, and in its own words, although Qwen Code itself would not give up for more than a minute."""
    ended = lab.run(prompt)
    assert ended.result.error is not None
    assert ended.result.error.kind == kind, ended.result.error
    assert ended.seconds < lab.within(SOON)


@pytest.mark.parametrize(("word", "kind"), [("rehearse-401", "auth"), ("rehearse-500", "model")])
def test_a_failing_model(qwen: Lab, word: str, kind: ErrorKind) -> None:
    qwen.rehearse("errors")
    check_failure(qwen, word, kind)


def test_nobody_listens(qwen: Lab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        qwen.env["REMUDA_ENDPOINT"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
        check_failure(qwen, "Hello.", "model")


def test_an_interrupt_leaves_nothing(qwen: Lab) -> None:
    qwen.play(shell("setsid nohup sleep 300 >/dev/null 2>&1 & sleep 300"))
    with qwen.running("Hello.", *qwen.bypass) as process:
        assert wait_until(lambda: sum(b"sleep" in one.argv for one in qwen.processes()) >= 2, qwen.within(15))
        process.send_signal(signal.SIGINT)
        ended = qwen.finish(process)
    assert qwen.processes() == []
    assert ended.result.stop_reason == "cancelled"


@pytest.mark.timeout(200)
def test_it_is_what_its_file_declares(qwen: Lab) -> None:
    ended, found = verify(qwen, 180)
    assert {what: one["how"] for what, one in found.items() if one["verdict"] != "holds"} == {}
    assert ended.code == 0, ended.stderr


def test_it_works_behind_walls(qwen: Lab) -> None:
    """What its file says of a sandbox is all that it needs, and its settings stay as they are."""
    planted = "echo x > ~/outside; echo x >> ~/.qwen/settings.json; echo written > f.txt"
    qwen.play(shell(planted), DONE)
    ended = qwen.run("Write a file.", *qwen.bypass, "--sandbox", "offline")
    assert ended.code == 0, ended.stderr
    assert ended.result.text == "All done."
    assert (qwen.cwd / "f.txt").read_text() == "written\n"
    assert not (qwen.home / "outside").exists()
    assert (qwen.home / ".qwen" / "settings.json").read_text() == "{}\n"
