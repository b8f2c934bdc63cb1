"""Copilot's transcripts: ``events.jsonl`` in one folder per session below ``session-state/``.

Each call of the model leaves a usage record; the totals at the end of a session repeat them and are not read.
Cached input is part of the input it tells. What it calls a cost is counted in requests, not in money.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.runtimes.transcripts import (
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    decoded,
    latest,
    milliseconds,
    prompts_in_lines,
    read_lines,
)

_EVENTS = "events.jsonl"


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    model: str | None = ""
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_tokens: int | None = 0
    cache_write_tokens: int | None = 0
    reasoning_tokens: int | None = 0
    api_call_id: str | None = ""


class _Context(msgspec.Struct):
    cwd: str | None = ""


class _Data(msgspec.Struct, rename="camel"):
    """What an event carries; which fields it has depends on the event's type."""

    session_id: str | None = ""
    context: _Context | None = None
    usage: _Usage | None = None
    content: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    id: str = ""
    timestamp: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")


class _Known(msgspec.Struct):
    """What earlier events tell of those that follow."""

    project: str = ""


_EVENT = msgspec.json.Decoder(_Event)
_DATA = msgspec.json.Decoder(_Data)
_KNOWN = msgspec.json.Decoder(_Known)


def _data(event: _Event) -> _Data:
    return decoded(event.data, _DATA) or _Data()


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, _EVENT)
    known = _KNOWN.decode(mark.state) if mark.state else _Known(source.project)
    session = source.session or source.path.parent.name
    answers = []
    for event in lines.items:
        if event.type in ("session.start", "session.resume") and not known.project:
            context = _data(event).context
            known.project = (context.cwd if context else "") or ""
        elif event.type == "session.usage_record" and (usage := _data(event).usage):
            answers.append(_answer(event, usage, session, known.project))
    return Batch(
        answers, Mark(lines.position, msgspec.json.encode(known)), lines.skipped, lines.more, lines.trouble
    )


def _answer(event: _Event, usage: _Usage, session: str, project: str) -> Answer:
    read_, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    return Answer(
        usage.api_call_id or event.id or f"{session}:{event.timestamp}",
        milliseconds(event.timestamp),
        session,
        project,
        usage.model or "",
        max(0, (usage.input_tokens or 0) - read_ - written),
        usage.output_tokens or 0,
        read_,
        written,
        usage.reasoning_tokens or 0,
    )


def _folder(places: Places) -> Path | None:
    home = places.home("COPILOT_HOME", ".copilot")
    return home / "session-state" if home else None


def sources(places: Places) -> Iterator[Source]:
    """All sessions."""
    if folder := _folder(places):
        yield from (Source(path, path.parent.name) for path in sorted(folder.glob(f"*/{_EVENTS}")))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last for a folder."""
    folder = _folder(places)
    if folder is None:
        return None
    if wanted.session:
        path = folder / wanted.session / _EVENTS
        return Source(path, wanted.session) if path.is_file() else None
    return latest(sources(places), wanted, _project)


def _project(source: Source) -> str:
    """The folder that a session was begun in; its first event tells."""
    return _KNOWN.decode(read(source, Mark()).mark.state).project


def _text(event: _Event) -> str | None:
    return _data(event).content if event.type == "user.message" else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark."""
    return prompts_in_lines(source.path, mark, _EVENT, _text)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified="1.0.102",
    cached="within",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
)
