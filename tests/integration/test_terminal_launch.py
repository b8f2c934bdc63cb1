"""Launching an agent interactively, on a real terminal and without one."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from tests.support import PYTHON, SHELL, Site, Terminal, alive, eventually, finish, read_pid, stopped

REMUDA = (sys.executable, "-m", "remuda")
ECHO = f"""{PYTHON}
import os, sys
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    if line.strip() == "quit":
        sys.exit(4)
    print("heard", line.strip(), flush=True)
"""

WAITS = f"""{PYTHON}
import pathlib, time
print("ready", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.05)
print("over", flush=True)
"""


def on_terminal(site: Site, *arguments: str, **env: str) -> Terminal:
    return Terminal([*REMUDA, *arguments], site.cwd, {**site.env, **env})


def in_shell(site: Site) -> Terminal:
    """An interactive shell with job control."""
    terminal = Terminal(
        ["bash", "--norc", "--noprofile", "-i"], site.cwd, {**site.env, "PS1": "$ ", "HISTFILE": ""}
    )
    terminal.expect("$ ")
    return terminal


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_a_conversation_with_the_built_in_agent(site: Site) -> None:
    with on_terminal(site, "launch", "rehearsal") as terminal:
        terminal.expect("rehearsal")
        terminal.expect("ready")
        terminal.expect("▸ ")
        terminal.type("hello\n")
        terminal.expect("Heard 5 bytes.")
        terminal.type("/exit\n")
        assert terminal.end() == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
    ],
)
def test_the_exit_code_is_the_agents_own(site: Site, body: str, code: int) -> None:
    site.program("claude", f"{SHELL}{body}\n")
    with on_terminal(site, "claude") as terminal:
        assert terminal.end() == code


def test_ctrl_c_reaches_the_agent_and_only_the_agent(site: Site) -> None:
    site.program("claude", f"{SHELL}trap 'exit 9' INT\necho ready\nwhile :; do sleep 0.05; done\n")
    with on_terminal(site, "claude") as terminal:
        terminal.expect("ready")
        terminal.type("\x03")
        assert terminal.end() == 9


def test_an_agent_that_survives_ctrl_c_goes_on(site: Site) -> None:
    site.program(
        "claude",
        f"{PYTHON}import os, signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'not yet'))\n"
        "print('ready', flush=True)\nprint('got', sys.stdin.readline())\nsys.exit(3)\n",
    )
    with on_terminal(site, "claude") as terminal:
        terminal.expect("ready")
        terminal.type("\x03")
        terminal.expect("not yet")
        terminal.type("on\n")
        terminal.expect("got on")
        assert terminal.end() == 3


@pytest.mark.parametrize("wrapped", [False, True], ids=["directly", "from a script"])
def test_ctrl_z_suspends_and_fg_resumes(site: Site, wrapped: bool) -> None:
    site.program("claude", ECHO)
    site.program("wrapper", f"{SHELL}remuda claude\nexit $?\n")
    with in_shell(site) as terminal:
        terminal.type("wrapper\n" if wrapped else "remuda claude\n")
        terminal.expect("ready")
        terminal.type("one\n")
        terminal.expect("heard one")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.expect("$ ")
        terminal.type("echo the shell is $((40 + 2))\n")
        terminal.expect("the shell is 42")
        terminal.type("fg\n")
        terminal.type("two\n")
        terminal.expect("heard two")
        terminal.type("quit\n")
        terminal.expect("$ ")
        terminal.type("echo code $?\n")
        terminal.expect("code 4")
        terminal.type("exit\n")
        terminal.end()


def test_bg_leaves_the_terminal_to_the_shell(site: Site) -> None:
    site.program("claude", WAITS)
    with in_shell(site) as terminal:
        terminal.type("remuda claude\n")
        terminal.expect("ready")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.type("bg\n")
        terminal.expect("&")
        terminal.type("echo still $((40 + 2))\n")
        terminal.expect("still 42")
        terminal.type(": > go\n")
        terminal.expect("over")
        terminal.type("wait; echo and $((50 + 2))\n")
        terminal.expect("and 52")
        terminal.type("exit\n")
        assert terminal.end() == 0


def test_the_terminal_is_given_back_to_a_script(site: Site) -> None:
    site.program("claude", f"{SHELL}exit 0\n")
    with Terminal(["sh", "-c", "remuda claude; read line; echo got $line"], site.cwd, site.env) as terminal:
        terminal.type("it\n")
        terminal.expect("got it")
        assert terminal.end() == 0


def test_ctrl_z_where_nobody_could_resume_us_does_not_hang(site: Site) -> None:
    site.program("claude", ECHO)
    with on_terminal(site, "claude") as terminal:
        terminal.expect("ready")
        terminal.type("\x1a")
        terminal.type("one\n")
        terminal.expect("heard one")
        terminal.type("quit\n")
        assert terminal.end() == 4


def test_a_stopped_agent_stops_us_and_goes_on_with_us(site: Site) -> None:
    site.program("claude", ECHO)
    process = site.start("claude", stdin=subprocess.PIPE)
    assert process.stdout is not None
    agent = int(process.stdout.readline().split()[1])
    os.kill(agent, signal.SIGSTOP)
    eventually(lambda: stopped(process.pid))
    os.kill(process.pid, signal.SIGCONT)
    eventually(lambda: not stopped(agent))
    stdout, _ = process.communicate(b"one\nquit\n", timeout=60)
    assert (stdout, process.returncode) == (b"heard one\n", 4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_signals_to_us_are_passed_on(site: Site, number: int) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    site.program("claude", f"{SHELL}trap 'exit 5' {name}\necho ready\nwhile :; do sleep 0.05; done\n")
    process = site.start("claude")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert finish(process).code == 5


def test_nohup_is_honoured(site: Site) -> None:
    site.program("claude", f"{SHELL}echo ready\nread line\necho on\n")
    process = subprocess.Popen(
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *REMUDA, "claude"],
        cwd=site.cwd,
        env=site.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(b"\n", timeout=60)[0] == b"on\n"
    assert process.returncode == 0


def test_killing_us_outright_leaves_nothing(site: Site) -> None:
    site.program("claude", f"{SHELL}setsid sleep 300 &\necho $$ > agent.pid\nexec sleep 300\n")
    with on_terminal(site, "claude") as terminal:
        agent = read_pid(site.cwd / "agent.pid")
        terminal.process.kill()
        eventually(lambda: not alive(agent))
        eventually(lambda: not site.processes())


def test_what_the_agent_leaves_running_is_ended_with_it(site: Site) -> None:
    site.program(
        "claude",
        f"{SHELL}setsid sleep 300 > /dev/null 2>&1 &\necho $! > a.pid\n"
        "env -i sleep 300 > /dev/null 2>&1 &\necho $! > b.pid\nexit 0\n",
    )
    assert site.remuda("claude").code == 0
    assert not alive(read_pid(site.cwd / "a.pid"))
    assert not alive(read_pid(site.cwd / "b.pid"))


def test_the_launch_is_written_down_and_nothing_else_is(site: Site) -> None:
    site.program("codex", f"{SHELL}exit 0\n")
    subprocess.run(["git", "init", "-q", site.cwd], check=True, env=site.env)
    deep = site.cwd / "a" / "b"
    deep.mkdir(parents=True)
    before = tree(site.folder)
    ended = subprocess.run([*REMUDA, "codex"], cwd=deep, env=site.env, capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    added = {"work/.claude", "work/.claude/runtime", "work/.claude/runtime/launcher_context.json"}
    assert tree(site.folder) - before == added
    path = site.cwd / ".claude/runtime/launcher_context.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    context = json.loads(path.read_text())
    assert context.keys() == {
        *("launcher", "session_id", "cwd", "started_at"),
        *("amplihack_version", "remuda_version"),
    }
    assert (context["launcher"], context["cwd"]) == ("codex", str(deep))
    assert len(context["session_id"]) == 26
    assert abs(datetime.fromisoformat(context["started_at"]).timestamp() - path.stat().st_mtime) < 60
    assert site.remuda("which").stdout == "codex\n"


def test_a_context_that_cannot_be_written_is_no_reason_not_to_launch(site: Site) -> None:
    site.program("claude", f"{SHELL}echo launched\n")
    (site.cwd / ".claude").symlink_to(site.folder)
    ended = site.remuda("claude")
    assert (ended.code, ended.stdout) == (0, "launched\n")
    assert "launcher context was not written" in ended.stderr


def test_the_agent_gets_a_clean_environment_and_its_own_arguments(site: Site) -> None:
    site.program(
        "claude", f"{PYTHON}import json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
    )
    arguments = ["--help", "-x", "a b", "--", "--json", "{prompt}"]
    ended = site.remuda("claude", *arguments, CLAUDECODE="1", CLAUDE_CODE_ENTRYPOINT="cli", MINE="yes")
    passed, environ = json.loads(ended.stdout)
    assert passed == ["--help", "-x", "a b", "--json", "{prompt}"]
    assert "CLAUDECODE" not in environ
    assert "CLAUDE_CODE_ENTRYPOINT" not in environ
    assert environ["MINE"] == "yes"
    assert environ["DISABLE_AUTOUPDATER"] == "1"
    assert environ["REMUDA_AGENT_BINARY"] == "claude"


def test_launch_takes_the_active_agent_and_arguments_behind_two_dashes(site: Site) -> None:
    site.program("codex", f'{SHELL}echo "$@"\n')
    assert site.remuda("launch", REMUDA_AGENT_BINARY="codex").stdout == "\n"
    assert site.remuda("launch", "codex", "--", "--search", "--help").stdout == "--search --help\n"


def test_without_a_terminal_input_and_output_pass_through(site: Site) -> None:
    site.program("claude", ECHO)
    ended = site.remuda("claude", stdin=b"one\nquit\n")
    assert ended.code == 4
    assert ended.stdout.endswith("heard one\n")


def test_an_agent_that_is_not_there(site: Site) -> None:
    missing = site.remuda("claude")
    assert missing.code == 6
    assert "not installed" in missing.stderr
    assert "npm install" in missing.stderr
    assert site.remuda("launch", "nobody").code == 4
    assert not (site.cwd / ".claude").exists()


def test_an_agent_that_cannot_start_gives_the_terminal_back(site: Site) -> None:
    site.program("claude", "#!/no/such/interpreter\n")
    with in_shell(site) as terminal:
        terminal.type("remuda claude\n")
        terminal.expect("cannot start")
        terminal.expect("$ ")
        terminal.type("echo code $? and $((40 + 2))\n")
        terminal.expect("code 6 and 42")
        terminal.type("exit\n")
        terminal.end()
