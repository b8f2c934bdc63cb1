"""A worker that hangs is ended with its agents, by a thread of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import PATIENCE, alive, eventually, read_pid

HANGS = """
import os, subprocess, sys, time
from remuda.core.reaper import MARK
from remuda.operations.worker.fencing import Fence
fence = Fence("worker-of-a-test", 2.0)
fence.watch()
agent = subprocess.Popen(
    [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"],
    env={**os.environ, MARK: f"worker-of-a-test/{os.getpid()}"},
)
open(sys.argv[1], "w").write(f"{agent.pid}\\n")
end = time.monotonic() + 3
while time.monotonic() < end:
    time.sleep(0.05)
    fence.seen = time.monotonic()
open(sys.argv[1] + ".silent", "w").close()
time.sleep(600)
"""


def test_a_worker_that_hangs_is_ended_with_its_agents(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    worker = subprocess.Popen([sys.executable, "-c", HANGS, str(place)], env=dict(os.environ))
    agent = read_pid(place)
    eventually((tmp_path / "pid.silent").exists)
    assert alive(agent)
    assert worker.wait(PATIENCE) == 1
    assert not alive(agent)
