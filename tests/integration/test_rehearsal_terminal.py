"""The rehearsal agent's terminal interface, and a host that gives it several prompts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import Terminal, eventually

from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer

ARGV = [sys.executable, "-I", "-m", "remuda.rehearsal.agent"]
READY, WORKING = "ready · enter", "working · esc to interrupt"
SLEEPS = Step(tool="shell", input={"command": "touch started; sleep 300"})
TRICKY = "a\tb\r\nc\x01\x03\x04 漢字 🐎 \x7f 'q' $(id)\n\n  end \n"


@pytest.fixture
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer(Scenario("test", (Rule((Step(text="All done."),)),))) as server:
        yield server


def play(server: RehearsalServer, *steps: Step) -> None:
    server.set_scenario(Scenario("test", (Rule(steps),)))


def environ(server: RehearsalServer, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "REHEARSAL_HOME": str(home / "state"),
        "REHEARSAL_BASE_URL": server.url,
    }


def on_terminal(server: RehearsalServer, folder: Path, *arguments: str, **env: str) -> Terminal:
    return Terminal([*ARGV, "--session-id", "s", *arguments], folder, {**environ(server, folder), **env})


def prompts(folder: Path) -> list[str]:
    path = folder / "state" / "sessions" / "s.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    entries = [json.loads(line) for line in lines]
    return [entry["content"][-1].get("text", "") for entry in entries if entry["role"] == "user"]


def sleeping(folder: Path) -> bool:
    """Whether a command that was started in the folder still runs."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            sleeps = b"sleep\x00300" in (entry / "cmdline").read_bytes()
            if sleeps and (entry / "cwd").readlink() == folder:
                return True
    return False


@pytest.mark.parametrize("size", [1, 1024, 64 * 1024, 200 * 1024])
def test_a_pasted_text_arrives_byte_for_byte(server: RehearsalServer, tmp_path: Path, size: int) -> None:
    text = (TRICKY * (size // len(TRICKY) + 1))[:size].strip() + "."
    with on_terminal(server, tmp_path) as terminal:
        terminal.expect(READY)
        terminal.type(f"\033[200~{text}\033[201~\r")
        terminal.expect("All done.")
        assert text in [heard.prompt for heard in server.heard()]
        assert prompts(tmp_path) == [text]


def test_a_prompt_is_on_record_before_it_is_answered(server: RehearsalServer, tmp_path: Path) -> None:
    play(server, Step(hang=True))
    with on_terminal(server, tmp_path) as terminal:
        terminal.expect(READY)
        terminal.type("hello\r")
        terminal.expect(WORKING)
        eventually(lambda: prompts(tmp_path) == ["hello"])


def test_escape_ends_the_turn_and_its_command(server: RehearsalServer, tmp_path: Path) -> None:
    play(server, SLEEPS, Step(text="Never."))
    with on_terminal(server, tmp_path, "--permission-mode", "bypass") as terminal:
        terminal.expect(READY)
        terminal.type("go\r")
        eventually((tmp_path / "started").exists)
        terminal.type("\033")
        terminal.expect("Interrupted.")
        terminal.expect(READY)
        eventually(lambda: not sleeping(tmp_path))
        play(server, Step(text="Fine."))
        terminal.type("\033")
        terminal.type("again\r")
        terminal.expect("Fine.")
        terminal.expect(READY)
        terminal.type("/exit\r")
        assert terminal.end() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_nothing_is_left_when_the_terminal_goes(
    server: RehearsalServer, tmp_path: Path, number: signal.Signals
) -> None:
    play(server, SLEEPS)
    with on_terminal(server, tmp_path, "--permission-mode", "bypass") as terminal:
        terminal.expect(READY)
        terminal.type("go\r")
        eventually((tmp_path / "started").exists)
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    eventually(lambda: not sleeping(tmp_path))


@pytest.mark.parametrize(("key", "answer"), [("n", "did not allow"), ("y", "touched"), ("\033", "did not")])
def test_a_tool_asks_and_takes_one_key(
    server: RehearsalServer, tmp_path: Path, key: str, answer: str
) -> None:
    play(server, Step(tool="shell", input={"command": "echo touched"}), Step(text="Said: {tool_result}"))
    with on_terminal(server, tmp_path) as terminal:
        terminal.expect(READY)
        terminal.type("go\r")
        terminal.expect("y to allow · n to refuse")
        terminal.type(key)
        terminal.expect(answer)
        terminal.expect(READY)


def test_keys_from_before_a_question_do_not_answer_it(server: RehearsalServer, tmp_path: Path) -> None:
    play(server, Step(tool="shell", input={"command": "touch ran"}, delay=1), Step(text="Over."))
    with on_terminal(server, tmp_path) as terminal:
        terminal.expect(READY)
        terminal.type("go\r")
        terminal.expect(WORKING)
        terminal.type("yes please")
        terminal.expect("y to allow · n to refuse")
        terminal.type("n")
        terminal.expect("Over.")
        terminal.expect("yes please")
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("key", "code"), [("y", 0), ("n", 1)])
def test_a_folder_is_trusted_only_when_told(
    server: RehearsalServer, tmp_path: Path, key: str, code: int
) -> None:
    with on_terminal(server, tmp_path, REHEARSAL_DIALOG="trust") as terminal:
        terminal.expect("y to trust this folder · n to leave")
        assert READY not in terminal.shown
        terminal.type(key)
        if code == 0:
            terminal.expect(READY)
            terminal.type("/exit\r")
        assert terminal.end() == code


def user(text: str, **more: str) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}, **more}).encode() + b"\n"


