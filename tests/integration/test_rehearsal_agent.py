"""The rehearsal agent as a real process against the scripted model server."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import remuda
from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer

ARGV = [sys.executable, "-m", "remuda.rehearsal.agent"]
MARK = "REHEARSAL_TEST_MARK"
TRICKY = '- it\'s "quoted" $(id) `id` \\n\n\ttab \r\n /slash @file !bang 漢字 🐎 \x01 '


def command(text: str) -> Step:
    return Step(tool="shell", input={"command": text})


def script(*steps: Step) -> Scenario:
    return Scenario("test", (Rule(steps),))


DONE = Step(text="Done: {tool_result}")
WRITES_FILE = script(command("echo hi > f.txt"), DONE)


class Lab:
    """A folder, a home and a scripted model for the agent."""

    def __init__(self, folder: Path, server: RehearsalServer) -> None:
        self.cwd = folder / "work"
        self.home = folder / "home"
        self.cwd.mkdir()
        self.home.mkdir()
        self.server = server
        self.mark = uuid.uuid4().hex
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(Path(remuda.__file__).parents[1]),
            "REHEARSAL_HOME": str(self.home),
            "REHEARSAL_BASE_URL": server.url,
            "REHEARSAL_API_KEY": "not-a-real-key",
            MARK: self.mark,
        }

    def play(self, *steps: Step) -> None:
        self.server.set_scenario(script(*steps))

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*ARGV, *arguments],
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*ARGV, *arguments], cwd=self.cwd, env=self.env, input=stdin, capture_output=True, timeout=60
        )

    def lines(self, *arguments: str, mode: str = "bypass") -> list[dict[str, object]]:
        ended = self.run("-p", "--output-format", "stream-json", "--permission-mode", mode, *arguments)
        assert b"Traceback" not in ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def hook(self, body: str, event: str = "PreToolUse", matcher: str = "Bash", timeout: float = 10) -> Path:
        """A settings file with one hook that is a real script."""
        name = uuid.uuid4().hex
        program = self.home / f"{name}.sh"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        settings = self.home / f"{name}.json"
        hook = {"type": "command", "command": str(program), "timeout": timeout}
        settings.write_text(json.dumps({"hooks": {event: [{"matcher": matcher, "hooks": [hook]}]}}))
        return settings

    def left(self) -> list[int]:
        """The living processes that were started from here."""
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with RehearsalServer(WRITES_FILE, port=0) as server:
        yield Lab(tmp_path, server)


def eventually(check: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def sized(size: int) -> str:
    """A prompt of exactly so many bytes, with everything in it that channels stumble over."""
    body = (TRICKY * (size // len(TRICKY.encode()) + 1)).encode()[: size - 8].decode("utf-8", "ignore")
    return body + "x" * (size - len(body.encode()) - 1) + "\n"


@pytest.mark.parametrize(
    ("channel", "size"),
    [("argv", 64), ("stdin", 64), ("stdin", 200), ("file", 64), ("file", 200)],
)
def test_prompt_arrives_byte_for_byte(lab: Lab, channel: str, size: int) -> None:
    lab.play(Step(text="Heard {prompt_bytes} bytes."))
    prompt = sized(size * 1024)
    path = lab.home / "prompt"
    path.write_bytes(prompt.encode())
    arguments = {"argv": ["--", prompt], "stdin": [], "file": ["--prompt-file", str(path)]}[channel]
    ended = lab.run("-p", *arguments, stdin=prompt.encode() if channel == "stdin" else b"not this")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"Heard %d bytes.\n" % (size * 1024), b"")
    assert [heard.prompt for heard in lab.server.heard()] == [prompt]


@pytest.mark.parametrize("prompt", ["-x", "--help", "--", "/exit", "@file", "a\0b"])
def test_prompt_is_never_read_as_anything_else(lab: Lab, prompt: str) -> None:
    lab.play(Step(text="ok"))
    if "\0" in prompt:
        assert lab.run("-p", "--model", "m", stdin=prompt.encode()).returncode == 0
    else:
        assert lab.run("-p", "--model", "m", "--", prompt).returncode == 0
    assert [(heard.prompt, heard.model) for heard in lab.server.heard()] == [(prompt, "m")]


@pytest.mark.parametrize(
    "arguments", [["-p"], ["-p", ""], ["-p", "--prompt-file", "/dev/null"], ["-p", " \n"]]
)
def test_empty_prompt_fails_before_the_model_is_asked(lab: Lab, arguments: list[str]) -> None:
    ended = lab.run(*arguments)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"the prompt is empty" in ended.stderr
    assert lab.server.heard() == ()


def test_prompt_that_is_not_text_fails_without_showing_it(lab: Lab) -> None:
    ended = lab.run("-p", stdin=b"secret \xff")
    assert ended.returncode == 1
    assert ended.stderr == b"rehearsal: the prompt on stdin is not UTF-8 text\n"


def test_stdin_left_open_is_not_waited_for_when_the_prompt_is_given(lab: Lab) -> None:
    reader, writer = os.pipe()
    try:
        ended = subprocess.run(
            [*ARGV, "-p", "hi"], cwd=lab.cwd, env=lab.env, stdin=reader, capture_output=True, timeout=30
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert ended.returncode == 0


def test_tool_turn_streams_typed_lines_and_sums_the_usage(lab: Lab) -> None:
    lab.play(msgspec.structs.replace(command("echo hi > f.txt; cat f.txt"), thought="Hm."), DONE)
    lines = lab.lines("--model", "m1", "--session-id", "s1", "go")
    session, result = lines[0], lines[-1]
    assert session == {
        "type": "session",
        "session_id": "s1",
        "model": "m1",
        "cwd": str(lab.cwd),
        "tools": ["Bash", "Read", "Write"],
    }
    kinds = [line["type"] for line in lines]
    assert list(dict.fromkeys(kinds)) == ["session", "thought", "tool_call", "tool_result", "text", "result"]
    call, outcome = lines[kinds.index("tool_call")], lines[kinds.index("tool_result")]
    assert (call["name"], call["input"]["command"]) == ("Bash", "echo hi > f.txt; cat f.txt")  # type: ignore[index]
    assert outcome == {"type": "tool_result", "id": call["id"], "status": "completed", "output": "hi\n"}
    assert result == {
        "type": "result",
        "session_id": "s1",
        "model": "m1",
        "text": "Done: hi\n",
        "usage": {
            "input_tokens": 222,
            "output_tokens": 44,
            "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 14,
        },
        "stop_reason": "end_turn",
        "error": None,
    }
    assert "".join(str(line["text"]) for line in lines if line["type"] == "text") == result["text"]
    assert (lab.cwd / "f.txt").read_text() == "hi\n"
    assert {heard.authorised for heard in lab.server.heard()} == {True}


def outcomes(lines: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(line["status"], line["output"]) for line in lines if line["type"] == "tool_result"]


def test_write_and_read_tools(lab: Lab) -> None:
    lab.play(
        Step(tool="Write", input={"file_path": "a/b.txt", "content": "漢\n"}),
        Step(tool="Read", input={"file_path": "a/b.txt"}),
        Step(tool="Read", input={"file_path": "none"}),
        Step(tool="Read", input={"wrong": 1}),
        Step(tool="Fly"),
        DONE,
    )
    wrote, read, missing, wrong, unknown = outcomes(lab.lines("go"))
    assert wrote == ("completed", "Wrote 4 bytes to a/b.txt")
    assert read == ("completed", "漢\n")
    assert missing == ("failed", "No such file or directory")
    assert wrong[0] == "failed"
    assert unknown[0] == "refused"


def test_failed_command_says_its_exit_code_and_large_output_is_cut(lab: Lab) -> None:
    lab.play(command("echo no >&2; exit 3"), command("yes | head -c 5000000"), DONE)
    failed, large = outcomes(lab.lines("go"))
    assert failed == ("failed", "Exit code 3\nno\n")
    assert large[0] == "completed"
    assert len(str(large[1])) < 31_000


def test_command_does_not_see_the_key_and_leaves_nothing_in_the_background(lab: Lab) -> None:
    lab.play(command('sleep 300 & echo "key: $REHEARSAL_API_KEY"'), DONE)
    assert outcomes(lab.lines("go")) == [("completed", "key: \n")]
    assert eventually(lambda: lab.left() == [])


def test_default_mode_refuses_what_nobody_approves(lab: Lab) -> None:
    lab.play(
        command("echo hi > f.txt"),
        Step(tool="Write", input={"file_path": "f.txt", "content": "x"}),
        Step(tool="Read", input={"file_path": "/dev/null"}),
        DONE,
    )
    bash, write, read = outcomes(lab.lines("go", mode="default"))
    assert bash == ("refused", "Bash needs approval, and nobody is there to approve it.")
    assert write[0] == "refused"
    assert read[0] == "completed"
    assert not (lab.cwd / "f.txt").exists()


def test_read_only_mode_does_not_offer_what_writes(lab: Lab) -> None:
    lab.play(Step(tool="Bash", input={"command": "echo hi > f.txt"}), DONE)
    assert [status for status, _ in outcomes(lab.lines("go", mode="read-only"))] == ["refused"]
    assert lab.server.heard()[0].tools == ("Read",)
    assert not (lab.cwd / "f.txt").exists()


def specific(decision: str) -> str:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": "why",
    }
    return f"echo '{json.dumps({'hookSpecificOutput': output})}'"


HOOKS = {
    "exit 0, no output": ("exit 0", "runs"),
    "deny": (specific("deny"), "blocked"),
    "flat deny": ("""echo '{"permissionDecision":"deny"}'""", "runs"),
    "ask": (specific("ask"), "blocked"),
    "decision block": ("""echo '{"decision":"block","reason":"why"}'""", "blocked"),
    "block true": ("""echo '{"block":true}'""", "runs"),
    "deny and exit 1": (f"{specific('deny')}; exit 1", "blocked"),
    "exit 2": ("echo why >&2; exit 2", "blocked"),
    "exit 1": ("exit 1", "runs"),
    "exit 127": ("exit 127", "runs"),
    "garbage": ("echo '<<deny>>'", "runs"),
    "unknown decision": (specific("perhaps"), "runs"),
    "SIGKILL": ("kill -9 $$", "runs"),
    "timeout": ("sleep 60; exit 2", "runs"),
}


@pytest.mark.parametrize("behaviour", HOOKS)
def test_hook_is_obeyed_as_claude_does(lab: Lab, behaviour: str) -> None:
    body, expected = HOOKS[behaviour]
    lines = lab.lines("--settings", str(lab.hook(body, timeout=0.5 if behaviour == "timeout" else 10)), "go")
    [(status, output)] = outcomes(lines)
    assert (lab.cwd / "f.txt").exists() is (expected == "runs")
    assert status == ("completed" if expected == "runs" else "refused")
    assert expected == "runs" or "why" in str(output)
    assert lines[-1]["error"] is None
    assert lab.left() == []


def test_hook_grants_what_the_mode_would_refuse(lab: Lab) -> None:
    lab.lines("--settings", str(lab.hook(specific("allow"))), "go", mode="default")
    assert (lab.cwd / "f.txt").exists()


def test_every_hook_runs_and_a_deny_beats_an_allow(lab: Lab) -> None:
    deny, allow = lab.hook(f"touch one; {specific('deny')}"), lab.hook(f"touch two; {specific('allow')}")
    deny.rename(lab.home / "settings.json")
    (lab.cwd / ".rehearsal").mkdir()
    allow.rename(lab.cwd / ".rehearsal" / "settings.json")
    other = lab.hook("touch three", matcher="Read|Write")
    assert [status for status, _ in outcomes(lab.lines("--settings", str(other), "go"))] == ["refused"]
    assert {path.name for path in lab.cwd.iterdir()} == {".rehearsal", "one", "two"}


def test_repository_can_switch_all_hooks_off(lab: Lab) -> None:
    (lab.cwd / ".rehearsal").mkdir()
    (lab.cwd / ".rehearsal" / "settings.json").write_text('{"disableAllHooks":true}')
    lab.lines("--settings", str(lab.hook("exit 2")), "go")
    assert (lab.cwd / "f.txt").exists()


def test_invalid_settings_are_said_and_dropped(lab: Lab) -> None:
    settings = lab.hook("exit 2")
    settings.write_text(settings.read_text().replace('"timeout": 10', '"timeout": "10"'))
    ended = lab.run("-p", "--permission-mode", "bypass", "--settings", str(settings), "go")
    assert ended.returncode == 0
    assert b"not a valid settings file" in ended.stderr
    assert (lab.cwd / "f.txt").exists()
    missing = lab.run("-p", "--settings", "none.json", "go")
    assert (missing.returncode, missing.stderr) == (1, b"rehearsal: there is no settings file none.json\n")


def test_hook_payloads_have_claudes_fields(lab: Lab) -> None:
    record = lab.hook('cat >> "$CLAUDE_PROJECT_DIR/../events"')
    hooks = json.loads(record.read_text())["hooks"]["PreToolUse"]
    events = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
    for group in hooks:
        del group["matcher"]
    record.write_text(json.dumps({"hooks": dict.fromkeys(events, hooks)}))
    lab.lines("--settings", str(record), "--session-id", "s1", "go")
    seen = [json.loads(line) for line in (lab.cwd.parent / "events").read_text().splitlines()]
    assert [event["hook_event_name"] for event in seen] == events
    common = {
        "session_id": "s1",
        "transcript_path": str(lab.home / "sessions" / "s1.jsonl"),
        "cwd": str(lab.cwd),
        "permission_mode": "bypassPermissions",
    }
    assert all(event | common == event for event in seen)
    start, prompt, before, after, stop, end = seen
    assert (start["source"], prompt["prompt"], end["reason"]) == ("startup", "go", "other")
    assert (before["tool_name"], before["tool_input"]["command"]) == ("Bash", "echo hi > f.txt")
    assert before["tool_use_id"] == after["tool_use_id"]
    assert after["tool_response"] == ""
    assert (stop["stop_hook_active"], stop["last_assistant_message"]) == (False, "Done: ")


def test_hook_can_block_a_prompt(lab: Lab) -> None:
    settings = lab.hook("echo not today >&2; exit 2", "UserPromptSubmit")
    result = lab.lines("--settings", str(settings), "go")[-1]
    assert result["error"] == {"status": 0, "message": "a hook blocked the prompt: not today"}
    assert lab.server.heard() == ()


def test_hook_adds_context_and_the_prompt_stays_as_it_is(lab: Lab) -> None:
    lab.lines("--settings", str(lab.hook("echo on branch main", "UserPromptSubmit")), "go")
    heard = lab.server.heard()[0]
    assert heard.prompt == "go"
    assert "on branch main" in heard.user_texts[0]


def test_hook_can_send_the_model_back_to_work(lab: Lab) -> None:
    settings = lab.hook("test -e again && exit 0; touch again; echo test it too >&2; exit 2", "Stop")
    lab.play(Step(text="Done."))
    assert lab.lines("--settings", str(settings), "go")[-1]["error"] is None
    assert [heard.prompt for heard in lab.server.heard()] == ["go", "test it too"]


def test_resume_continues_the_same_conversation(lab: Lab) -> None:
    lab.play(Step(text="ok"))
    first = lab.lines("one")[-1]["session_id"]
    lines = lab.lines("--resume", str(first), "two")
    assert lines[0]["session_id"] == lines[-1]["session_id"] == first
    assert lab.server.heard()[-1].user_texts == ("one", "two")
    path = lab.home / "sessions" / f"{first}.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["role"] for entry in entries] == ["user", "assistant"] * 2
    assert entries[1]["usage"]["input_tokens"] == 111
    assert path.stat().st_mode & 0o777 == 0o600


def test_session_ids_that_cannot_be_used(lab: Lab) -> None:
    assert lab.run("-p", "--session-id", "s1", "go").returncode == 0
    again = lab.run("-p", "--session-id", "s1", "go")
    unknown = lab.run("-p", "--resume", "s2", "go")
    outside = lab.run("-p", "--resume", "../s1", "go")
    assert [again.returncode, unknown.returncode, outside.returncode] == [1, 1, 1]
    assert b"exists already" in again.stderr
    assert b"no session s2" in unknown.stderr


def test_system_prompt_files(lab: Lab) -> None:
    (lab.cwd / "a").write_text("Be brief.")
    (lab.cwd / "b").write_text("Be kind.")
    lab.run("-p", "--system-prompt-file", "a", "--append-system-prompt-file", "b", "go")
    assert lab.server.heard()[0].system == "Be brief.\n\nBe kind."


def test_turn_limit(lab: Lab) -> None:
    result = lab.lines("--max-turns", "1", "go")[-1]
    assert result["stop_reason"] == "max_turns"
    assert result["error"] == {"status": 0, "message": "stopped after 1 model turns"}


@pytest.mark.parametrize(("status", "asked"), [(401, 1), (429, 1), (500, 3), (529, 3)])
def test_model_error_fails_the_run(lab: Lab, status: int, asked: int) -> None:
    lab.play(Step(status=status, message="sorry"))
    lines = lab.lines("go")
    assert [line["status"] for line in lines if line["type"] == "retry"] == [status] * (asked - 1)
    assert lines[-1]["error"] == {"status": status, "message": "sorry"}
    assert len(lab.server.heard()) == asked
    ended = lab.run("-p", "go")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"", b"rehearsal: sorry\n")


def test_passing_failure_is_survived(lab: Lab) -> None:
    lab.play(Step(status=500, message="sorry", times=1), Step(text="ok"))
    lines = lab.lines("go")
    assert {"type": "retry", "status": 500, "message": "sorry", "attempt": 1} in lines
    assert (lines[-1]["text"], lines[-1]["error"]) == ("ok", None)


def test_words_are_not_said_twice_when_the_stream_is_cut(lab: Lab) -> None:
    lab.play(Step(text="This is going to be cut short.", drop=True))
    lines = lab.lines("go")
    assert [line["type"] for line in lines] == ["session", "text", "result"]
    assert lines[-1]["error"]["status"] == 0  # type: ignore[index]


def test_refused_connection(lab: Lab) -> None:
    lab.env["REHEARSAL_BASE_URL"] = "http://127.0.0.1:1"
    lines = lab.lines("go")
    assert [line["type"] for line in lines] == ["session", "retry", "retry", "result"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_a_tool_leaves_no_process(lab: Lab, number: signal.Signals) -> None:
    lab.play(command("trap '' INT TERM HUP; sleep 300 & touch started; sleep 301"), DONE)
    agent = lab.start("-p", "--permission-mode", "bypass", "--session-id", "s1", "go")
    try:
        assert eventually((lab.cwd / "started").exists)
        agent.send_signal(number)
        _, complaint = agent.communicate(timeout=60)
    finally:
        agent.kill()
    assert (agent.returncode, complaint) == (-number, b"")
    assert eventually(lambda: lab.left() == [])
    lab.play(Step(text="Back."))
    assert lab.lines("--resume", "s1", "go on")[-1]["text"] == "Back."
    entries = [json.loads(line) for line in (lab.home / "sessions" / "s1.jsonl").read_text().splitlines()]
    call, answer = entries[1]["content"][0], entries[2]["content"]
    assert [block["type"] for block in answer] == ["tool_result", "text"]
    assert answer[0]["tool_use_id"] == call["id"]


@pytest.mark.parametrize("hang", ["hook", "model"])
def test_signal_while_waiting_for_others(lab: Lab, hang: str) -> None:
    lab.play(Step(hang=True))
    body = "touch started; sleep 300" if hang == "hook" else "touch started"
    agent = lab.start("-p", "--settings", str(lab.hook(body, "UserPromptSubmit", timeout=60)), "go")
    try:
        assert eventually((lab.cwd / "started").exists)
        assert hang == "hook" or eventually(lambda: len(lab.server.heard()) == 1)
        agent.terminate()
        agent.communicate(timeout=60)
    finally:
        agent.kill()
    assert agent.returncode == -signal.SIGTERM
    assert eventually(lambda: lab.left() == [])


def test_needs_no_server(lab: Lab) -> None:
    del lab.env["REHEARSAL_BASE_URL"]
    assert lab.run("-p", "four").stdout == b"Heard 4 bytes.\n"
    lab.env["REHEARSAL_SCENARIO"] = "demo"
    assert lab.lines("go")[-1]["text"] == "I wrote hello.txt. It says: hello from the remuda\n"
    lab.env["REHEARSAL_SCENARIO"] = "nowhere.yaml"
    ended = lab.run("-p", "go")
    assert ended.returncode == 1
    assert b"nowhere.yaml" in ended.stderr


def test_version_and_help(lab: Lab) -> None:
    assert lab.run("--version").stdout.decode() == f"{remuda.__version__} (Rehearsal)\n"
    assert b"--permission-mode" in lab.run("--help").stdout


class Terminal:
    """A person's terminal with the agent in it."""

    def __init__(self, lab: Lab, *arguments: str) -> None:
        self.handle, child = pty.openpty()
        self.agent = subprocess.Popen(
            [*ARGV, *arguments],
            cwd=lab.cwd,
            env=lab.env | {"TERM": "dumb"},
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)
        self.screen = ""

    def expect(self, text: str) -> None:
        while text not in self.screen:
            self.screen += os.read(self.handle, 65536).decode()
        self.screen = self.screen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def close(self) -> None:
        self.agent.kill()
        self.agent.wait()
        os.close(self.handle)


