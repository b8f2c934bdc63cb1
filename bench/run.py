"""Measures start-up, hooks, run overhead, sessions, transcripts and tasks; prints ratios.

The numbers are written to bench/results/latest.json.

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

import hooks
import peers
import sessions
import startup
import tasks
import usage
from measure import Timing, Timings, cpu, extra, ratio, wall

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "bench" / "results" / "latest.json"


def main() -> None:
    compileall.compile_dir(ROOT / "src", quiet=2)
    agents_folder = Path(_output("tools/agents.py"))
    started = startup.measure(agents_folder)
    hooked = hooks.measure(agents_folder)
    overheads = run_overhead(agents_folder)
    held = session_times(agents_folder)
    used = usage.measure()
    loaded = tasks.measure()
    print_startup(started)
    print_hooks(hooked)
    print_overheads(overheads)
    sessions.show(held)
    usage.show(used)
    tasks.show(loaded)
    verdicts = {
        **judge(started, overheads),
        **judge_hooks(hooked),
        **usage.judge(used),
        **tasks.judge(loaded),
    }
    print_verdicts(verdicts)
    write(started, hooked, overheads, held, used, loaded, verdicts)


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


def session_times(agents_folder: Path) -> sessions.Measured:
    """Sessions of the real CLIs, likewise."""
    inside = (sys.executable, "bench/sessions.py", str(agents_folder), str(peers.cache_folder()))
    return sessions.read(_output("tools/loopback.py", *inside))


def print_startup(started: Timings) -> None:
    print_table("Start-up", started, started[startup.FLOOR])


def print_hooks(hooked: hooks.Hooks) -> None:
    print_table("A hook's round trip", hooked.trips, hooked.trips[hooks.FLOOR])
    print(f"  and {hooked.resident_cpu:.1f} ms of CPU in the resident process for each that it answers")
    middle, late = (hooks.percentile(hooked.decisions, share) for share in (50, 95))
    print(f"\nA verdict in this process: p50 {middle:.2f} ms, p95 {late:.2f} ms")


def print_table(title: str, measured: Timings, floor: list[Timing]) -> None:
    print(f"\n{title}: median of {len(floor)} interleaved runs, in ms, and as a multiple of the floor")
    print(f"  {'':32}{'wall':>8}{'':>8}{'CPU':>10}")
    for name, timings in measured.items():
        times = ratio(timings, floor)
        print(f"  {name:32}{wall(timings):8.1f}{times.wall:7.2f}x{cpu(timings):10.1f}{times.cpu:7.2f}x")


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


def judge_hooks(hooked: hooks.Hooks) -> dict[str, bool]:
    """The targets for hooks, and whether they are met."""
    resident, alone = hooked.trips[hooks.RESIDENT], hooked.trips[hooks.ALONE]
    verdicts = {
        "a verdict under 0.5 ms (p50)": hooks.percentile(hooked.decisions, 50) < 0.5,
        "a hook within 12 ms of CPU, with the resident process": cpu(resident) <= 12,
        "a hook within 45 ms of CPU, alone": cpu(alone) <= 45,
    }
    for peer in peers.pinned(hooks.PINS):
        if timings := hooked.trips.get(peer.title):
            verdicts[f"a hook 5x faster than {peer.title}"] = ratio(timings, resident).cpu >= 5
    return verdicts


def print_verdicts(verdicts: dict[str, bool]) -> None:
    print("\nTargets")
    for target, met in verdicts.items():
        print(f"  {'met   ' if met else 'missed'}  {target}")


def write(
    started: Timings,
    hooked: hooks.Hooks,
    overheads: dict[str, Timings],
    held: sessions.Measured,
    used: usage.Used,
    loaded: tasks.Loaded,
    verdicts: dict[str, bool],
) -> None:
    document = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "load": os.getloadavg(),
        },
        "startup": rows(started, started[startup.FLOOR]),
        "hooks": {
            "verdict_ms": {f"p{share}": hooks.percentile(hooked.decisions, share) for share in (50, 95)},
            "round_trip": rows(hooked.trips, hooked.trips[hooks.FLOOR]),
            "resident_cpu_ms": hooked.resident_cpu,
        },
        "overhead": {
            agent: {
                **{f"{way}_wall_ms": wall(timings) for way, timings in ways.items()},
                "added": extra(ways["remuda"], ways["direct"])._asdict(),
                "n": len(ways["direct"]),
            }
            for agent, ways in overheads.items()
        },
        "sessions": sessions.rows(held),
        "usage": {name: used.middle(name)._asdict() for name in used.runs},
        "tasks": tasks.rows(loaded),
        "targets": verdicts,
    }
    LATEST.parent.mkdir(parents=True, exist_ok=True)
    LATEST.write_text(json.dumps(document, indent=2) + "\n")


def rows(measured: Timings, floor: list[Timing]) -> dict[str, object]:
    """Each command's medians, and what they are of the floor's."""
    return {
        title: {
            "wall_ms": wall(timings),
            "cpu_ms": cpu(timings),
            "times_floor": ratio(timings, floor)._asdict(),
            "n": len(timings),
        }
        for title, timings in measured.items()
    }


if __name__ == "__main__":
    main()
