"""Runs commands in interleaved, random order and keeps the wall and CPU time of each run."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Command(NamedTuple):
    """A program to time. Its output is thrown away; ``stdin`` must fit into a pipe."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes = b""


class Timing(NamedTuple):
    """One run, in milliseconds; the CPU time includes that of the processes it waited for."""

    wall: float
    cpu: float


Timings = dict[str, list[Timing]]


def once(command: Command) -> Timing:
    """Run a command to its end; one that fails cannot be compared, and is an error."""
    reading, writing = os.pipe()
    os.write(writing, command.stdin)
    os.close(writing)
    started = time.perf_counter()
    process = subprocess.Popen(
        command.argv,
        env=command.env,
        cwd=command.cwd,
        stdin=reading,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    os.close(reading)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command.argv[0]} ended with exit code {process.returncode}")
    return Timing(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000)


def always(command: Command) -> Callable[[], Command]:
    """The same command every time."""
    return lambda: command


def interleaved(commands: Mapping[str, Callable[[], Command]], rounds: int) -> Timings:
    """Run all commands once to warm up, then once a round in an order that changes every round."""
    timings: Timings = {name: [] for name in commands}
    for make in commands.values():
        once(make())
    names = list(commands)
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            timings[name].append(once(commands[name]()))
    return timings


def wall(timings: Sequence[Timing]) -> float:
    """The median wall time."""
    return statistics.median(timing.wall for timing in timings)


def cpu(timings: Sequence[Timing]) -> float:
    """The median CPU time."""
    return statistics.median(timing.cpu for timing in timings)


def extra(longer: Sequence[Timing], shorter: Sequence[Timing]) -> Timing:
    """The median difference of two commands, round by round, so that a slow spell counts for both."""
    pairs = list(zip(longer, shorter, strict=True))
    return Timing(
        statistics.median(a.wall - b.wall for a, b in pairs),
        statistics.median(a.cpu - b.cpu for a, b in pairs),
    )


def ratio(timings: Sequence[Timing], base: Sequence[Timing]) -> Timing:
    """The median ratio of two commands, round by round, for the same reason."""
    pairs = list(zip(timings, base, strict=True))
    return Timing(
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(a.cpu / b.cpu for a, b in pairs),
    )
