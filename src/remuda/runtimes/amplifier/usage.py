"""Amplifier's transcripts: a JSONL file per session that is rewritten after each turn, with what was said
and no tokens at all. Written after recorded runs of the app CLI; unverified."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path

import msgspec

from remuda.runtimes.base import UNVERIFIED
from remuda.runtimes.transcripts import (
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

_TRANSCRIPT = "transcript.jsonl"
_METADATA = "metadata.json"


class _Block(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""


class _Line(msgspec.Struct):
    role: str | None = ""
    content: str | list[_Block] | None = None


class _About(msgspec.Struct):
    working_dir: str | None = ""


_LINE = msgspec.json.Decoder(_Line)


def read(source: Source, mark: Mark) -> Batch:
    """No answers, as no tokens are told; but damaged lines are counted."""
    lines = read_lines(source.path, mark.position, _LINE)
    return Batch([], Mark(lines.position), lines.skipped, lines.more, lines.trouble)


def _projects(places: Places) -> Path | None:
    home = places.home(None, ".amplifier")
    return home / "projects" if home else None


def sources(places: Places) -> Iterator[Source]:
    """All sessions."""
    if folder := _projects(places):
        for path in sorted(folder.glob(f"*/sessions/*/{_TRANSCRIPT}")):
            yield Source(path, path.parent.name)


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last for a folder."""
    folder = _projects(places)
    if folder is None:
        return None
    if wanted.session:
        path = newest(folder.glob(f"*/sessions/{escape(wanted.session)}/{_TRANSCRIPT}"), 0.0)
        return Source(path, wanted.session) if path else None
    slug = str(wanted.cwd or "").replace("/", "-")
    near = (
        Source(path, path.parent.name) for path in folder.glob(f"{escape(slug)}/sessions/*/{_TRANSCRIPT}")
    )
    return latest(near, wanted, _project)


def _project(source: Source) -> str:
    try:
        about = msgspec.json.decode(source.path.with_name(_METADATA).read_bytes(), type=_About)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return about.working_dir or ""


def _text(line: _Line) -> str | None:
    if line.role != "user" or not line.content:
        return None
    if isinstance(line.content, str):
        return line.content
    texts = [block.text or "" for block in line.content if block.type == "text"]
    return "".join(texts) if texts else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark, which is a number of prompts: the file is always a new one."""
    texts = prompts_in_lines(source.path, Mark(), _LINE, _text).texts
    return Prompts(texts[mark.position :], Mark(len(texts)))


TRANSCRIPTS = Transcripts(
    kind="file",
    verified=UNVERIFIED,
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    tokens=False,
    note="it keeps no token counts; a prompt is in it when its turn has ended",
)
