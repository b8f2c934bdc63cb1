"""What Remuda adds to a run of a real agent CLI, against the same scripted model.

Run by run.py inside the namespace that has no network but loopback; prints its timings as JSON. The direct
call uses the very arguments, environment and standard input that Remuda gave to a stand-in program first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import Command, Timings, interleaved

from remuda.rehearsal.scenario import load_scenario
from remuda.rehearsal.server import RehearsalServer

AGENTS = ("claude", "codex")
ROUNDS = 20
PROMPT = "hi"

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STAND_IN = """#!{python}
import json, os, sys
call = {{"arguments": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.read()}}
open({path!r}, "x").write(json.dumps(call))  # a later call asks for the version
"""


def measure(agent: str, agents_folder: Path, home: Path, endpoint: str) -> Timings:
    """Time ``remuda run`` and the direct call in turn."""
    work = home / "work"
    work.mkdir()
    path = os.pathsep.join((str(agents_folder), os.environ["PATH"]))
    env = {"PATH": path, "HOME": str(home), "REMUDA_ENDPOINT": endpoint, "LANG": "C.UTF-8"}
    program = str(Path(sys.executable).with_name("remuda"))
    through = Command((program, "run", "--agent", agent, "--json", PROMPT), env, work)
    direct = _recorded(agent, through, home)
    return interleaved({"remuda": lambda: through, "direct": direct}, ROUNDS)


def _recorded(agent: str, through: Command, home: Path) -> Callable[[], Command]:
    """Let Remuda start a stand-in that writes down how it was called; replay that with a new session id."""
    record, stand_in, settings = home / "call.json", home / "stand-in", home / "settings"
    stand_in.write_text(_STAND_IN.format(python=sys.executable, path=str(record)))
    stand_in.chmod(0o700)
    (settings / "config").mkdir(parents=True)
    (settings / "config" / "config.toml").write_text(f'[runtimes.{agent}]\nbinary = "{stand_in}"\n')
    env = {**through.env, "REMUDA_HOME": str(settings)}
    subprocess.run(through.argv, env=env, cwd=through.cwd, check=False, capture_output=True)
    call = json.loads(record.read_text())
    kept = {name: value for name, value in call["env"].items() if name not in ("REMUDA_HOME", "REMUDA_MARK")}

    def direct() -> Command:
        session = str(uuid.uuid4())
        arguments = [UUID.sub(session, argument) for argument in call["arguments"]]
        return Command((agent_program(agent, through), *arguments), kept, through.cwd, call["stdin"].encode())

    return direct


def agent_program(agent: str, through: Command) -> str:
    """The program that Remuda finds on the same PATH."""
    folders = through.env["PATH"].split(os.pathsep)
    return next(str(Path(folder, agent)) for folder in folders if Path(folder, agent).exists())


@contextlib.contextmanager
def place(base: Path) -> Iterator[Path]:
    """A home of its own, not below the folder for temporary files, where Codex's sandbox does not work."""
    base.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, prefix="home-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def main() -> None:
    """Measure every agent: overhead.py AGENTS_FOLDER CACHE_FOLDER."""
    agents_folder, cache = (Path(argument) for argument in sys.argv[1:])
    timings = {}
    with RehearsalServer(load_scenario("default")) as server:
        for agent in AGENTS:
            with place(cache) as home:
                timings[agent] = measure(agent, agents_folder, home, server.url)
    print(json.dumps(timings))


if __name__ == "__main__":
    main()
