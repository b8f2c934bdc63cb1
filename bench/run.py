"""Measures start-up and run overhead, prints ratios, and writes bench/results/latest.json.

Usage: python bench/run.py        (`make bench` installs what it needs first)
"""

from __future__ import annotations

import compileall
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import peers
import startup
from measure import Timing, Timings, cpu, extra, ratio, wall

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "bench" / "results" / "latest.json"


def main() -> None:
    compileall.compile_dir(ROOT / "src", quiet=2)
    agents_folder = Path(_output("tools/agents.py"))
    started = startup.measure(agents_folder)
    overheads = run_overhead(agents_folder)
    print_startup(started)
    print_overheads(overheads)
    verdicts = judge(started, overheads)
    print_verdicts(verdicts)
    write(started, overheads, verdicts)


def _output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def run_overhead(agents_folder: Path) -> dict[str, Timings]:
    """The real agent CLIs only ever run where there is no network."""
    inside = (sys.executable, "bench/overhead.py", str(agents_folder), str(peers.cache_folder()))
    measured = json.loads(_output("tools/loopback.py", *inside))
    return {
        agent: {way: [Timing(*each) for each in timings] for way, timings in ways.items()}
        for agent, ways in measured.items()
    }


def print_startup(started: Timings) -> None:
    floor = started[startup.FLOOR]
    print(f"\nStart-up: median of {len(floor)} interleaved runs, in ms, and as a multiple of the floor")
    print(f"  {'':24}{'wall':>8}{'':>8}{'CPU':>10}")
    for title, timings in started.items():
        times = ratio(timings, floor)
        print(f"  {title:24}{wall(timings):8.1f}{times.wall:7.2f}x{cpu(timings):10.1f}{times.cpu:7.2f}x")


def print_overheads(overheads: dict[str, Timings]) -> None:
    print("\nA run through Remuda and the same call made directly: median of interleaved runs, in ms")
    print(f"  {'':24}{'remuda':>8}{'direct':>8}{'added wall':>14}{'added CPU':>12}")
    for agent, ways in overheads.items():
        added = extra(ways["remuda"], ways["direct"])
        middles = wall(ways["remuda"]), wall(ways["direct"])
        title = f"{agent} (n={len(ways['direct'])})"
        print(f"  {title:24}{middles[0]:8.0f}{middles[1]:8.0f}{added.wall:14.0f}{added.cpu:12.0f}")


def judge(started: Timings, overheads: dict[str, Timings]) -> dict[str, bool]:
    """The targets, and whether they are met."""
    version, overview = started["remuda --version"], started["remuda --help"]
    verdicts = {
        "remuda --version within 1.5x of the bare interpreter": ratio(version, started[startup.FLOOR]).wall
        <= 1.5
    }
    if peer := started.get("cao --help"):
        verdicts["remuda --help under half of cao --help"] = ratio(overview, peer).wall < 0.5
    for agent, ways in overheads.items():
        verdicts[f"remuda run --agent {agent} adds under 100 ms"] = (
            extra(ways["remuda"], ways["direct"]).wall < 100
        )
    return verdicts


def print_verdicts(verdicts: dict[str, bool]) -> None:
    print("\nTargets")
    for target, met in verdicts.items():
        print(f"  {'met   ' if met else 'missed'}  {target}")


def write(started: Timings, overheads: dict[str, Timings], verdicts: dict[str, bool]) -> None:
    document = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "load": os.getloadavg(),
        },
        "startup": {
            title: {
                "wall_ms": wall(timings),
                "cpu_ms": cpu(timings),
                "times_floor": ratio(timings, started[startup.FLOOR])._asdict(),
                "n": len(timings),
            }
            for title, timings in started.items()
        },
        "overhead": {
            agent: {
                **{f"{way}_wall_ms": wall(timings) for way, timings in ways.items()},
                "added": extra(ways["remuda"], ways["direct"])._asdict(),
                "n": len(ways["direct"]),
            }
            for agent, ways in overheads.items()
        },
        "targets": verdicts,
    }
    LATEST.parent.mkdir(parents=True, exist_ok=True)
    LATEST.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
