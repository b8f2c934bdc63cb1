"""Pi's transcripts: a JSONL file per session, in a folder per working folder.

The file comes into being with the first answer of a new session, so that the first prompt cannot be seen in
it before; later prompts are written as soon as they are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from glob import escape
from pathlib import Path

import msgspec

from remuda.runtimes.entries import ENTRY, answer, prompt
from remuda.runtimes.transcripts import (
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    latest,
    newest,
    prompts_in_lines,
    read_lines,
)

_SETTINGS = "settings.json"


class _Settings(msgspec.Struct, rename="camel"):
    """The one setting that moves sessions elsewhere."""

    session_dir: str | None = None


class _Known(msgspec.Struct):
    """What the first entry tells of those that follow."""

    session: str = ""
    project: str = ""


_KNOWN = msgspec.json.Decoder(_Known)


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, ENTRY)
    known = _KNOWN.decode(mark.state) if mark.state else _Known(_session(source), source.project)
    answers: list[Answer] = []
    for entry in lines.items:
        if entry.type == "session":
            known = _Known(entry.id or known.session, entry.cwd or known.project)
        elif found := answer(entry, known.session, known.project):
            answers.append(found)
    mark = Mark(lines.position, msgspec.json.encode(known))
    return Batch(answers, mark, lines.skipped, lines.more, lines.trouble)


def _session(source: Source) -> str:
    return source.session or source.path.stem.partition("_")[2]


def _folder(places: Places) -> Path | None:
    """Where sessions lie: a variable counts before a setting, which counts before the usual place."""
    home = places.home("PI_CODING_AGENT_DIR", ".pi/agent")
    if home is None or places.environ.get("PI_CODING_AGENT_SESSION_DIR"):
        return places.home("PI_CODING_AGENT_SESSION_DIR", ".pi/agent/sessions")
    try:
        settings = msgspec.json.decode((home / _SETTINGS).read_bytes(), type=_Settings)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        settings = _Settings()
    if settings.session_dir:
        return Path(settings.session_dir).expanduser().absolute()
    return home / "sessions"


def sources(places: Places) -> Iterator[Source]:
    """All sessions."""
    if folder := _folder(places):
        yield from (Source(path) for path in sorted(folder.glob("**/*.jsonl")))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last for a folder."""
    folder = _folder(places)
    if folder is None:
        return None
    if wanted.session:
        path = newest(folder.glob(f"**/*_{escape(wanted.session)}.jsonl"), 0.0)
        return Source(path, wanted.session) if path else None
    slug = re.sub(r"[/\\:]", "-", str(wanted.cwd or "").lstrip("/"))
    near = [Source(path) for path in (*folder.glob(f"--{escape(slug)}--/*.jsonl"), *folder.glob("*.jsonl"))]
    found = latest(near, wanted, _project)
    return Source(found.path, _session(found)) if found else None


def _project(source: Source) -> str:
    return _KNOWN.decode(read(source, Mark()).mark.state).project


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark."""
    return prompts_in_lines(source.path, mark, ENTRY, prompt)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified="0.87.1",
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    note="a new session has no transcript before its first answer",
)