INTERRUPT = b'{"type":"control_request","request_id":"i1","request":{"subtype":"interrupt"}}\n'


class Conversation:
    """A host and the agent it talks to."""

    def __init__(self, server: RehearsalServer, folder: Path) -> None:
        formats = ("--input-format", "stream-json", "--output-format", "stream-json")
        self.agent = subprocess.Popen(
            [*ARGV, "-p", *formats, "--replay-user-messages", "--permission-mode", "bypass"],
            cwd=folder,
            env=environ(server, folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def say(self, line: bytes) -> None:
        assert self.agent.stdin is not None
        self.agent.stdin.write(line)
        self.agent.stdin.flush()

    def hear(self, kind: str) -> dict[str, object]:
        assert self.agent.stdout is not None
        for line in self.agent.stdout:
            heard: dict[str, object] = json.loads(line)
            if heard["type"] == kind:
                return heard
        pytest.fail(f"no {kind} came")

    def close(self) -> int:
        assert self.agent.stdin is not None
        self.agent.stdin.close()
        return self.agent.wait(60)


@pytest.fixture
def conversation(server: RehearsalServer, tmp_path: Path) -> Iterator[Conversation]:
    talk = Conversation(server, tmp_path)
    with talk.agent:
        yield talk
        talk.agent.kill()


def test_a_host_gives_one_prompt_after_the_other(conversation: Conversation, server: RehearsalServer) -> None:
    for number in ("one", "two", "three"):
        conversation.say(user(number, uuid=f"u-{number}"))
        replayed = conversation.hear("user")
        assert (replayed["isReplay"], replayed["uuid"]) == (True, f"u-{number}")
        assert conversation.hear("result")["text"] == "All done."
    assert [heard.prompt for heard in server.heard()] == ["one", "two", "three"]
    assert conversation.close() == 0


def test_a_host_interrupts_a_turn_and_goes_on(
    conversation: Conversation, server: RehearsalServer, tmp_path: Path
) -> None:
    play(server, SLEEPS)
    conversation.say(user("go"))
    eventually((tmp_path / "started").exists)
    conversation.say(INTERRUPT)
    response = conversation.hear("control_response")["response"]
    assert response == {"subtype": "success", "request_id": "i1", "response": {}}
    ended = conversation.hear("result")
    assert (ended["stop_reason"], ended["error"]) == ("interrupted", None)
    eventually(lambda: not sleeping(tmp_path))
    play(server, Step(text="Fine."))
    conversation.say(user("again"))
    assert conversation.hear("result")["text"] == "Fine."
    conversation.say(INTERRUPT)
    assert conversation.hear("control_response")["response"] == response
    assert conversation.close() == 0


def test_a_host_that_sends_all_at_once_and_leaves_is_answered(
    conversation: Conversation, server: RehearsalServer
) -> None:
    conversation.say(user("one") + user("two"))
    assert conversation.close() == 0
    assert [heard.prompt for heard in server.heard()] == ["one", "two"]
