"""``remuda run`` from the outside: prompts in, answers, events and exit codes out, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.support import PYTHON, SHELL, Ended, Site, Terminal, eventually, finish, read_pid

from remuda import __version__
from remuda.core.evidence import Evidence, store

RUN = ("run", "--agent", "rehearsal")
SECRET = "Xyzzy-the-prompt-that-nobody-else-may-see"
TRICKY = "{prompt} {prompt_file} -- \"q\" 'a' $(id) `id` \\n\n\ttab\r\n漢字 🐎 \x01 end "
PARROT = "name: parrot\nrules:\n  - steps:\n      - text: '{prompt}'\n"
FINAL = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": "done"}
CHANNELS = ("auto", "argv", "stdin", "tempfile")

LOOKS = f"""{PYTHON}
import json, os, pathlib, stat, sys
argv = sys.argv[1:]
print(json.dumps({{"type": "system", "subtype": "init", "session_id": "s"}}))
text = json.dumps({{"argv": argv, "stdin": sys.stdin.read(), "env": dict(os.environ), "cwd": os.getcwd()}})
print(json.dumps({{"type": "result", "subtype": "success", "session_id": "s", "result": text}}))
"""


def seen(ended: Ended) -> dict[str, object]:
    """What the LOOKS program saw."""
    text = ended.result["text"]
    assert isinstance(text, str)
    document = json.loads(text)
    assert isinstance(document, dict)
    return document


def scratch(site: Site) -> list[str]:
    folder = site.home / "runtime" / "scratch"
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def everything_kept(site: Site) -> bytes:
    """All that Remuda has stored, whatever the file."""
    return b"".join(path.read_bytes() for path in site.home.rglob("*") if path.is_file())


class TestPrompts:
    @pytest.mark.parametrize(
        ("argument", "stdin", "size"),
        [
            ("hello", b"", 5),
            ("-", b"from stdin\r\n", 12),
            ("@task.md", b"", 11),
            ("@@literal", b"", 8),
            ("/slash", b"", 6),
        ],
    )
    def test_every_form_arrives(self, site: Site, argument: str, stdin: bytes, size: int) -> None:
        site.write("task.md", "from a file")
        ended = site.remuda(*RUN, argument, stdin=stdin)
        assert (ended.code, ended.stdout) == (0, f"Heard {size} bytes.\n")

    @pytest.mark.parametrize(
        ("arguments", "stdin", "told"),
        [
            (["-"], b"\xff\xfe", "not valid UTF-8"),
            (["-"], b"", "empty"),
            ([" \n"], b"", "empty"),
            (["-"], b"a\0b", "NUL"),
            (["@missing.md"], b"", "missing.md"),
            (["@."], b"", "cannot read"),
            (["hi", "--env", "NOVALUE"], b"", "KEY=VALUE"),
            (["hi", "--env", "=x"], b"", "KEY=VALUE"),
            (["hi", "--system-prompt", "a", "--system-prompt-file", "b"], b"", "exclude each other"),
            (["hi", "--append-system-prompt", "a", "--append-system-prompt-file", "b"], b"", "exclude"),
            (["hi", "--system-prompt-file", "missing"], b"", "cannot read"),
            (["hi", "--timeout", "-1"], b"", "--timeout"),
            (["hi", "--capability", "king"], b"", "king"),
            (["hi", "--worktree", "."], b"", "Add --capability"),
            (["hi", "--branch-prefix", "agent/"], b"", "Add --capability"),
            (["hi", "--append-system-prompt-file", "nul.md"], b"", "NUL"),
            (["hi", "--no-such-option"], b"", "no-such-option"),
            ([], b"", "PROMPT"),
        ],
    )
    def test_wrong_usage_is_exit_code_two(
        self, site: Site, arguments: list[str], stdin: bytes, told: str
    ) -> None:
        site.write("nul.md", "a\0b")
        ended = site.remuda(*RUN, *arguments, stdin=stdin)
        assert (ended.code, ended.stdout) == (2, "")
        assert told in ended.stderr

    @pytest.mark.parametrize("channel", CHANNELS)
    def test_a_tricky_prompt_arrives_byte_for_byte(self, site: Site, channel: str) -> None:
        scenario = site.write("parrot.yaml", PARROT)
        ended = site.remuda(
            *RUN,
            "--json",
            "-",
            stdin=TRICKY.encode(),
            REHEARSAL_SCENARIO=str(scenario),
            REMUDA_PROMPT_DELIVERY=channel,
        )
        assert ended.code == 0
        assert ended.result["text"] == TRICKY
        assert scratch(site) == []

    def test_a_prompt_beyond_the_argument_limit_arrives(self, site: Site) -> None:
        prompt = ("don't $HOME " * 20_000).encode()
        assert site.remuda(*RUN, "-", stdin=prompt).stdout == f"Heard {len(prompt)} bytes.\n"
        degraded = site.remuda(*RUN, "-", stdin=prompt, REMUDA_PROMPT_DELIVERY="argv")
        assert degraded.stdout == f"Heard {len(prompt)} bytes.\n"
        assert "requested argv cannot hold a prompt this long; degrading to tempfile" in degraded.stderr


class TestDelivery:
    def test_auto_keeps_even_a_short_prompt_off_the_command_line(self, site: Site) -> None:
        site.program("claude", LOOKS)
        saw = seen(site.remuda("run", "--agent", "claude", "--json", SECRET))
        assert saw["stdin"] == SECRET
        assert SECRET not in str(saw["argv"]) + str(saw["env"])

    def test_argv_is_used_on_request(self, site: Site) -> None:
        site.program("claude", LOOKS)
        saw = seen(site.remuda("run", "--agent", "claude", "--json", SECRET, REMUDA_PROMPT_DELIVERY="ARGV"))
        assert isinstance(saw["argv"], list)
        assert saw["argv"][-2:] == ["--", SECRET]
        assert saw["stdin"] == ""

    def test_a_degradation_is_warned_about_without_the_prompt(self, site: Site) -> None:
        site.program("claude", LOOKS)
        ended = site.remuda(
            "run", "--agent", "claude", "--json", SECRET, AMPLIHACK_PROMPT_DELIVERY="tempfile"
        )
        [warning] = [json.loads(line) for line in ended.stderr.splitlines()]
        assert warning["message"] == "requested tempfile is unsupported; degrading to stdin"
        assert SECRET not in ended.stderr

    def test_an_unknown_mode_is_warned_about_without_its_value(self, site: Site) -> None:
        ended = site.remuda(*RUN, "hi", REMUDA_PROMPT_DELIVERY=SECRET)
        assert ended.code == 0
        assert f'"value": "<{len(SECRET)} bytes>"' in ended.stderr
        assert SECRET not in ended.stderr

    def test_evidence_withdraws_a_channel_on_exactly_its_version(self, site: Site) -> None:
        def seen_to_fail(version: str) -> None:
            evidence = Evidence(
                runtime="rehearsal",
                version=version,
                what="channel.stdin",
                holds=False,
                seen_at="2026-01-01T00:00:00Z",
                how="test",
            )
            store(site.home / "state" / "evidence.jsonl", evidence)

        seen_to_fail("0.0.0")
        assert site.remuda(*RUN, "hi", REMUDA_PROMPT_DELIVERY="stdin").stderr.count("degrading") == 0
        seen_to_fail(__version__)
        ended = site.remuda(*RUN, "hi", REMUDA_PROMPT_DELIVERY="stdin")
        assert ended.stdout == "Heard 2 bytes.\n"
        assert "requested stdin is unsupported; degrading to argv" in ended.stderr

    def test_the_prompt_file_lives_as_long_as_the_agent(self, site: Site) -> None:
        hang = "name: slow\nrules:\n  - steps:\n      - text: late\n        delay: 1.5\n"
        scenario = site.write("slow.yaml", hang)
        process = site.start(
            *RUN, SECRET, REMUDA_PROMPT_DELIVERY="tempfile", REHEARSAL_SCENARIO=str(scenario)
        )
        folder = site.home / "runtime" / "scratch"
        eventually(lambda: list(folder.glob("*/prompt.md")))
        [path] = folder.glob("*/prompt.md")
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        time.sleep(0.5)
        assert path.read_text() == SECRET
        assert finish(process).stdout == "late\n"
        assert scratch(site) == []


class TestOutput:
    def test_the_answer_on_stdout_and_the_talk_on_stderr(self, site: Site) -> None:
        ended = site.remuda(*RUN, "--permission", "bypass", "greet me", REHEARSAL_SCENARIO="demo")
        assert (ended.code, ended.stdout) == (0, "I wrote hello.txt. It says: hello from the remuda\n")
        assert "→ Bash printf" in ended.stderr
        assert "✓ hello from the remuda" in ended.stderr
        assert "79 out" in ended.stderr
        assert "\x1b" not in ended.stdout + ended.stderr
        assert (site.cwd / "hello.txt").read_text() == "hello from the remuda\n"

    def test_on_a_terminal_the_answer_appears_once_and_in_colour(self, site: Site) -> None:
        argv = ["remuda", *RUN, "hello"]
        with Terminal(argv, site.cwd, site.env) as terminal:
            assert terminal.end() == 0
            assert terminal.shown.count("Heard 5 bytes.") == 1
            assert "\x1b[" in terminal.shown
        with Terminal(argv, site.cwd, {**site.env, "NO_COLOR": "1"}) as terminal:
            assert terminal.end() == 0
            assert "\x1b" not in terminal.shown

    def test_json_lines_keep_their_promises(self, site: Site) -> None:
        ended = site.remuda(*RUN, "--permission", "bypass", "--json", "go", REHEARSAL_SCENARIO="demo")
        events = ended.events
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert {event["v"] for event in events} == {1}
        assert {event["agent"] for event in events} == {"rehearsal"}
        assert len({event["session"] for event in events}) == 1
        time_format = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
        assert all(time_format.fullmatch(str(event["time"])) for event in events)
        assert [("update" in event, "result" in event) for event in events] == [
            *[(True, False)] * (len(events) - 1),
            (False, True),
        ]
        kinds = {event["update"]["sessionUpdate"] for event in events[:-1]}  # type: ignore[index]
        assert kinds == {"agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"}
        result = ended.result
        assert result.keys() >= {"stop_reason", "text", "usage", "cost_usd", "exit_code", "error"}
        assert (result["stop_reason"], result["exit_code"], result["error"]) == ("end_turn", 0, None)
        assert result["usage"] == {
            "input_tokens": 2514,
            "output_tokens": 79,
            "cached_read_tokens": 1844,
            "cached_write_tokens": 128,
            "thought_tokens": 0,
        }

    def test_a_reader_that_goes_away_ends_the_run_quietly(self, site: Site) -> None:
        process = site.start(*RUN, "--json", "hello")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1
        process.stderr.close()
        assert site.processes() == []

    def test_a_refused_tool_call_is_told_with_the_way_out(self, site: Site) -> None:
        ended = site.remuda(*RUN, "go", REHEARSAL_SCENARIO="demo")
        assert "1 tool call(s) refused" in ended.stderr
        assert "--permission bypass" in ended.stderr
        assert not (site.cwd / "hello.txt").exists()


class TestFailures:
    @pytest.mark.parametrize(
        ("word", "kind", "code"),
        [
            ("rehearse-401", "auth", 6),
            ("rehearse-429", "rate_limit", 1),
            ("rehearse-quota", "quota", 1),
            ("rehearse-500", "model", 1),
            ("rehearse-drop", "model", 1),
        ],
    )
    def test_what_the_model_endpoint_does(self, site: Site, word: str, kind: str, code: int) -> None:
        site.remuda("config", "set", "run.retry_patience", "0.5")
        site.remuda("config", "set", "run.retry_patience_midway", "0.5")
        key = "sk-secret-of-the-machine"
        prompt = f"{word} {SECRET}"
        ended = site.remuda(*RUN, "--json", prompt, REHEARSAL_SCENARIO="errors", REHEARSAL_API_KEY=key)
        assert (ended.code, ended.error["kind"]) == (code, kind)
        assert ended.result["stop_reason"] == "error"
        for secret in (key, SECRET):
            assert secret not in ended.stdout + ended.stderr

    def test_trouble_that_passes_is_no_failure(self, site: Site) -> None:
        ended = site.remuda(*RUN, "rehearse-recover", REHEARSAL_SCENARIO="errors")
        assert (ended.code, ended.stdout) == (0, "Recovered after one failure.\n")

    def test_an_unknown_agent_or_folder_is_not_found(self, site: Site) -> None:
        unknown = site.remuda("run", "--agent", "nobody", "hi")
        assert unknown.code == 4
        assert "claude, codex, copilot, gemini, hermes" in unknown.stderr
        missing = site.remuda(*RUN, "--cwd", "missing", "hi")
        assert missing.code == 4
        assert "missing is not a folder" in missing.stderr

    def test_an_agent_that_is_not_installed(self, site: Site) -> None:
        ended = site.remuda("run", "--agent", "claude", "--json", SECRET)
        assert (ended.code, ended.error["kind"]) == (6, "not_installed")
        assert "npm install" in ended.error["message"]
        assert len(ended.events) == 1
        spoken = site.remuda("run", "--agent", "claude", SECRET)
        assert (spoken.code, spoken.stdout) == (6, "")
        assert "not installed" in spoken.stderr
        assert SECRET not in spoken.stderr

    @pytest.mark.parametrize(
        ("body", "kind", "code", "exit_code", "told"),
        [
            ("kill -9 $$", "crashed", 137, 137, "signal 9"),
            ("kill -SEGV $$", "crashed", 139, 139, "signal 11"),
            ("cat; echo rubbish; echo '{\"type\": 3}'", "protocol", 1, 0, "without a result"),
            ("echo bad flag >&2; exit 3", "start_failed", 6, 3, "bad flag"),
            ('echo \'{"session_id":"s"}\'; echo oops >&2; exit 255', "crashed", 1, 255, "oops"),
            ("echo 401 unauthorized >&2; exit 1", "auth", 6, 1, "unauthorized"),
        ],
        ids=["killed", "segfault", "rubbish", "no start", "failed", "not logged in"],
    )
    def test_programs_that_misbehave(
        self, site: Site, body: str, kind: str, code: int, exit_code: int, told: str
    ) -> None:
        site.program("claude", f"{SHELL}{body}\n")
        ended = site.remuda("run", "--agent", "claude", "--json", SECRET)
        assert (ended.code, ended.error["kind"]) == (code, kind)
        assert ended.result["exit_code"] == exit_code
        assert told in ended.error["message"]
        assert SECRET not in ended.stderr

    def test_a_program_that_cannot_be_started(self, site: Site) -> None:
        site.program("claude", "#!/no/such/interpreter\n")
        ended = site.remuda("run", "--agent", "claude", "--json", SECRET)
        assert (ended.code, ended.error["kind"]) == (6, "start_failed")
        assert SECRET not in ended.stdout + ended.stderr

    def test_lines_that_are_no_events_lose_none_of_the_others(self, site: Site) -> None:
        site.program(
            "claude",
            f"{SHELL}cat > /dev/null\necho '{{'\nprintf '\\377\\n[]\\n3\\n'\necho '{json.dumps(FINAL)}'\n",
        )
        ended = site.remuda("run", "--agent", "claude", "hi")
        assert (ended.code, ended.stdout) == (0, "done\n")


class TestEnding:
    @pytest.mark.parametrize(
        ("options", "word", "told"),
        [
            (("--timeout", "0.7"), "rehearse-hang", "within 0.7 s"),
            (("--idle-timeout", "0.7"), "rehearse-hang", "no output for 0.7 s"),
            (("--timeout", "0.7"), "rehearse-slow", "within 0.7 s"),
        ],
    )
    def test_time_limits(self, site: Site, options: tuple[str, ...], word: str, told: str) -> None:
        ended = site.remuda(
            *RUN, "--json", *options, word, REHEARSAL_SCENARIO="errors", REMUDA_PROMPT_DELIVERY="tempfile"
        )
        assert (ended.code, ended.error["kind"]) == (3, "timeout")
        assert told in ended.error["message"]
        assert scratch(site) == []
        assert site.processes() == []

    def test_a_busy_agent_is_not_idle(self, site: Site) -> None:
        site.program(
            "claude",
            f"{SHELL}cat > /dev/null\nfor i in 1 2 3 4 5 6 7 8; do echo working >&2; sleep 0.7; done\n"
            f"echo '{json.dumps(FINAL)}'\n",
        )
        ended = site.remuda("run", "--agent", "claude", "--idle-timeout", "4", "hi")
        assert (ended.code, ended.stdout) == (0, "done\n")

    def test_an_agent_that_closes_its_output_and_stays_is_held_to_its_time(self, site: Site) -> None:
        site.program("claude", f"{SHELL}cat > /dev/null\nexec > /dev/null 2>&1\nexec sleep 300\n")
        ended = site.remuda("run", "--agent", "claude", "--json", "--timeout", "1", "hi")
        assert (ended.code, ended.error["kind"]) == (3, "timeout")

    def test_an_agent_that_leaves_its_output_open_behind_it_has_ended(self, site: Site) -> None:
        site.program("claude", f"{SHELL}cat > /dev/null\nsleep 300 &\necho '{json.dumps(FINAL)}'\n")
        started = time.monotonic()
        ended = site.remuda("run", "--agent", "claude", "hi")
        assert (ended.code, ended.stdout) == (0, "done\n")
        assert time.monotonic() - started < 60
        assert site.processes() == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_an_interrupt_ends_the_agent_and_says_cancelled(self, site: Site, number: int) -> None:
        site.program("claude", f"{SHELL}setsid sleep 300 &\necho $$ > agent.pid\nsleep 300\n")
        process = site.start("run", "--agent", "claude", "--json", SECRET)
        read_pid(site.cwd / "agent.pid")
        process.send_signal(number)
        ended = finish(process)
        assert (ended.code, ended.error["kind"]) == (130, "cancelled")
        assert ended.result["stop_reason"] == "cancelled"
        assert len(ended.events) == 1
        assert site.processes() == []
        assert scratch(site) == []

    def test_impatience_changes_nothing(self, site: Site) -> None:
        """An interrupt is heard also while what the first one has ended is cleared away."""
        site.program("claude", f"{SHELL}trap '' TERM\nsetsid sleep 300 &\necho $$ > agent.pid\nsleep 300\n")
        process = site.start("run", "--agent", "claude", "--json", SECRET)
        read_pid(site.cwd / "agent.pid")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.0005)
        ended = finish(process)
        assert (ended.code, ended.error["kind"]) == (130, "cancelled")
        assert site.processes() == []

    def test_ctrl_c_on_a_terminal(self, site: Site) -> None:
        env = {**site.env, "REHEARSAL_SCENARIO": "errors"}
        with Terminal(["remuda", *RUN, "rehearse-hang"], site.cwd, env) as terminal:
            eventually(lambda: len(site.processes()) >= 3)
            time.sleep(0.3)
            terminal.type("\x03")
            assert terminal.end() == 130
            assert "cancelled" in terminal.shown
            eventually(lambda: not site.processes())

    def test_killing_us_outright_leaves_nothing_and_the_next_run_clears_up(self, site: Site) -> None:
        process = site.start(
            *RUN, SECRET + " rehearse-hang", REHEARSAL_SCENARIO="errors", REMUDA_PROMPT_DELIVERY="tempfile"
        )
        eventually(lambda: scratch(site))
        time.sleep(0.3)
        process.kill()
        process.communicate()
        eventually(lambda: not site.processes())
        assert scratch(site)
        assert site.remuda(*RUN, "hi").code == 0
        assert scratch(site) == []

    def test_a_run_inside_an_agents_run_ends_with_it(self, site: Site) -> None:
        site.program("claude", f"{SHELL}exec remuda run --agent codex inner\n")
        site.program("codex", f"{SHELL}setsid sh -c 'echo $$ > inner.pid; exec sleep 300' &\nsleep 300\n")
        process = site.start("run", "--agent", "claude", "--json", "outer")
        inner = read_pid(site.cwd / "inner.pid")
        marks = Path(f"/proc/{inner}/environ").read_bytes()
        assert re.search(rb"REMUDA_MARK=\w{26}/\w{26}\0", marks)
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130
        assert site.processes() == []


class TestSessions:
    def test_a_session_is_resumed_by_our_id_or_by_the_runtimes_own(self, site: Site) -> None:
        first = site.remuda(*RUN, "--json", "one", REHEARSAL_SCENARIO="default")
        ours, native = first.events[-1]["session"], first.result["runtime_session"]
        record = site.folder / "requests.jsonl"
        for session in (ours, native):
            again = site.remuda(
                *("rehearse", "--record", str(record), "--"),
                *("remuda", "run", "--json", "--session", str(session), "two"),
            )
            assert again.code == 0
            assert again.events[-1]["session"] == ours
            assert again.result["runtime_session"] == native
            assert again.events[-1]["agent"] == "rehearsal"

    def test_a_resumed_session_stays_in_its_folder(self, site: Site) -> None:
        site.program("claude", LOOKS)
        elsewhere = site.folder / "elsewhere"
        elsewhere.mkdir()
        first = site.remuda("run", "--agent", "claude", "--json", "--cwd", str(elsewhere), "one")
        assert seen(first)["cwd"] == str(elsewhere)
        again = site.remuda("run", "--json", "--session", str(first.events[-1]["session"]), "two")
        saw = seen(again)
        assert saw["cwd"] == str(elsewhere)
        assert isinstance(saw["argv"], list)
        assert "--resume" in saw["argv"]

    def test_a_session_is_not_resumed_by_another_agent(self, site: Site) -> None:
        first = site.remuda(*RUN, "--json", "one")
        ended = site.remuda("run", "--agent", "claude", "--session", str(first.events[-1]["session"]), "two")
        assert ended.code == 2
        assert "belongs to rehearsal" in ended.stderr

    def test_nothing_that_is_kept_holds_the_prompt(self, site: Site) -> None:
        for delivery in CHANNELS[1:]:
            site.remuda("-v", *RUN, SECRET, REMUDA_PROMPT_DELIVERY=delivery)
        assert b"sessions" in everything_kept(site)
        assert SECRET.encode() not in everything_kept(site)


class TestOptions:
    def test_the_agent_gets_what_was_asked_for(self, site: Site) -> None:
        site.program("claude", LOOKS)
        site.write("sub/there", "")
        ended = site.remuda(
            *("run", "--agent", "claude", "--json", "--model", "opus", "--env", "ONE=1=2", "--env", "TWO="),
            *("--cwd", "sub", "hi", "--", "--max-turns", "3"),
            DATABASE_PASSWORD="hunter2",
            CLAUDECODE="1",
        )
        saw = seen(ended)
        environ = saw["env"]
        assert isinstance(environ, dict)
        assert (environ["ONE"], environ["TWO"]) == ("1=2", "")
        assert "DATABASE_PASSWORD" not in environ
        assert "CLAUDECODE" not in environ
        assert saw["cwd"] == str(site.cwd / "sub")
        assert isinstance(saw["argv"], list)
        assert saw["argv"][-2:] == ["--max-turns", "3"]
        assert saw["argv"][saw["argv"].index("--model") :][:2] == ["--model", "opus"]

    def test_system_prompts_reach_the_agent_in_private_files(self, site: Site) -> None:
        site.program(
            "claude",
            f"{PYTHON}import json, pathlib, sys\n"
            "files = [a for a in sys.argv if a.endswith('.md')]\n"
            "paths = [pathlib.Path(file) for file in files]\n"
            "text = json.dumps([[path.read_text(), oct(path.stat().st_mode)[-3:]] for path in paths])\n"
            "print(json.dumps({'type': 'result', 'session_id': 's', 'result': text}))\n",
        )
        site.write("more.txt", "and kind")
        ended = site.remuda(
            *("run", "--agent", "claude", "hi", "--system-prompt", SECRET),
            *("--append-system-prompt-file", "more.txt"),
        )
        assert json.loads(ended.stdout) == [[SECRET, "600"], ["and kind", "600"]]
        assert scratch(site) == []

    def test_the_project_of_the_folder_worked_in_counts(self, site: Site) -> None:
        site.program("claude", LOOKS)
        site.write("sub/.remuda/config.toml", "agent = 'claude'\n")
        ended = site.remuda("run", "--json", "--cwd", "sub", "hi")
        assert ended.events[-1]["agent"] == "claude"

    def test_a_read_only_capability_refuses_the_shell(self, site: Site) -> None:
        options = ("--capability", "scout", "--permission", "bypass", "--unproven")
        ended = site.remuda(*RUN, *options, "go", REHEARSAL_SCENARIO="demo")
        assert ended.code == 0
        assert not (site.cwd / "hello.txt").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_told_in_one_line(site: Site) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        ended = subprocess.run(
            [site.bin / "remuda", "agents", "--json"],
            env=site.env,
            cwd=site.cwd,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "No space left" in ended.stderr
