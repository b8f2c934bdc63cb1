"""Scores the guard against labelled tool calls: what it stops and passes rightly, and how long that takes.

Usage: python tools/guard_score.py [--failures] [FOLDER]

FOLDER (default: $REMUDA_GUARD_CORPUS) holds *.jsonl files of cases as 'remuda guard check --batch' reads
them, each with 'expected' (allow, ask, deny) and perhaps 'accept' (the answers that are tolerated). A program
'in-fixture' in it runs a command where the cases' paths exist; it needs root. Without a folder nothing is
done.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remuda.guard.model import Decision
from remuda.operations.guard import Answer, Case, check
from remuda.operations.world import World, open_world

_INSIDE = "REMUDA_GUARD_FIXTURE"
_HEAD = f"{'':<34} cases  accuracy  false allow  false deny  needless ask   exact"


class Labelled(Case, frozen=True):
    """A case with the answers that are right for it."""

    source: str = ""
    expected: Decision = "deny"
    accept: list[Decision] | None = None

    @property
    def right(self) -> set[Decision]:
        return set(self.accept or ([self.expected] if self.expected != "ask" else ["ask", "deny"]))


class Outcome(msgspec.Struct, frozen=True):
    """A case, its answer, and how long that took, in milliseconds."""

    case: Labelled
    answer: Answer
    took: float

    @property
    def kind(self) -> str:
        """How the answer compares: stopped or passed, rightly or not; ``either`` when both are right."""
        right, passes = self.case.right, self.answer.decision == "allow"
        if "allow" in right and len(right) > 1:
            return "either"
        if passes == (right == {"allow"}):
            return "right stop" if not passes else "right pass"
        return "false allow" if passes else f"false {self.answer.decision}"


def judged(world: World, cases: Iterable[Labelled]) -> list[Outcome]:
    outcomes = []
    for case in cases:
        start = time.perf_counter()
        answer = check(world, case)
        outcomes.append(Outcome(case, answer, (time.perf_counter() - start) * 1000))
    return outcomes


def line(name: str, outcomes: list[Outcome]) -> str:
    kinds = Counter(outcome.kind for outcome in outcomes)
    stops = kinds["right stop"] + kinds["false allow"]
    passes = kinds["right pass"] + kinds["false ask"] + kinds["false deny"]
    exact = sum(
        outcome.answer.decision in (outcome.case.accept or [outcome.case.expected]) for outcome in outcomes
    )
    return (
        f"{name:<34}{len(outcomes):>6}"
        f"{share(kinds['right stop'] + kinds['right pass'], stops + passes):>10}"
        f"{share(kinds['false allow'], stops):>13}{share(kinds['false deny'], passes):>12}"
        f"{share(kinds['false ask'], passes):>14}{share(exact, len(outcomes)):>8}"
    )


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def enter_fixture(folder: Path) -> None:
    """Begin again where the paths of the cases exist, if there is a way and it may be taken."""
    fixture = folder / "in-fixture"
    if fixture.exists() and os.geteuid() == 0 and not os.environ.get(_INSIDE):
        os.environ[_INSIDE] = "1"
        os.execv(fixture, [str(fixture), sys.executable, __file__, *sys.argv[1:]])


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--failures"]
    place = arguments[0] if arguments else os.environ.get("REMUDA_GUARD_CORPUS", "")
    if not place or not Path(place).is_dir():
        print("no corpus: set REMUDA_GUARD_CORPUS to a folder of labelled cases; nothing is scored")
        return
    folder = Path(place).absolute()
    enter_fixture(folder)
    world, took = open_world(), list[float]()
    print(_HEAD)
    for path in sorted(folder.glob("*.jsonl")):
        groups: defaultdict[str, list[Labelled]] = defaultdict(list)
        for row in path.read_bytes().splitlines():
            case = msgspec.json.decode(row, type=Labelled)
            groups[case.context.capability if case.context else "supervised"].append(case)
        for capability, cases in groups.items():
            outcomes = judged(world, cases)
            took += [outcome.took for outcome in outcomes]
            print(line(f"{path.stem} {capability}", outcomes))
            if "--failures" in sys.argv:
                show(outcomes)
    cuts = statistics.quantiles(took, n=20)
    print(f"a decision: p50 {cuts[9]:.2f} ms, p95 {cuts[18]:.2f} ms")


def show(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.kind.startswith("false"):
            case = outcome.case
            print(f"    {case.id} {outcome.kind} ({outcome.answer.rule}): {case.command or case.input!r}")


if __name__ == "__main__":
    main()
