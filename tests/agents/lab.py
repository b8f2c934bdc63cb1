"""A clean home, a scripted model and the real ``remuda`` process for one test."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from tests.agents.processes import Process, carrying

from remuda.core import evidence
from remuda.core.events import Result
from remuda.core.files import write_atomic
from remuda.dispatch import installation
from remuda.operations.guarding import CLAIM
from remuda.prompts import selection
from remuda.rehearsal.scenario import Rule, Scenario, Step, load_scenario
from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes.base import UNVERIFIED, Arrival, Runtime

REMUDA = Path(sys.executable).parent / "remuda"
SLOWEST = 60.0
USUAL_STARTUP = 2.0
LOAD = 3.0
"""How much longer a start may take here, where several agents share the machine."""

RESIDENT = b"remuda.hooks.resident"
"""On the command line of the process that answers hooks, which ends by itself."""

Json = dict[str, Any]

DONE = Step(text="All done.")


def script(*steps: Step) -> Scenario:
    """A scenario that goes through these steps whatever it is asked."""
    return Scenario("test", (Rule(steps),))


def shell(command: str) -> Step:
    """A step that calls the shell tool."""
    return Step(tool="shell", input={"command": command})


def arrives(how: Arrival, heard: str, sent: str) -> bool:
    """Whether the model heard what was sent."""
    match how:
        case "exact":
            return heard == sent
        case "trimmed":
            return sent.strip() in heard
        case "contained":
            return sent in heard


class Ended(msgspec.Struct, frozen=True):
    """A ``remuda`` process that has ended."""

    code: int
    stdout: bytes
    stderr: str
    seconds: float

    @property
    def lines(self) -> list[Json]:
        """The event lines, as any program reads them."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def updates(self) -> list[Json]:
        return [line["update"] for line in self.lines if "update" in line]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the updates, in order; chunks that follow each other count as one. How full the
        context is may be told at any time."""
        kinds = (update["sessionUpdate"] for update in self.updates)
        return [kind for kind, _ in groupby(kind for kind in kinds if kind != "usage_update")]

    def joined(self, kind: str) -> str:
        """The text of all chunks of a kind."""
        return "".join(u["content"]["text"] for u in self.updates if u["sessionUpdate"] == kind)

    @property
    def result(self) -> Result:
        """The result, which is in the last line and nowhere else."""
        *before, last = self.lines
        assert not any("result" in line for line in before)
        return msgspec.convert(last["result"], Result)

    @property
    def session(self) -> str:
        session = self.lines[-1]["session"]
        assert isinstance(session, str)
        return session

    @property
    def tool_outputs(self) -> str:
        """Everything that tools put out."""
        return "\n".join(
            part["content"]["text"]
            for update in self.updates
            if update["sessionUpdate"] == "tool_call_update"
            for part in update.get("content", [])
        )


class Lab:
    """Runs ``remuda`` on one runtime. Every process it starts carries ``token`` in its environment."""

    def __init__(self, runtime: Runtime, folder: Path, server: RehearsalServer, path: str) -> None:
        self.runtime = runtime
        self.server = server
        self.token = f"lab-{uuid.uuid4().hex}"
        self.home, self.cwd = folder / "home", folder / "work"
        self.home.mkdir()
        self.cwd.mkdir()
        self.env = {
            "PATH": path,
            "HOME": str(self.home),
            "REMUDA_HOME": str(self.home / "remuda"),
            "REMUDA_ENDPOINT": server.url,
            "REMUDA_MARK": self.token,
            "LANG": "C.UTF-8",
        }

        self._know_the_guard()

    def _know_the_guard(self) -> None:
        """The guard counts as seen at work here, so that not every test has to prove it first."""
        found = self.runtime.locate(self.runtime.binary, self.env)
        if found is None or self.runtime.verified_version == UNVERIFIED:
            return
        home = self.home / "remuda"
        evidence.store(
            home / "state" / "evidence.jsonl",
            evidence.Evidence(
                runtime=self.runtime.name,
                version=self.runtime.verified_version,
                what=CLAIM,
                holds=True,
                seen_at="2026-01-01T00:00:00Z",
                how="taken for granted by the tests",
            ),
        )
        versions = {installation.fingerprint(found[0]): self.runtime.verified_version}
        write_atomic(home / "cache" / installation.CACHE, msgspec.json.encode(versions))

    def play(self, *steps: Step) -> None:
        """Let the model go through these steps."""
        self.server.set_scenario(script(*steps))

    def rehearse(self, name: str) -> None:
        """Let the model play a built-in scenario."""
        self.server.set_scenario(load_scenario(name))

    def configure(self, text: str) -> None:
        """Write the user's configuration."""
        file = self.home / "remuda" / "config" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def within(self, seconds: float) -> float:
        """How long something may take that most programs do in so many seconds, their start included."""
        return seconds + LOAD * max(0.0, self.runtime.conduct.startup - USUAL_STARTUP)

    def write(self, name: str, word: str) -> tuple[Step, ...]:
        """Steps by which a model has a file of one word written, with whatever it is offered."""
        if reply := self.runtime.conduct.edit_reply:
            return (Step(text=reply.format(path=name, content=f"{word}\n")),)
        return (shell(f"echo {word} > {name}"), DONE)

    @property
    def bypass(self) -> tuple[str, ...]:
        """The options that let the agent do anything."""
        needed = self.runtime.conduct.bypass_as_root if os.geteuid() == 0 else {}
        return ("--permission", "bypass", *(f"--env={name}={value}" for name, value in needed.items()))

    def command(self, *options: str, prompt: str = "-", extra: tuple[str, ...] = ()) -> list[str]:
        """The command line of a run."""
        usual = self.bypass if "ask" in self.runtime.conduct.refuses else ()
        after = ("--", *extra) if extra else ()
        agent = ("--agent", self.runtime.name)
        return [str(REMUDA), "run", "--json", *agent, *usual, *options, prompt, *after]

    def run(
        self,
        prompt: str,
        *options: str,
        extra: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run the agent on a prompt that is given by standard input, and wait for its end."""
        return self.call(self.command(*options, extra=extra), prompt.encode(), env)

    def call(
        self,
        command: list[str],
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        """Run any command line to its end."""
        started = time.monotonic()
        ended = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=self.cwd,
            env={**self.env, **(env or {})},
            timeout=timeout or self.within(SLOWEST),
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr.decode(), time.monotonic() - started)

    @contextlib.contextmanager
    def running(self, prompt: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """A run in progress; whatever is left of it afterwards is ended."""
        process = subprocess.Popen(
            self.command(*options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env=self.env,
        )
        try:
            assert process.stdin is not None
            process.stdin.write(prompt.encode())
            process.stdin.close()
            process.stdin = None
            yield process
        finally:
            process.kill()
            process.communicate()

    def finish(self, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for the end of a run in progress."""
        started = time.monotonic()
        stdout, stderr = process.communicate(timeout=self.within(SLOWEST))
        return Ended(process.returncode, stdout, stderr.decode(), time.monotonic() - started)

    def processes(self) -> list[Process]:
        """Everything that this lab started and that still runs, however it detached itself."""
        return carrying(self.token)

    def settled(self) -> list[Process]:
        """What sessions have started and left: it does not carry the token, for it is there to stay."""
        return [process for process in carrying(str(self.home)) if RESIDENT not in process.argv]

    def prompts(self) -> list[str]:
        """The prompts that reached the model."""
        return [heard.prompt for heard in self.server.heard() if heard.api]

    def arrived(self, prompt: str, requested: selection.Requested = "auto") -> bool:
        """Whether a prompt reached the model as its channel declares."""
        sent = self.runtime.disarm(prompt)
        mode = selection.select(self.runtime, requested, len(sent.encode())).mode
        return any(arrives(self.runtime.channel(mode).arrives, heard, sent) for heard in self.prompts())

    def texts(self) -> str:
        """All that the model was told, in system and user texts."""
        return "\n".join("\n".join((heard.system, *heard.user_texts)) for heard in self.server.heard())
