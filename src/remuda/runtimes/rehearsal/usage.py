"""The rehearsal agent's transcripts: one JSONL file a session, one message a line.

Lines have no names of their own, so an answer is known by its place among the answers of its session. Input
is counted without what was cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda import __version__
from remuda.runtimes.transcripts import (
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    milliseconds,
    newest,
    prompts_in_lines,
    read_lines,
)


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Line(msgspec.Struct):
    role: str = ""
    time: str = ""
    model: str | None = ""
    content: list[_Block] = []
    usage: _Usage | None = None


class _Known(msgspec.Struct):
    """How many answers lie before a mark."""

    answers: int = 0


_LINE = msgspec.json.Decoder(_Line)
_KNOWN = msgspec.json.Decoder(_Known)


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, _LINE)
    known = _KNOWN.decode(mark.state) if mark.state else _Known()
    session = source.session or source.path.stem
    answers = []
    for line in lines.items:
        if line.role == "assistant" and (usage := line.usage):
            known.answers += 1
            answers.append(
                Answer(
                    f"{session}:{known.answers}",
                    milliseconds(line.time),
                    session,
                    source.project,
                    line.model or "",
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.cache_read_input_tokens,
                    usage.cache_creation_input_tokens,
                )
            )
    return Batch(
        answers, Mark(lines.position, msgspec.json.encode(known)), lines.skipped, lines.more, lines.trouble
    )


def _folder(places: Places) -> Path | None:
    home = places.home("REHEARSAL_HOME", ".rehearsal")
    return home / "sessions" if home else None


def sources(places: Places) -> Iterator[Source]:
    """All sessions."""
    if folder := _folder(places):
        yield from (Source(path, path.stem) for path in sorted(folder.glob("*.jsonl")))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last: its folder is not told."""
    folder = _folder(places)
    if folder is None:
        return None
    if wanted.session:
        path: Path | None = folder / f"{wanted.session}.jsonl"
    else:
        path = newest(folder.glob("*.jsonl"), wanted.since)
    return Source(path, path.stem) if path and path.is_file() else None


def _text(line: _Line) -> str | None:
    texts = [block.text for block in line.content if block.type == "text"]
    return "".join(texts) if line.role == "user" and texts else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark."""
    return prompts_in_lines(source.path, mark, _LINE, _text)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified=__version__,
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
)
