"""OpenCode's transcripts: one SQLite database for all sessions.

An answer is a row that is filled while it is given, and is told once it is complete. A forked session repeats
the answers of the first one under other ids, but with the same times. Cached input is counted apart from
input; thoughts are not part of the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.runtimes.databases import Value, number, read_rows
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
)

_OVERLAP = 60_000
"""Milliseconds before the mark that are looked at again: rows are not stored in the order of their times."""

_ANSWERS = """
    SELECT m.time_updated, m.session_id, s.directory, m.data
    FROM message m LEFT JOIN session s ON s.id = m.session_id
    WHERE m.time_updated >= ?1 AND (?2 = '' OR m.session_id = ?2)
        AND CASE WHEN json_valid(m.data) THEN json_extract(m.data, '$.role') = 'assistant' ELSE 1 END
    ORDER BY m.time_updated
"""

_PROMPTS = """
    SELECT p.time_created, p.message_id, p.data FROM part p JOIN message m ON m.id = p.message_id
    WHERE p.session_id = ?2 AND p.time_created > ?1
        AND CASE WHEN json_valid(m.data) THEN json_extract(m.data, '$.role') = 'user' END
    ORDER BY p.time_created, p.id
"""

_FIND = "SELECT id, directory FROM session WHERE id = ?"

_LATEST = """
    SELECT id, directory, time_updated FROM session
    WHERE directory = ? AND time_updated >= ? AND parent_id IS NULL
    ORDER BY time_updated DESC LIMIT 1
"""


class _Cache(msgspec.Struct, gc=False):
    read: int | None = 0
    write: int | None = 0


class _Tokens(msgspec.Struct, gc=False):
    input: int | None = 0
    output: int | None = 0
    reasoning: int | None = 0
    cache: _Cache | None = None


class _Time(msgspec.Struct, gc=False):
    created: int | None = 0
    completed: int | None = None


class _Path(msgspec.Struct, gc=False):
    cwd: str | None = ""


class _Message(msgspec.Struct, gc=False, rename={"model": "modelID"}):
    model: str | None = ""
    time: _Time | None = None
    tokens: _Tokens | None = None
    path: _Path | None = None
    cost: float | None = None


class _Part(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""
    synthetic: bool | None = False


_MESSAGE = msgspec.json.Decoder(_Message)
_PART = msgspec.json.Decoder(_Part)


def read(source: Source, mark: Mark) -> Batch:
    """The answers that were changed behind a mark, which is a time."""
    rows = read_rows(source.path, _ANSWERS, (max(0, mark.position - _OVERLAP), source.session))
    answers: list[Answer] = []
    position, skipped = mark.position, 0
    for updated, session, folder, data in rows.items:
        message = decoded(msgspec.Raw(str(data).encode()), _MESSAGE)
        if message is None:
            skipped += mark.position < number(updated)
        elif message.tokens and message.time and message.time.completed:
            answers.append(_answer(message, message.time, message.tokens, str(session), str(folder or "")))
        position = max(position, number(updated))
    told = [answer for answer in answers if answer.tokens]
    return Batch(told, Mark(position), skipped, False, rows.trouble)


def _answer(message: _Message, time: _Time, tokens: _Tokens, session: str, folder: str) -> Answer:
    """A model without known prices costs 0, which is no price."""
    cache, thoughts = tokens.cache or _Cache(), tokens.reasoning or 0
    return Answer(
        f"{time.created}:{time.completed}:{message.model}",
        time.completed or 0,
        session,
        (message.path.cwd if message.path else "") or folder,
        message.model or "",
        tokens.input or 0,
        (tokens.output or 0) + thoughts,
        cache.read or 0,
        cache.write or 0,
        thoughts,
        message.cost or None,
    )


def _databases(places: Places) -> Iterator[Path]:
    """The databases of all release channels; a variable names another one, or none."""
    data = places.home("XDG_DATA_HOME", ".local/share")
    if data is None:
        return
    if named := places.environ.get("OPENCODE_DB"):
        yield data / "opencode" / named
    else:
        yield from sorted((data / "opencode").glob("opencode*.db"))


def sources(places: Places) -> Iterator[Source]:
    """All databases, each with all of its sessions."""
    yield from (Source(path) for path in _databases(places) if path.is_file())


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was changed last in a folder."""
    found: list[tuple[int, Source]] = []
    for path in _databases(places):
        if wanted.session:
            rows = read_rows(path, _FIND, (wanted.session,))
        else:
            rows = read_rows(path, _LATEST, (str(wanted.cwd), int(wanted.since * 1000)))
        for session, folder, *changed in rows.items:
            found.append((number(changed[0]) if changed else 0, Source(path, str(session), str(folder))))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark in one session; a prompt may have several parts."""
    rows = read_rows(source.path, _PROMPTS, (mark.position, source.session))
    texts: dict[Value, str] = {}
    position = mark.position
    for created, message, data in rows.items:
        position = max(position, number(created))
        part = decoded(msgspec.Raw(str(data).encode()), _PART)
        if part and part.type == "text" and not part.synthetic:
            texts[message] = texts.get(message, "") + (part.text or "")
    return Prompts(tuple(texts.values()), Mark(position))


TRANSCRIPTS = Transcripts(
    kind="database",
    verified="1.18.33",
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
)
