"""What a sandbox adds to a run: the same run of the built-in agent with and without walls, and walls alone.

Usage: python bench/sandbox.py
"""

from __future__ import annotations

import compileall
import os
import sys
import tempfile
from pathlib import Path

from measure import Command, always, cpu, interleaved, wall

from remuda.rehearsal.scenario import load_scenario
from remuda.rehearsal.server import RehearsalServer

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 20
ALONE = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true")


def main() -> None:
    compileall.compile_dir(ROOT / "src", quiet=2)
    program = str(Path(sys.executable).with_name("remuda"))
    with tempfile.TemporaryDirectory() as home, RehearsalServer(load_scenario("default")) as server:
        work = Path(home, "work")
        work.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": home, "REMUDA_ENDPOINT": server.url}
        run = (program, "run", "--agent", "rehearsal", "--json")
        ways = {
            "true": always(Command(("true",), env, work)),
            "bwrap true": always(Command(("bwrap", *ALONE), env, work)),
            "run": always(Command((*run, "hi"), env, work)),
            **{
                f"run --sandbox {profile}": always(Command((*run, "--sandbox", profile, "hi"), env, work))
                for profile in ("workspace", "offline")
            },
        }
        timings = interleaved(ways, ROUNDS)
    plain = timings["run"]
    for name, each in timings.items():
        added = f"  {wall(each) - wall(plain):+6.1f} ms" if name.startswith("run -") else ""
        print(f"{name:<24} {wall(each):7.1f} ms wall {cpu(each):7.1f} ms cpu{added}")


if __name__ == "__main__":
    main()
