"""Runs the documentation's examples, and the programs in examples/, with the built-in rehearsal agent.

A fenced ``sh`` or ``python`` block directly below ``<!-- runs -->`` is executed in an empty home. When
``<!-- prints -->`` and a second block follow it, that is what it must print; ``…`` stands for anything.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support import carrying, eventually

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"^<!-- runs -->\n```(?P<language>sh|python)\n(?P<code>.*?)^```$"
    r"(?:\n<!-- prints -->\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    """One block of a page."""

    place: str
    language: str
    code: str
    output: str | None


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for found in _BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield Example(f"{page.name}:{line}", found["language"], found["code"], found["output"])


EXAMPLES = list(examples())


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An empty home; a worker that an example has started ends with it."""
    home = tmp_path / "home"
    home.mkdir()
    bin_folder = Path(sys.executable).parent
    path = os.pathsep.join((str(bin_folder), "/usr/local/bin", "/usr/bin", "/bin"))
    yield {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
    for pid in carrying(f"HOME={home}"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    eventually(lambda: not carrying(f"HOME={home}"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def run(argv: list[str], work: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        argv,
        cwd=work,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def alike(expected: str, printed: str) -> bool:
    """Whether an output is as expected; ``…`` stands for anything on its line, trailing spaces are free."""
    wanted, got = ([line.rstrip() for line in text.splitlines()] for text in (expected, printed))
    patterns = (".*".join(map(re.escape, line.split("…"))) for line in wanted)
    return len(wanted) == len(got) and all(map(re.fullmatch, patterns, got))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    marks = sum(page.read_text("utf-8").count("<!-- runs -->\n") for page in PAGES)
    assert len(EXAMPLES) == marks, "a mark is not directly above an sh or python block"


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.place for example in EXAMPLES])
def test_example_works(example: Example, work: Path, environ: dict[str, str]) -> None:
    argv = ["sh", "-e", "-c"] if example.language == "sh" else [sys.executable, "-c"]
    printed = run([*argv, example.code], work, environ)
    if example.output is not None:
        assert alike(example.output, printed), printed


def test_comparing_agents_works(work: Path, environ: dict[str, str]) -> None:
    printed = run(
        [sys.executable, str(ROOT / "examples/compare.py"), "hello", "rehearsal", "rehearsal"], work, environ
    )
    assert printed.count("Heard 5 bytes.") == 2


def test_the_example_scenario_plays(work: Path, environ: dict[str, str]) -> None:
    scenario = str(ROOT / "examples/flaky.yaml")
    rehearse = ["remuda", "rehearse", "--scenario", scenario, "--"]
    ask = ["remuda", "run", "--agent", "rehearsal", "--permission", "bypass", "count the files"]
    (work / "a").touch()
    (work / "b").touch()
    assert "There are 2 files here." in run([*rehearse, *ask], work, environ)
