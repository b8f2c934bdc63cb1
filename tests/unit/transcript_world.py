"""Recorded transcripts, laid out as the agent CLIs leave them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import msgspec

from remuda.core.events import Usage
from remuda.runtimes import registry
from remuda.runtimes.transcripts import Answer, Mark, Places, Source, Transcripts, collect

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
RUNTIMES = sorted(path.name for path in FIXTURES.iterdir())
DATABASES = ("hermes", "openclaw", "opencode")
LINES = tuple(name for name in RUNTIMES if name not in DATABASES)
FIRST = "What is the answer?\nSecond line: é 🐎"
SECOND = "Write it down."
WORK = Path("/var/tmp/remuda-transcript/work")


class Told(msgspec.Struct, frozen=True):
    """What a recording comes to, by the numbers that the model's server gave."""

    answers: int
    usage: Usage
    model: str


TOLD = {
    "aider": Told(2, Usage(1301, 67), "gpt-5.4"),
    "amplifier": Told(0, Usage(), ""),
    "gemini": Told(3, Usage(790, 97, 1611), "gemini-2.5-flash"),
    "hermes": Told(1, Usage(790, 97, 1611), "gpt-5.4"),
    "openclaw": Told(2, Usage(1171, 48, 31), "gpt-5.4"),
    "opencode": Told(3, Usage(2401, 97, 1611, 123), "claude-sonnet-4-5"),
    "pi": Told(3, Usage(2401, 97, 1611, 123), "claude-sonnet-4-5"),
}


def transcripts(name: str) -> Transcripts:
    known = registry.get(name).transcripts
    assert known is not None
    return known


def build(script: str, path: Path) -> None:
    """A database from its SQL."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def statements(script: str) -> list[str]:
    """The statements of a recorded database, tables first."""
    whole: list[str] = []
    before = ""
    for line in script.splitlines(keepends=True):
        before += line
        if sqlite3.complete_statement(before):
            whole.append(before)
            before = ""
    return sorted(whole, key=lambda statement: not statement.startswith("CREATE"))


def lay_out(name: str, folder: Path) -> Places:
    """A copy of a recording, with its databases built."""
    shutil.copytree(FIXTURES / name, folder, dirs_exist_ok=True)
    for script in folder.rglob("*.sql"):
        build(script.read_text(), script.with_suffix(""))
        script.unlink()
    environ = {"HOME": str(folder / "home")}
    return Places(environ=environ, kept=folder / "kept", folders=(folder / "work",))


def read_all(known: Transcripts, source: Source, mark: Mark | None = None) -> tuple[dict[str, Answer], Mark]:
    """All answers of a source behind a mark, each once."""
    answers: dict[str, Answer] = {}
    mark, more = mark or Mark(), True
    while more:
        batch = known.read(source, mark)
        collect(answers, batch.answers)
        mark, more = batch.mark, batch.more
        assert not batch.trouble
    return answers, mark


def total(answers: dict[str, Answer]) -> Usage:
    return sum((answer.usage for answer in answers.values()), Usage())
