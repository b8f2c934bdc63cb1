"""Records what each agent CLI says in well-known situations, for tests/unit/test_streams.py.

Usage: python tools/loopback.py python tools/record_fixtures.py [RUNTIME…]

A recording holds the lines in the order in which they were heard: ``> `` stands before those of standard
output, ``! `` before those of standard error.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.agents.network import objection  # noqa: E402

from remuda.core import paths  # noqa: E402
from remuda.core.config import Config  # noqa: E402
from remuda.core.events import AnyUpdate  # noqa: E402
from remuda.operations.environment import ENDPOINT  # noqa: E402
from remuda.operations.requests import RunRequest  # noqa: E402
from remuda.operations.run import Live, begin  # noqa: E402
from remuda.operations.world import World  # noqa: E402
from remuda.rehearsal.exchange import Usage  # noqa: E402
from remuda.rehearsal.scenario import Rule, Scenario, Step, load_scenario  # noqa: E402
from remuda.rehearsal.server import RehearsalServer  # noqa: E402
from remuda.runtimes import registry  # noqa: E402
from remuda.runtimes.base import Conduct, Parser, Permission, Runtime  # noqa: E402
from remuda.sessions import headless  # noqa: E402

TARGET = ROOT / "tests" / "fixtures" / "streams"
PLACE = Path("/var/tmp/remuda-fixture")
STANDINS = ROOT / "tests" / "standins"

TEXT = Scenario("text", (Rule((Step(text="The answer is 42 🐎.", usage=Usage(301, 17, 11, 3)),)),))
TOOL = (
    Step(
        thought="A file will do.",
        tool="shell",
        input={"command": "echo written > f.txt && cat f.txt"},
        usage=Usage(1000, 50, 600, 100),
    ),
    Step(text="It says: written", usage=Usage(1100, 30, 1000, 20)),
)


class Case(msgspec.Struct, frozen=True):
    """A situation: what the model does, what it is asked, and what the agent may do."""

    name: str
    scenario: Scenario
    prompt: str = "What is the answer?"
    permission: Permission = "ask"


def writes(conduct: Conduct) -> Scenario:
    """The model has a file written."""
    if conduct.edit_reply is None:
        return Scenario("tool", (Rule(TOOL),))
    reply = conduct.edit_reply.format(path="f.txt", content="written\n")
    return Scenario("tool", (Rule((Step(text=reply, usage=Usage(1000, 50, 600, 100)),)),))


def cases(conduct: Conduct) -> Iterator[Case]:
    """The situations that a program may come into."""
    usual: Permission = "bypass" if "ask" in conduct.refuses else "ask"
    yield Case("text", TEXT, permission=usual)
    yield Case("tool", writes(conduct), permission="bypass")
    if usual == "ask":
        yield Case("refused-tool", writes(conduct))
    for word in ("401", "429", "500", *(["drop"] if conduct.drop == "fails" else [])):
        yield Case(word, load_scenario("errors"), f"rehearse-{word}", usual)


class Recorder:
    """A parser that notes what it hears."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self.state = parser.state
        self.heard: list[bytes] = []

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        self.heard.append(b"> " + line)
        return self._parser.feed(line)

    def hear(self, line: bytes) -> None:
        self.heard.append(b"! " + line)
        self._parser.hear(line)

    def say(self) -> bytes | None:
        return self._parser.say()

    def finish(self, leftover: bytes | None) -> None:
        self._parser.finish(leftover)


def agents_path() -> str:
    """The PATH with the pinned CLIs, and stand-ins for those that are nowhere else."""
    answer = subprocess.run(
        [sys.executable, ROOT / "tools" / "agents.py", "--path"], check=False, capture_output=True, text=True
    )
    if answer.returncode != 0:
        sys.exit("the agent CLIs are not installed: run 'make agents'")
    return f"{answer.stdout.strip()}:/usr/bin:/bin:{STANDINS}"


async def listen(runtime: Runtime, case: Case, endpoint: str, path: str) -> tuple[list[bytes], bytes | None]:
    """What a program says in a run with a home of its own, and the file that it leaves."""
    home, work = PLACE / "home", PLACE / "work"
    home.mkdir(parents=True)
    work.mkdir()
    environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", ENDPOINT: endpoint}
    world = World(environ, work, paths.folders(environ), Config())
    request = RunRequest(
        prompt=case.prompt,
        agent=runtime.name,
        permission=case.permission,
        env=runtime.conduct.bypass_as_root if case.permission == "bypass" else {},
    )
    with begin(world, request) as begun:
        assert isinstance(begun.state, Live), begun.state
        job = begun.state.job
        recorder = Recorder(job.parser)
        job = msgspec.structs.replace(job, parser=recorder)
        async for _ in headless.follow(job, begun.state.process, asyncio.Event()):
            pass
        left = job.leftover and job.leftover.exists() and job.leftover.read_bytes()
    return recorder.heard, left or None


def anonymous(text: bytes, path: str) -> bytes:
    """The same text without the folders of this machine."""
    agents = Path(path.partition(":")[0]).parent
    for folder, name in ((agents, b"/agents"), (ROOT, b"/remuda"), (Path.home(), b"~")):
        text = text.replace(str(folder).encode(), name)
    return text


def record(runtime: Runtime, case: Case, path: str) -> None:
    """Write one recording, and the file that the program left if it is one that does."""
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        with RehearsalServer(case.scenario) as server:
            heard, left = asyncio.run(listen(runtime, case, server.url, path))
        target = TARGET / runtime.name / f"{case.name}.stream"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(anonymous(b"".join(line + b"\n" for line in heard), path))
        if left is not None:
            target.with_suffix(".leftover").write_bytes(left)
        print(f"{runtime.name:10} {case.name:14} {len(heard):3} lines")
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


def main() -> None:
    if reason := objection():
        sys.exit(reason)
    path = agents_path()
    for name in sys.argv[1:] or registry.names():
        shutil.rmtree(TARGET / name, ignore_errors=True)
        for case in cases(registry.get(name).conduct):
            record(registry.get(name), case, path)


if __name__ == "__main__":
    main()
