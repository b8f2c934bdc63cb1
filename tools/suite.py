"""Runs tests, and tells those that fail from those that are unsteady.

Usage: python tools/suite.py [PYTEST ARGUMENT…]

Thousands of processes on a busy machine: now and then one test of thousands meets a bound of time. Up to FEW
tests that fail are run again, one at a time with nothing beside them, AGAIN times each. One that holds every
time is named UNSTEADY, for somebody to look at; one that fails once more, or one failure too many, fails the
suite.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FEW = 6
AGAIN = 3
_SOME_FAILED = 1


def run(cache: Path, *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, check=False).returncode


def failed(cache: Path) -> list[str]:
    """The tests that failed when this cache was last written."""
    try:
        return [*json.loads((cache / "v" / "cache" / "lastfailed").read_text())]
    except FileNotFoundError:
        return []


def steady(test: str, cache: Path) -> bool:
    """Whether a test that failed among others holds alone."""
    return all(run(cache, "-q", test) == 0 for _ in range(AGAIN))


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="remuda-suite-") as folder:
        code = run(Path(folder, "all"), *sys.argv[1:])
        suspects = failed(Path(folder, "all"))
        if code != _SOME_FAILED or not 0 < len(suspects) <= FEW:
            return code
        print(f"\nOnce more, each alone: {', '.join(suspects)}", flush=True)
        broken = [test for test in suspects if not steady(test, Path(folder, "alone"))]
    for test in suspects:
        print(f"{'FAILED' if test in broken else 'UNSTEADY'}: {test}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