@pytest.fixture
def open_terminal(lab: Lab) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def opener(*arguments: str) -> Terminal:
        opened.append(Terminal(lab, *arguments))
        return opened[-1]

    yield opener
    for terminal in opened:
        terminal.close()


def test_interactive_session_asks_before_a_tool_runs(
    lab: Lab, open_terminal: Callable[..., Terminal]
) -> None:
    lab.play(command("echo hi >> f.txt; echo written"), DONE)
    terminal = open_terminal("first")
    terminal.expect(f"rehearsal {remuda.__version__} ready")
    terminal.expect("Allow Bash? [y/N] ")
    terminal.type("n\n")
    terminal.expect("Done: The user did not allow Bash.")
    terminal.expect("ready · ")
    assert not (lab.cwd / "f.txt").exists()
    terminal.type("second\n")
    terminal.expect("Allow Bash? [y/N] ")
    terminal.type("y\n")
    terminal.expect("Done: written")
    terminal.expect("ready · ")
    terminal.type("/exit\n")
    assert terminal.agent.wait(60) == 0
    assert (lab.cwd / "f.txt").read_text() == "hi\n"


def test_interactive_interrupt_ends_the_turn_and_end_of_input_the_session(
    lab: Lab, open_terminal: Callable[..., Terminal]
) -> None:
    lab.play(command("touch started; sleep 300"), DONE)
    terminal = open_terminal("--permission-mode", "bypass")
    terminal.expect("ready · ")
    terminal.type("go\n")
    assert eventually((lab.cwd / "started").exists)
    terminal.agent.send_signal(signal.SIGINT)
    terminal.expect("Interrupted.")
    assert eventually(lambda: lab.left() == [terminal.agent.pid])
    lab.play(Step(text="Fine."))
    terminal.type("and now\n")
    terminal.expect("Fine.")
    terminal.expect("ready · ")
    terminal.type("\x04")
    assert terminal.agent.wait(60) == 0
