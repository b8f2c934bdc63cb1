"""The staged hook programs as processes: they deny whatever becomes of the guard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support import SHELL, Ended, Site, eventually

from remuda.hooks.answer import DIALECTS, Dialect
from remuda.hooks.events import FILES
from remuda.hooks.staging import stage

ALLOWED = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}}).encode()
DENIED = json.dumps({"tool_name": "Bash", "tool_input": {"command": "git push --force"}}).encode()
ASKED = json.dumps({"tool_name": "Bash", "tool_input": {"command": "cat ~/.ssh/id_rsa"}}).encode()
REFUSALS = {
    "claude": '"permissionDecision":"deny"',
    "codex": '"permissionDecision":"deny"',
    "copilot": '{"permissionDecision":"deny"',
    "gemini": '{"decision":"deny"',
    "hermes": '{"decision":"block"',
}


def programs(site: Site, dialect: Dialect = "claude") -> Path:
    return stage(site.home / "data", dialect, dialect, DIALECTS)["PreToolUse"]


def start(site: Site, program: Path, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program],
        cwd=site.cwd,
        env={**site.env, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ask(site: Site, program: Path, payload: bytes = ALLOWED, **env: str) -> Ended:
    process = start(site, program, **env)
    stdout, stderr = process.communicate(payload, timeout=60)
    return Ended(process.returncode, stdout, stderr)


def doctored(site: Site, program: Path, python: str) -> Path:
    """The program with another Python, and with less patience."""
    stand_in = site.program("another", python) if python else site.bin / "missing"
    text = program.read_text()
    assert sys.executable in text
    assert "timeout -k 2 10 " in text
    program.write_text(text.replace(sys.executable, str(stand_in)).replace("-k 2 10 ", "-k 1 1 "))
    return program


def denies(given: Ended, dialect: str) -> bool:
    return given.code == 2 and REFUSALS[dialect] in given.stdout and "remuda: denied: " in given.stderr


@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_are_passed_on(site: Site, dialect: Dialect) -> None:
    program = programs(site, dialect)
    allowed = ask(site, program)
    assert (allowed.code, allowed.stdout, allowed.stderr) == (0, "{}\n", "")
    denied = ask(site, program, DENIED)
    assert denies(denied, dialect)
    assert "(git.force)" in denied.stdout
    asked = ask(site, program, ASKED)
    if dialect in ("claude", "copilot"):
        assert (asked.code, asked.stderr) == (0, "")
        assert '"permissionDecision":"ask"' in asked.stdout
    else:
        assert denies(asked, dialect)
    assert denies(ask(site, program, ASKED, REMUDA_CAPABILITY="builder"), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "python",
    [
        pytest.param("", id="missing"),
        pytest.param("no program at all", id="no-format"),
        pytest.param("#!/nowhere/python\n", id="no-interpreter"),
        pytest.param(f"{SHELL}exit 0\n", id="silent"),
        pytest.param(f"{SHELL}exit 1\n", id="crash"),
        pytest.param(f"{SHELL}exit 2\n", id="silent-deny"),
        pytest.param(f"{SHELL}echo '{{}}'; exit 1\n", id="allow-that-fails"),
        pytest.param(f"{SHELL}echo '{{}}'; kill -9 $$\n", id="killed"),
        pytest.param(f"{SHELL}echo garbage\n", id="garbage"),
        pytest.param(f"{SHELL}echo '{{}}'; echo '{{}}'\n", id="allow-twice"),
        pytest.param(f"{SHELL}echo '{{\"x\": 1}}'; exit 2\n", id="another-deny"),
        pytest.param(f'{SHELL}echo \'{{"permissionDecision":"allow"}}\'\n', id="explicit-allow"),
        pytest.param(f"{SHELL}trap '' TERM; /bin/sleep 30\n", id="hang"),
    ],
)
def test_what_is_no_answer_is_a_deny(site: Site, python: str, dialect: Dialect) -> None:
    given = ask(site, doctored(site, programs(site, dialect), python))
    assert denies(given, dialect)
    assert "(hook.failed)" in given.stdout
    assert given.stdout.count("\n") == 1


def test_nothing_on_the_path_matters(site: Site) -> None:
    program = programs(site)
    for name in ("python", "python3", "remuda", "timeout", "printf", "sh", "env", Path(sys.executable).name):
        (site.bin / name).unlink(missing_ok=True)
        site.program(name, f"{SHELL}echo '{{}}'; exit 0\n")
    (site.cwd / "remuda.py").write_text("print('{}')\nraise SystemExit(0)\n")
    (site.cwd / "msgspec.py").write_text("print('{}')\nraise SystemExit(0)\n")
    assert denies(ask(site, program, DENIED), "claude")
    assert denies(ask(site, program, DENIED, PYTHONPATH=str(site.cwd), PYTHONSTARTUP="msgspec.py"), "claude")
    assert denies(ask(site, program, DENIED, PATH=""), "claude")


def test_files_and_functions_that_a_shell_would_read_do_not_matter(site: Site) -> None:
    program = programs(site)
    hostile = site.write("profile", "echo '{}'\nexit 0\n")
    function = {"BASH_FUNC_printf%%": "() { echo '{}'; exit 0; }"}
    env = {"ENV": str(hostile), "BASH_ENV": str(hostile), **function}
    assert denies(ask(site, program, DENIED, **env), "claude")
    bash = site.write("as-bash", program.read_text())
    process = subprocess.run(
        ["/bin/bash", "--posix", bash], input=DENIED, capture_output=True, env={**site.env, **env}
    )
    assert process.returncode == 2
    assert b'"deny"' in process.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_program_that_is_told_to_stop_denies(site: Site, number: signal.Signals) -> None:
    """It has not had its payload yet, and so waits for the guard, which waits for that."""
    process = start(site, programs(site))
    eventually(lambda: b"timeout" in b"".join(path.read_bytes() for path in children(process.pid)))
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert denies(Ended(process.returncode, stdout, stderr), "claude")


def children(pid: int) -> list[Path]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [path for each in listed if (path := Path(f"/proc/{each}/cmdline")).exists()]


def test_it_waits_no_longer_than_it_should(site: Site) -> None:
    program = doctored(site, programs(site), f"{SHELL}exec /bin/sleep 60\n")
    started = time.monotonic()
    assert denies(ask(site, program), "claude")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("event", [event for event in FILES if event != "PreToolUse"])
def test_other_events_never_stop_anything(site: Site, event: str) -> None:
    program = programs(site).with_name(FILES[event])  # type: ignore[index]
    for payload in (b"garbage", b"", b'{"session_id": "s"}'):
        given = ask(site, program, payload)
        assert (given.code, given.stdout, given.stderr) == (0, "{}\n", "")
    program.write_text(program.read_text().replace(sys.executable, "/nowhere/python"))
    given = ask(site, program)
    assert (given.code, given.stdout, given.stderr) == (0, "{}\n", "")


def test_the_record_tells_whose_hook_it_was(site: Site) -> None:
    ask(site, programs(site, "gemini"), DENIED)
    line = json.loads((site.home / "state" / "guard.jsonl").read_text())
    assert (line["runtime"], line["dialect"], line["decision"]) == ("gemini", "gemini", "deny")


def test_a_path_with_anything_in_it_is_quoted(site: Site) -> None:
    folder = site.folder / "it's $HOME `x`"
    folder.mkdir()
    program = stage(folder, "claude", "claude", DIALECTS)["PreToolUse"]
    assert denies(ask(site, program, DENIED), "claude")
    assert os.access(program, os.X_OK)
