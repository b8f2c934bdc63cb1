"""Measures ``remuda usage`` on a generated Claude Code history against a program that does the same.

All runs are cold but for the ledger: the files themselves are in the system's cache for everybody. The sums
must be equal to what was generated, to the token, or nothing is reported.

Usage: python bench/usage.py [MEGABYTES]
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import history
import peers

PINS = Path(__file__).with_name("usage_peers.txt")
BASE = Path("/var/tmp")
MEGABYTES = 500
ROUNDS = 5

COLD = "remuda usage, cold"
GROWN = "remuda usage, 0.1 % new"
SAME = "remuda usage, nothing new"


class Measured(NamedTuple):
    """One run: seconds of wall and CPU time, and the most memory it had, in MB."""

    wall: float
    cpu: float
    memory: float


class Used(NamedTuple):
    """All runs, by what was run, and how large the history was."""

    megabytes: int
    files: int
    answers: int
    runs: dict[str, list[Measured]]

    def middle(self, name: str) -> Measured:
        """The medians of one kind of run."""
        return Measured(*(statistics.median(column) for column in zip(*self.runs[name], strict=True)))


Totals = tuple[int, int, int, int]


def once(argv: list[str], env: dict[str, str], totals: Callable[[bytes], Totals], truth: Totals) -> Measured:
    """Run a command, and hold its sums to the truth."""
    started = time.perf_counter()
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{argv[0]} failed: {process.stderr.read().decode()[-500:]}")
    process.stdout.close()
    process.stderr.close()
    if (found := totals(output)) != truth:
        raise RuntimeError(f"{argv[0]} has {found}, generated were {truth}")
    return Measured(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def ours(output: bytes) -> Totals:
    total = json.loads(output)["total"]
    return (
        *(total["input_tokens"], total["output_tokens"]),
        *(total["cached_read_tokens"], total["cached_write_tokens"]),
    )


def theirs(output: bytes) -> Totals:
    total = json.loads(output)["totals"]
    return (
        *(total["inputTokens"], total["outputTokens"]),
        *(total["cacheReadTokens"], total["cacheCreationTokens"]),
    )


class Bench:
    """A history, and who is to read it."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.written = history.write(folder / "claude", megabytes * 1_000_000)
        self.files = sorted((folder / "claude").glob("**/*.jsonl"))
        self.truth: Totals = (
            *(self.written.input, self.written.output),
            *(self.written.cached_read, self.written.cached_write),
        )
        self.folder = folder
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "TZ": "UTC",
        }
        (folder / "home").mkdir()
        self.ledgers = 0
        self.peers = {
            peer.package: [str(program), *peer.command[1:]]
            for peer in peers.pinned(PINS)
            if (program := peers.installed(peer))
        }

    def remuda(self, *, cold: bool) -> Measured:
        self.ledgers += cold
        home = {**self.env, "REMUDA_HOME": str(self.folder / f"remuda-{self.ledgers}")}
        remuda = str(Path(sys.executable).with_name("remuda"))
        return once([remuda, "usage", "--json"], home, ours, self.truth)

    def grow(self) -> None:
        """Go on with one session in ten."""
        dice, pool = random.Random(self.ledgers), "more of the same " * 1000
        for number, path in enumerate(self.files[::10]):
            talk = history.Talk(dice, pool, number)
            with path.open("a") as stream:
                for _ in range(4):
                    stream.write("".join(talk.exchange()))
            _, plain, written, read, output = talk.counts
            added = (plain, output, read, written)
            self.truth = (
                self.truth[0] + added[0],
                self.truth[1] + added[1],
                self.truth[2] + added[2],
                self.truth[3] + added[3],
            )

    def round(self, runs: dict[str, list[Measured]]) -> None:
        """Everybody once, in an order that changes; then what is new, and nothing new."""
        todo: list[tuple[str, Callable[[], Measured]]] = [(COLD, lambda: self.remuda(cold=True))]
        for name, argv in self.peers.items():
            todo.append((name, lambda argv=argv: once(argv, self.env, theirs, self.truth)))  # type: ignore[misc]
        random.shuffle(todo)
        for name, run in todo:
            runs.setdefault(name, []).append(run())
        self.grow()
        runs.setdefault(GROWN, []).append(self.remuda(cold=False))
        runs.setdefault(SAME, []).append(self.remuda(cold=False))


def measure(megabytes: int = MEGABYTES, rounds: int = ROUNDS) -> Used:
    """Generate a history, have it read by everybody, and throw it away."""
    with tempfile.TemporaryDirectory(prefix="remuda-usage-", dir=BASE) as folder:
        bench = Bench(Path(folder), megabytes)
        runs: dict[str, list[Measured]] = {}
        bench.round({})
        for _ in range(rounds):
            bench.round(runs)
        return Used(megabytes, len(bench.files), bench.written.answers, runs)


def show(used: Used) -> None:
    """Print the medians."""
    size = f"{used.megabytes} MB in {used.files} files, {used.answers:,} answers"
    rounds = f"median of {len(used.runs[COLD])} interleaved runs"
    print(f"\nTranscripts: {size}; {rounds}; all sums are equal, to the token")
    print(f"  {'':32}{'wall s':>8}{'CPU s':>8}{'MB':>8}")
    for name in used.runs:
        middle = used.middle(name)
        print(f"  {name:32}{middle.wall:8.2f}{middle.cpu:8.2f}{middle.memory:8.0f}")


def judge(used: Used) -> dict[str, bool]:
    """The targets, and whether they are met."""
    cold, same, grown = used.middle(COLD), used.middle(SAME), used.middle(GROWN)
    verdicts = {}
    for name in used.runs.keys() - {COLD, SAME, GROWN}:
        peer = used.middle(name)
        verdicts[f"usage, cold, faster than {name}"] = cold.wall < peer.wall and cold.cpu < peer.cpu
        verdicts[f"usage, cold, with less memory than {name}"] = cold.memory < peer.memory
        verdicts[f"usage with little new in a fifth of the time of {name}"] = grown.wall * 5 < peer.wall
        verdicts[f"usage with nothing new in a fifth of the time of {name}"] = same.wall * 5 < peer.wall
    return verdicts


def main() -> None:
    used = measure(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES)
    show(used)
    for target, met in judge(used).items():
        print(f"  {'met   ' if met else 'missed'}  {target}")


if __name__ == "__main__":
    main()
