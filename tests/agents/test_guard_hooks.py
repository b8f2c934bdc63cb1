"""The guard in a CLI's own settings: hooks that the real programs honour, whatever happens to the guard."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Ended, Lab, shell
from tests.agents.processes import wait_until

from remuda.hooks import wire
from remuda.runtimes import registry

WIRED = [runtime.name for runtime in registry.all_runtimes() if runtime.wiring]

GEMINI_SETTINGS = """\
{
  // how to log in
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}
}
"""
HERMES_CONFIG = """\
model: {{default: gpt-5.4, provider: custom, base_url: {url}/v1, api_key: sk-fake, context_length: 200000}}
auxiliary: {{title_generation: {{enabled: false}}}}
security: {{tirith_enabled: false, allow_lazy_installs: false}}
hooks: {{}}  # none yet
"""

FAULTS = """\
#!/bin/sh
read -r number < {count}
echo $((number + 1)) > {count}
case $number in
  0) exit 1 ;;
  1) kill -9 $$ ;;
  2) echo garbage ;;
  3) echo '{{"x": 1}}'; exit 2 ;;
  4) exec /bin/sleep 600 ;;
  *) /bin/rm {python}; exit 0 ;;
esac
"""
"""A Python that fails in another way each time it is started, and is gone in the end."""

TIMES = 8

OFFLINE = {"opencode": {"npm_config_fetch_retries": "0"}}
"""With a plugin, OpenCode waits for its plugin library, which npm would look for several times."""

PATIENCE = 140
pytestmark = pytest.mark.timeout(3 * PATIENCE)


@pytest.fixture(params=WIRED)
def wired(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A home in which somebody has used the runtime before."""
    lab = make_lab(registry.get(request.param))
    if request.param == "gemini":
        file = lab.home / ".gemini" / "settings.json"
        file.parent.mkdir()
        file.write_text(GEMINI_SETTINGS)
    if request.param == "hermes":
        file = lab.home / ".hermes" / "config.yaml"
        file.parent.mkdir()
        file.write_text(HERMES_CONFIG.format(url=lab.server.url))
    return lab


def guard(lab: Lab, verb: str, *options: str) -> Ended:
    ended = lab.call([str(REMUDA), "guard", verb, lab.runtime.name, *options])
    assert ended.code == 0, ended.stderr
    return ended


def install(lab: Lab, *options: str) -> None:
    guard(lab, "install", *options, *(("--trust",) if lab.runtime.name == "codex" else ()))


def everyday(lab: Lab, **variables: str) -> str:
    """The CLI as a person would run it without being asked anything, and what it printed. To two of them
    ``remuda run`` gives homes of their own if the model is elsewhere, so these are started as they are."""
    if lab.runtime.name == "gemini":
        command = ["gemini", "--skip-trust", "--approval-mode", "yolo", "-o", "stream-json", "-p", "go on"]
        env = {"GOOGLE_GEMINI_BASE_URL": lab.server.url, "GEMINI_API_KEY": "fake-key-of-nobody"}
        return started(lab, command, {**env, "GEMINI_MODEL": "gemini-2.5-flash", **variables})
    if lab.runtime.name == "hermes":
        return started(lab, ["hermes", "-z", "go on"], {"HERMES_DISABLE_LAZY_INSTALLS": "1", **variables})
    given = {**variables, **OFFLINE.get(lab.runtime.name, {})}
    options = (f"--env={name}={value}" for name, value in given.items())
    ended = lab.call(lab.command(*lab.bypass, *options), b"go on", timeout=PATIENCE)
    assert ended.result.error is None, ended.stderr
    return ended.stdout.decode()


def started(lab: Lab, command: list[str], env: dict[str, str]) -> str:
    ended = lab.call(["/usr/bin/env", *command], env=env, timeout=PATIENCE)
    assert ended.code == 0, ended.stderr
    return ended.stdout.decode() + ended.stderr


def builder(lab: Lab) -> dict[str, str]:
    """A builder whose worktree is a folder in the one that it works in."""
    tree = lab.cwd / "tree"
    tree.mkdir(exist_ok=True)
    return {"REMUDA_CAPABILITY": "builder", "REMUDA_WORKTREE": str(tree)}


def records(lab: Lab) -> list[dict[str, object]]:
    """What the audit says."""
    file = lab.home / "remuda" / "state" / "guard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def files(lab: Lab) -> dict[str, bytes]:
    """The files in a runtime's part of the home, which are not the guard's own."""
    return {
        str(path): path.read_bytes()
        for path in lab.home.rglob("*")
        if path.is_file() and not path.is_relative_to(lab.home / "remuda")
    }


def test_the_guard_holds_while_it_is_installed_and_leaves_no_trace(wired: Lab) -> None:
    before = files(wired)
    inside, outside = wired.cwd / "tree" / "inside.txt", wired.cwd / "outside.txt"
    steps = (shell("echo no > outside.txt"), shell("echo yes > tree/inside.txt"), DONE)

    install(wired)
    made = set(files(wired)) - set(before)
    wired.play(*steps)
    said = everyday(wired, **builder(wired))
    assert not outside.exists(), said
    assert inside.exists(), said
    refused, allowed = (record for record in records(wired) if "decision" in record)
    assert refused["decision"] != "allow" == allowed["decision"]
    assert refused["runtime"] == allowed["runtime"] == wired.runtime.name
    assert any(f"({refused['rule']})" in (heard.body or "") for heard in wired.server.heard()), "told why"

    guard(wired, "remove")
    after = files(wired)
    assert {path: after.get(path) for path in before} == before
    assert not made & set(after)
    assert not [*(wired.home / "remuda" / "data").iterdir()]
    wired.play(*steps)
    said = everyday(wired, **builder(wired))
    assert outside.exists(), said


