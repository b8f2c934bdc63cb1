"""Records what each agent CLI prints in well-known situations, for tests/unit/test_streams.py.

Usage: python tools/loopback.py python tools/record_fixtures.py [RUNTIME…]
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.agents.network import objection  # noqa: E402

from remuda.core.processes import Command  # noqa: E402
from remuda.prompts import delivery  # noqa: E402
from remuda.rehearsal.exchange import Usage  # noqa: E402
from remuda.rehearsal.scenario import Rule, Scenario, Step, load_scenario  # noqa: E402
from remuda.rehearsal.server import RehearsalServer  # noqa: E402
from remuda.runtimes import registry  # noqa: E402
from remuda.runtimes.base import Permission, Runtime, Turn  # noqa: E402

TARGET = ROOT / "tests" / "fixtures" / "streams"
PLACE = Path("/var/tmp/remuda-fixture")
SESSION = "5e55105e-0000-4000-8000-000000000001"
LONGEST = 6.0
"""Seconds to listen to a program that goes on retrying."""

TOOL = Scenario(
    "tool",
    (
        Rule(
            (
                Step(
                    thought="A file will do.",
                    tool="shell",
                    input={"command": "echo written > f.txt && cat f.txt"},
                    usage=Usage(1000, 50, 600, 100),
                ),
                Step(text="It says: written", usage=Usage(1100, 30, 1000, 20)),
            )
        ),
    ),
)
TEXT = Scenario("text", (Rule((Step(text="The answer is 42 🐎.", usage=Usage(301, 17, 11, 3)),)),))


class Case(msgspec.Struct, frozen=True):
    """A situation: what the model does, what it is asked, and what the agent may do."""

    name: str
    scenario: Scenario
    prompt: str = "What is the answer?"
    permission: Permission = "ask"


CASES = (
    Case("text", TEXT),
    Case("tool", TOOL, permission="bypass"),
    Case("refused-tool", TOOL),
    *(Case(word, load_scenario("errors"), f"rehearse-{word}") for word in ("401", "429", "500", "drop")),
)


def agents_path() -> str:
    """The PATH with the pinned CLIs."""
    answer = subprocess.run(
        [sys.executable, ROOT / "tools" / "agents.py", "--path"], check=False, capture_output=True, text=True
    )
    if answer.returncode != 0:
        sys.exit("the agent CLIs are not installed: run 'make agents'")
    return f"{answer.stdout.strip()}:/usr/bin:/bin"


def command(runtime: Runtime, case: Case, endpoint: str, path: str) -> Command:
    """The command that Remuda would run, in a home of its own."""
    home, cwd, scratch, keep = (PLACE / part for part in ("home", "work", "scratch", "keep"))
    for folder in (home, cwd, scratch, keep):
        folder.mkdir(parents=True)
    turn = Turn(
        cwd=cwd,
        scratch=scratch,
        keep=keep,
        session=SESSION,
        permission=case.permission,
        endpoint=endpoint,
    )
    invocation = runtime.print_command(turn)
    environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", **runtime.conduct.bypass_as_root}
    program = runtime.locate(runtime.binary, environ)
    assert program is not None
    bare = Command(
        argv=(*program, *invocation.arguments), env={**environ, **runtime.quiet, **invocation.env}, cwd=cwd
    )
    text = delivery.payload(runtime, invocation, case.prompt)
    return delivery.deliver(bare, runtime.channel("stdin"), text, invocation.files, scratch)


def listen(what: Command) -> bytes:
    """The lines that a program prints until it ends, or until we have heard enough."""
    with subprocess.Popen(
        what.argv,
        cwd=what.cwd,
        env=what.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(what.stdin, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    return output[: output.rfind(b"\n") + 1]


def record(runtime: Runtime, case: Case, path: str) -> None:
    """Write one fixture, and the file that the program left if it is one that does."""
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        with RehearsalServer(case.scenario) as server:
            output = listen(command(runtime, case, server.url, path))
        target = TARGET / runtime.name / f"{case.name}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(output)
        if runtime.leaves and (PLACE / "scratch" / runtime.leaves).exists():
            shutil.copyfile(PLACE / "scratch" / runtime.leaves, target.with_suffix(".leftover"))
        print(f"{runtime.name:10} {case.name:14} {len(output.splitlines()):3} lines")
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


def main() -> None:
    if reason := objection():
        sys.exit(reason)
    path = agents_path()
    for name in sys.argv[1:] or registry.names():
        shutil.rmtree(TARGET / name, ignore_errors=True)
        for case in CASES:
            record(registry.get(name), case, path)


if __name__ == "__main__":
    main()
