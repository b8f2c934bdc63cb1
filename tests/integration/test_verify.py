"""``remuda doctor --verify`` from the outside: the built-in agent, and programs that lie."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import SHELL, Site, eventually, finish

CLAIMS = {
    *("channel.stdin", "channel.tempfile", "channel.argv", "events", "usage", "resume", "quiet", "guard.run"),
    *("error.auth", "error.rate_limit", "error.model", "error.unreachable"),
}
ANSWERS_VERSION = f'{SHELL}[ "$1" = --version ] && echo 2.1.0 && exit\n'


def enclosed() -> bool:
    """Whether this machine lets us make namespaces."""
    unshare = shutil.which("unshare")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return (
        unshare is not None and subprocess.run([unshare, "--net", "--mount", *user, "true"]).returncode == 0
    )


needs_namespaces = pytest.mark.skipif(not enclosed(), reason="no namespaces can be made here")


@pytest.fixture
def lab(site: Site) -> Site:
    (site.bin / "unshare").symlink_to(str(shutil.which("unshare")))
    return site


def verdicts(document: dict[str, object]) -> dict[str, tuple[str, str]]:
    runtimes = document["runtimes"]
    assert isinstance(runtimes, list)
    return {finding["what"]: (finding["verdict"], finding["how"]) for finding in runtimes[0]["findings"]}


@needs_namespaces
def test_the_built_in_agent_is_what_it_is_declared_to_be(lab: Site) -> None:
    ended = lab.remuda("doctor", "--verify", "rehearsal", "--json")
    assert ended.code == 0, ended.stderr
    assert {what: verdict for what, (verdict, _) in verdicts(ended.json).items()} == dict.fromkeys(
        CLAIMS, "holds"
    )
    assert ended.json["ok"] is True
    assert "  … a long prompt by stdin\n  ✓ channel.stdin (" in ended.stderr
    doctor = lab.remuda("doctor")
    assert "stdin: holds (seen here on" in doctor.stdout
    assert list((lab.home / "cache" / "verify").iterdir()) == []
    assert lab.processes() == []


@needs_namespaces
def test_a_program_that_answers_rubbish(lab: Site) -> None:
    lab.program("claude", f"{ANSWERS_VERSION}echo rubbish\n")
    ended = lab.remuda("doctor", "--verify", "claude")
    assert ended.code == 1
    assert "never reached the model: the run failed (protocol)" in ended.stderr
    assert "– events: not checked: no prompt reaches the model" in ended.stderr
    assert "Remuda gives claude 2.1.0 no more prompts: no channel delivers them." in ended.stdout
    assert "Not what is claimed: claude." in ended.stdout
    run = lab.remuda("run", "--agent", "claude", "Hello.")
    assert run.code == 2
    assert "every prompt channel of the installed Claude Code was seen to fail" in run.stderr


@needs_namespaces
def test_a_program_that_hangs_costs_one_timeout(lab: Site) -> None:
    lab.program("claude", f"{ANSWERS_VERSION}sleep 1000\n")
    lab.remuda("config", "set", "run.timeout", "1")
    ended = lab.remuda("doctor", "--verify", "claude", "--json")
    assert ended.code == 1
    found = verdicts(ended.json)
    assert found.pop("channel.stdin") == ("fails", "no result within 1 s: the program hangs")
    assert set(found.values()) == {("unchecked", "not checked: the program hangs")}
    assert lab.processes() == []


@needs_namespaces
def test_a_program_without_a_version(lab: Site) -> None:
    lab.program("claude", f"{SHELL}exit 1\n")
    ended = lab.remuda("doctor", "--verify", "claude", "--json")
    assert ended.code == 1
    assert verdicts(ended.json) == {"version": ("fails", "'claude --version' gives no version")}


@needs_namespaces
def test_whom_a_program_tries_to_reach_is_told(lab: Site) -> None:
    calls = (
        "import socket, contextlib\n"
        "for address in (('192.0.2.7', 4711), ('telemetry.example', 443)):\n"
        "    with contextlib.suppress(OSError): socket.create_connection(address, 1)\n"
    )
    path = lab.write("call.py", calls)
    lab.program("claude", f"{ANSWERS_VERSION}exec {sys.executable} -S {path}\n")
    ended = lab.remuda("doctor", "--verify", "claude", "--json")
    verdict, how = verdicts(ended.json)["quiet"]
    assert verdict == "fails"
    assert "tried to connect to 192.0.2.7:4711" in how
    if "nameserver" in Path("/etc/resolv.conf").read_text():
        assert "looked up telemetry.example" in how


@needs_namespaces
def test_what_changed_since_the_last_version_is_told(lab: Site) -> None:
    kept = lab.home / "state" / "evidence.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text(
        '{"runtime":"claude","version":"2.0.9","what":"channel.argv","holds":true,"seen_at":"","how":""}\n'
    )
    lab.program("claude", f"{ANSWERS_VERSION}echo rubbish\n")
    ended = lab.remuda("doctor", "--verify", "claude")
    assert (
        "Changed since claude was last verified\n  channel.argv: held on 2.0.9, fails on 2.1.0"
        in ended.stdout
    )


@needs_namespaces
def test_an_interrupt_leaves_nothing(lab: Site) -> None:
    lab.program("claude", f"{ANSWERS_VERSION}echo run > {lab.folder}/runs\nsleep 1000\n")
    process = lab.start("doctor", "--verify", "claude")
    eventually((lab.folder / "runs").exists)
    process.send_signal(signal.SIGINT)
    assert finish(process).code == 130
    eventually(lambda: not lab.processes())
    assert list((lab.home / "cache" / "verify").iterdir()) == []
    assert not (lab.home / "state" / "evidence.jsonl").exists()


def test_without_namespaces_nothing_is_run(site: Site) -> None:
    site.program("claude", f"{SHELL}echo run > {site.folder}/runs\n")
    ended = site.remuda("doctor", "--verify", "claude")
    assert ended.code == 1
    assert "agents are never verified with a network" in ended.stderr
    site.program("unshare", f"{SHELL}echo 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    ended = site.remuda("doctor", "--verify", "claude")
    assert ended.code == 1
    assert "no place without a network could be made (unshare: unshare failed: Operation" in ended.stderr
    site.program("unshare", f'{SHELL}while [ "$1" != "${{1#--}}" ]; do shift; done\nexec "$@"\n')
    ended = site.remuda("doctor", "--verify", "claude")
    assert ended.code == 1
    assert "'unshare' made no namespaces" in ended.stderr
    assert not (site.folder / "runs").exists()


def test_names_are_for_verification(site: Site) -> None:
    ended = site.remuda("doctor", "claude")
    assert ended.code == 2
    assert "names go with --verify: remuda doctor --verify claude" in ended.stderr


@needs_namespaces
def test_what_is_not_there_cannot_be_verified(lab: Site) -> None:
    ended = lab.remuda("doctor", "--verify", "claude")
    assert (ended.code, "Claude Code is not installed" in ended.stderr) == (6, True)
    ended = lab.remuda("doctor", "--verify", "nobody")
    assert (ended.code, "there is no runtime named 'nobody'" in ended.stderr) == (4, True)