def trust(lab: Lab) -> dict[str, str]:
    """Have the project trusted as a person would, where its hooks need that; variables that say so, too."""
    lab.cwd.joinpath(".git").mkdir()
    if lab.runtime.name == "codex":
        lab.home.joinpath(".codex").mkdir()
        trusted = f'[projects."{lab.cwd}"]\ntrust_level = "trusted"\n'
        lab.home.joinpath(".codex", "config.toml").write_text(trusted)
    if lab.runtime.name == "copilot":
        lab.home.joinpath(".copilot").mkdir()
        config = json.dumps({"trustedFolders": [str(lab.cwd)]})
        lab.home.joinpath(".copilot", "config.json").write_text(config)
    if lab.runtime.name == "pi":
        lab.home.joinpath(".pi", "agent").mkdir(parents=True)
        lab.home.joinpath(".pi", "agent", "trust.json").write_text(json.dumps({str(lab.cwd): True}))
    return {"GEMINI_CLI_TRUST_WORKSPACE": "true"} if lab.runtime.name == "gemini" else {}


def test_a_project_can_be_guarded_by_itself(wired: Lab) -> None:
    if wired.runtime.wiring is None or "project" not in wired.runtime.wiring.scopes:
        ended = wired.call([str(REMUDA), "guard", "install", wired.runtime.name, "--scope", "project"])
        assert ended.code == 5
        return
    variables = trust(wired)
    install(wired, "--scope", "project")
    wired.play(shell("echo no > outside.txt"), shell("echo yes > tree/inside.txt"), DONE)
    said = everyday(wired, **builder(wired), **variables)
    assert not (wired.cwd / "outside.txt").exists(), said
    assert (wired.cwd / "tree" / "inside.txt").exists(), said


def test_nothing_runs_when_the_guard_fails(wired: Lab) -> None:
    install(wired)
    count, python = wired.home / "count", wired.home / "python"
    count.write_text("0\n")
    python.write_text(FAULTS.format(count=count, python=python))
    python.chmod(0o755)
    program = wired.home / "remuda" / "data" / "hooks" / wired.runtime.name / "pre_tool_use"
    text = program.read_text()
    assert sys.executable in text
    assert " 10 " in text
    program.write_text(text.replace(sys.executable, str(python)).replace(" 10 ", " 1 "))

    wired.play(*(shell(f"echo {number} > tree/f{number}.txt") for number in range(TIMES)), DONE)
    said = everyday(wired, **builder(wired))
    assert not python.exists(), said
    assert sorted(path.name for path in wired.cwd.rglob("f*.txt")) == [], said
    assert not [record for record in records(wired) if "decision" in record]


def test_nothing_runs_when_the_hook_program_is_shot_or_gone(wired: Lab) -> None:
    install(wired)
    program = wired.home / "remuda" / "data" / "hooks" / wired.runtime.name / "pre_tool_use"
    program.write_text('#!/bin/sh\n/bin/rm "$0"\nkill -9 $$\n')
    wired.play(shell("echo 1 > tree/f1.txt"), shell("echo 2 > tree/f2.txt"), DONE)
    said = everyday(wired, **builder(wired))
    assert not program.exists(), said
    assert sorted(path.name for path in wired.cwd.rglob("f*.txt")) == [], said
    told = guard(wired, "status").stdout.decode()
    assert "hook program: missing" in told
    assert f"No PreToolUse hook registered for active agent binary '{wired.runtime.name}'." in told


@contextlib.contextmanager
def doomed_resident(lab: Lab) -> Iterator[subprocess.Popen[bytes]]:
    """A resident process that takes a call, does not answer, and is shot soon after the model has spoken."""
    resident = subprocess.Popen([str(REMUDA), "serve", "--keep"], cwd=lab.cwd, env=lab.env)
    try:
        socket = lab.home / "remuda" / "runtime" / wire.SOCKET
        assert wait_until(socket.exists, 60)
        resident.send_signal(signal.SIGSTOP)

        def shoot() -> None:
            wait_until(lambda: bool(lab.prompts()), PATIENCE)
            time.sleep(1)
            resident.kill()

        watcher = threading.Thread(target=shoot)
        watcher.start()
        yield resident
        watcher.join()
    finally:
        resident.kill()
        resident.wait()


def test_a_resident_process_that_is_killed_in_mid_call_lets_nothing_through(wired: Lab) -> None:
    install(wired)
    wired.play(shell("echo no > outside.txt"), shell("echo yes > tree/inside.txt"), DONE)
    with doomed_resident(wired) as resident:
        said = everyday(wired, **builder(wired))
        assert resident.wait(PATIENCE) == -signal.SIGKILL
    assert not (wired.cwd / "outside.txt").exists(), said
    assert (wired.cwd / "tree" / "inside.txt").exists(), said
    refused, allowed = (record for record in records(wired) if "decision" in record)
    assert refused["decision"] != "allow" == allowed["decision"]
