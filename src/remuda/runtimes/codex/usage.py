"""Codex's transcripts: one JSONL file a thread below ``sessions/YEAR/MONTH/DAY/``.

Each call of the model leaves a record of its own. Older versions have none, only events whose totals grow
and which may be told twice: there, what the last call took counts, and the total is the key. Cached input is
part of the input it tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
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
    files_below,
    latest,
    milliseconds,
    prompts_in_lines,
    read_lines,
)

_TELLING = frozenset(("session_meta", "turn_context", "token_usage_record", "event_msg"))

_ID = 36
"""How long a thread's id is, which ends the name of its file."""


class _Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class _Info(msgspec.Struct, gc=False):
    total_token_usage: _Usage = _Usage()
    last_token_usage: _Usage | None = None


class _Content(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Item(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None


class _Payload(msgspec.Struct):
    """What a line carries; which fields it has depends on the line's type."""

    type: str | None = ""
    id: str | None = ""
    session_id: str | None = ""
    cwd: str | None = ""
    model: str | None = ""
    response_id: str | None = ""
    usage: _Usage | None = None
    info: _Info | None = None
    item: _Item | None = None
    message: str | None = None


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"{}")


class _Known(msgspec.Struct):
    """What earlier lines tell of those that follow. ``records``: calls have records of their own."""

    session: str = ""
    project: str = ""
    model: str = ""
    records: bool = False


_LINE = msgspec.json.Decoder(_Line)
_PAYLOAD = msgspec.json.Decoder(_Payload)
_KNOWN = msgspec.json.Decoder(_Known)


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, _LINE)
    known = _KNOWN.decode(mark.state) if mark.state else _Known(source.session or _thread(source.path))
    answers: list[Answer] = []
    for line in lines.items:
        if line.type in _TELLING and (payload := decoded(line.payload, _PAYLOAD)):
            answers += _take(line, payload, known)
    return Batch(
        answers, Mark(lines.position, msgspec.json.encode(known)), lines.skipped, lines.more, lines.trouble
    )


def _take(line: _Line, payload: _Payload, known: _Known) -> Iterator[Answer]:
    """Learn from a line; the answer in it, if it tells of one."""
    info = payload.info
    if line.type in ("session_meta", "turn_context"):
        known.project = known.project or payload.cwd or ""
        known.model = payload.model or known.model
        known.session = payload.session_id or known.session
    elif line.type == "token_usage_record" and payload.usage:
        known.records = True
        yield _answer(payload.response_id or f"{known.session}:{line.timestamp}", line, payload.usage, known)
    elif info and info.last_token_usage and not known.records:
        key = f"{known.session}:{info.total_token_usage.total_tokens}"
        yield _answer(key, line, info.last_token_usage, known)


def _answer(key: str, line: _Line, usage: _Usage, known: _Known) -> Answer:
    cached = usage.cached_input_tokens + usage.cache_write_input_tokens
    return Answer(
        key,
        milliseconds(line.timestamp),
        known.session,
        known.project,
        known.model,
        max(0, usage.input_tokens - cached),
        usage.output_tokens,
        usage.cached_input_tokens,
        usage.cache_write_input_tokens,
        usage.reasoning_output_tokens,
    )


def _thread(path: Path) -> str:
    return path.stem[-_ID:]


def _folders(places: Places) -> list[Path]:
    home = places.home("CODEX_HOME", ".codex")
    return [home / "sessions", home / "archived_sessions"] if home else []


def sources(places: Places) -> Iterator[Source]:
    """All threads, the archived ones too."""
    for folder in _folders(places):
        yield from (Source(path, _thread(path)) for path in files_below(folder, ".jsonl"))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The thread of an id, or the one that was written last for a folder."""
    if not wanted.session:
        return latest(sources(places), wanted, _project)
    pattern = f"**/*{escape(wanted.session)}.jsonl"
    found = (path for folder in _folders(places) for path in folder.glob(pattern))
    return next((Source(path, wanted.session) for path in found), None)


def _project(source: Source) -> str:
    """The folder that a thread was begun in; its first line tells."""
    return _KNOWN.decode(read(source, Mark()).mark.state).project


def _text(line: _Line) -> str | None:
    payload = decoded(line.payload, _PAYLOAD) if line.type == "event_msg" else None
    if payload is None:
        return None
    if payload.item and payload.item.type == "UserMessage":
        return "".join(part.text for part in payload.item.content or [] if part.type == "text")
    return payload.message if payload.type == "user_message" else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark."""
    return prompts_in_lines(source.path, mark, _LINE, _text)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified="0.166.0",
    cached="within",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
)
