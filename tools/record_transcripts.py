"""Records the transcripts that agent CLIs leave, for tests/unit/test_readers_*.py.

Usage: python tools/loopback.py python tools/record_transcripts.py [RUNTIME…]

Each recording is the tree of files in which the transcript lies: ``home`` is the user's, ``kept`` holds the
lasting folders of Remuda's sessions. A database is written as SQL, with the tables that tell something only;
long texts, which are the vendors', are cut out.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tools"))

from record_fixtures import agents_path, anonymous  # noqa: E402
from tests.agents.lab import Lab, script  # noqa: E402
from tests.agents.network import objection  # noqa: E402

from remuda.core.paths import folders  # noqa: E402
from remuda.rehearsal.exchange import Usage  # noqa: E402
from remuda.rehearsal.scenario import Step  # noqa: E402
from remuda.rehearsal.server import RehearsalServer  # noqa: E402
from remuda.runtimes import registry  # noqa: E402
from remuda.runtimes.base import ScratchFile, Turn  # noqa: E402
from remuda.runtimes.transcripts import Places  # noqa: E402

TARGET = ROOT / "tests" / "fixtures" / "transcripts"
PLACE = Path("/var/tmp/remuda-transcript")
RUNTIMES = ("aider", "amplifier", "gemini", "hermes", "openclaw", "opencode", "pi")
LONGEST = 300

TABLES = {
    "hermes": ("sessions", "messages", "session_model_usage"),
    "openclaw": ("session_windows", "transcript_events"),
    "opencode": ("session", "message", "part"),
}
BESIDE = (".project_root", "metadata.json", "session.json")
"""Files near a transcript that its reader needs."""

FIRST = "What is the answer?\nSecond line: é 🐎"
SECOND = "Write it down."
ANSWER = Step(text="The answer is 42 🐎.", usage=Usage(301, 17, 11, 3))
WRITES = (
    Step(tool="shell", input={"command": "echo 42 > f.txt"}, usage=Usage(1000, 50, 600, 100)),
    Step(text="Done.", usage=Usage(1100, 30, 1000, 20)),
)
LONG = Step(text="A long answer. " * 200, usage=Usage(901, 31, 20, 4))


def converse(lab: Lab) -> None:
    """Two turns of one session, the second one with a tool."""
    lab.play(ANSWER)
    first = lab.run(FIRST)
    assert first.result.error is None, first.result.error
    reply = lab.runtime.conduct.edit_reply
    lab.play(
        *(
            (Step(text=reply.format(path="f.txt", content="42\n"), usage=WRITES[0].usage),)
            if reply
            else WRITES
        )
    )
    second = lab.run(SECOND, "--session", first.session, *lab.bypass)
    assert second.result.error is None, second.result.error


def converse_openclaw(lab: Lab) -> None:
    """Its headless runs keep nothing, so these are turns of a lasting session, the second one with a long
    answer, in a configuration as a run would have it."""
    runtime = lab.runtime
    turn = Turn(
        cwd=lab.cwd, scratch=lab.home, keep=lab.home, session="", endpoint=lab.server.url, permission="bypass"
    )
    files = {file.name: file for file in runtime.print_command(turn).files}
    config: ScratchFile = files["openclaw.json"]
    state = lab.home / ".openclaw"
    state.mkdir()
    (state / config.name).write_text(config.content)
    session = "11111111-2222-4333-8444-555555555555"
    command = [
        "openclaw",
        "agent",
        "--local",
        "--agent",
        "main",
        "--session-id",
        session,
        "--json",
        "--message",
    ]
    for prompt, step in ((FIRST, ANSWER), (SECOND, LONG)):
        lab.play(step)
        ended = lab.call([*command, prompt], env={"OPENCLAW_OFFLINE": "1", **runtime.quiet}, timeout=300)
        assert ended.code == 0, ended.stderr


def shortened(value: object) -> object:
    """The same, with long texts cut out wherever they are."""
    match value:
        case str() if len(value) > LONGEST:
            return f"({len(value)} characters)"
        case list():
            return [shortened(item) for item in value]
        case dict():
            return {key: shortened(item) for key, item in value.items()}
        case _:
            return value


def cell(value: object) -> str:
    """A value as SQL."""
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"X'{value.hex()}'"
        case int() | float():
            return repr(value)
    text = str(value)
    if len(text) > LONGEST:
        try:
            text = json.dumps(shortened(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
        except ValueError:
            text = str(shortened(text))
    return "'" + text.replace("'", "''") + "'"


def dump(database: Path, tables: tuple[str, ...]) -> Iterator[str]:
    """Tables as SQL, without the conditions that other versions of SQLite may not know."""
    connection = sqlite3.connect(database)
    for table in tables:
        columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        yield f"CREATE TABLE {table} ({', '.join(' '.join(column) for column in columns)});\n"
        for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid"):
            yield f"INSERT INTO {table} VALUES ({', '.join(map(cell, row))});\n"
    connection.close()


def text_of(path: Path) -> str:
    """A file's text; long texts in lines of JSON are cut out."""
    text = path.read_text()
    if path.suffix != ".jsonl":
        return text
    lines = (json.dumps(shortened(json.loads(line)), ensure_ascii=False) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)


def keep(lab: Lab, path: str) -> int:
    """Copy the transcripts of a lab, and what their reader needs beside them; their number."""
    runtime, kept = lab.runtime, folders(lab.env).data / "sessions"
    assert runtime.transcripts is not None
    target = TARGET / runtime.name
    shutil.rmtree(target, ignore_errors=True)
    sources = list(runtime.transcripts.sources(Places(environ=lab.env, kept=kept, folders=(lab.cwd,))))
    for source in sources:
        near = (folder / name for folder in list(source.path.parents)[:2] for name in BESIDE)
        for file in (source.path, *(file for file in near if file.is_file())):
            within = kept if file.is_relative_to(kept) else lab.home
            copy = target / ("kept" if within == kept else "home") / file.relative_to(within)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if tables := TABLES.get(runtime.name):
                copy = copy.with_name(f"{copy.name}.sql")
                text = "".join(dump(file, tables))
            else:
                text = text_of(file)
            copy.write_bytes(anonymous(text.encode(), path))
    return len(sources)


def record(name: str, path: str) -> None:
    """Record one runtime."""
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    try:
        with RehearsalServer(script(ANSWER)) as server:
            lab = Lab(registry.get(name), PLACE, server, path)
            (converse_openclaw if name == "openclaw" else converse)(lab)
            print(f"{name:10} {keep(lab, path)} transcripts")
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


def main() -> None:
    if reason := objection():
        sys.exit(reason)
    path = agents_path()
    for name in sys.argv[1:] or RUNTIMES:
        record(name, path)


if __name__ == "__main__":
    main()
