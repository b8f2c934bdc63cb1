"""OpenClaw's transcripts: one SQLite database per agent, with the events of all its sessions.

Long events are compressed: where nothing can expand them they count as skipped. Headless runs keep no state,
so theirs are gone with them. Cached input is counted apart from input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.runtimes.databases import Value, number, read_rows
from remuda.runtimes.entries import ENTRY, Entry, answer, prompt
from remuda.runtimes.openclaw.compressed import expand
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

_DATABASES = "agents/*/agent/openclaw-agent.sqlite"
_AT_ONCE = 2000

_ANSWERS = """
    SELECT e.rowid, e.session_id, e.seq, e.created_at, first.event_json, e.event_json, e.event_zstd
    FROM transcript_events e
    LEFT JOIN transcript_events first ON first.session_id = e.session_id AND first.seq = 0
    WHERE e.rowid > ?1 AND (?2 = '' OR e.session_id = ?2) AND
        (instr(e.event_json, '"role":"assistant"') OR instr(e.navigation_json, '"role":"assistant"'))
    ORDER BY e.rowid LIMIT ?3
"""

_MARKED = "SELECT session_id, seq, created_at FROM transcript_events WHERE rowid = ?"

_PROMPTS = """
    SELECT seq, event_json, event_zstd FROM transcript_events
    WHERE session_id = ?2 AND seq > ?1 AND
        (instr(event_json, '"role":"user"') OR instr(navigation_json, '"role":"user"'))
    ORDER BY seq
"""

_FIND = """
    SELECT session_id, updated_at FROM session_windows
    WHERE (?1 = '' OR session_id = ?1) AND updated_at >= ?2 ORDER BY updated_at DESC LIMIT 1
"""


class _Last(msgspec.Struct):
    """The row that was read last. Rows that are taken away leave their numbers to others: where another one
    has this number, all has to be read again."""

    session: str = ""
    seq: int = 0
    created: int = 0


_LAST = msgspec.json.Decoder(_Last)


def _entry(text: Value, compressed: Value) -> Entry | None:
    """An event, however it is stored; None if it cannot be read."""
    raw = expand(compressed) if isinstance(compressed, bytes) else str(text or "").encode()
    return decoded(msgspec.Raw(raw), ENTRY) if raw else None


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark, which is a row's number."""
    start = mark if _still_there(source, mark) else Mark()
    rows = read_rows(source.path, _ANSWERS, (start.position, source.session, _AT_ONCE))
    answers: list[Answer] = []
    skipped = 0
    for row in rows.items:
        at, session, seq, created, first, text, compressed = row
        entry, header = _entry(text, compressed), _entry(first, None)
        if entry is None:
            skipped += 1
        elif found := answer(entry, str(session), (header.cwd if header else "") or ""):
            answers.append(found)
        last = _Last(str(session), number(seq), number(created))
        start = Mark(number(at), msgspec.json.encode(last))
    return Batch(answers, start, skipped, len(rows.items) == _AT_ONCE, rows.trouble)


def _still_there(source: Source, mark: Mark) -> bool:
    if not mark.state:
        return False
    last = _LAST.decode(mark.state)
    rows = read_rows(source.path, _MARKED, (mark.position,))
    return rows.items == [(last.session, last.seq, last.created)]


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where OpenClaw keeps all that is its own."""
    profile = environ.get("OPENCLAW_PROFILE")
    home = Path(environ.get("OPENCLAW_HOME") or environ.get("HOME") or "/")
    return Path(
        environ.get("OPENCLAW_STATE_DIR") or home / (f".openclaw-{profile}" if profile else ".openclaw")
    )


def sources(places: Places) -> Iterator[Source]:
    """The databases of all agents, each with all of its sessions; those of sessions that were given a state
    of their own, too."""
    yield from (Source(path) for path in sorted(state_folder(places.environ).glob(_DATABASES)))
    if places.kept:
        yield from (Source(path) for path in sorted(places.kept.glob(f"*/{_DATABASES}")))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was changed last: OpenClaw works in a folder of its own, so the
    folder that it was started in tells nothing."""
    found: list[tuple[int, Source]] = []
    for source in sources(places):
        rows = read_rows(source.path, _FIND, (wanted.session or "", int(wanted.since * 1000)))
        found += ((number(changed), Source(source.path, str(session))) for session, changed in rows.items)
    return max(found, key=lambda pair: pair[0])[1] if found else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark in one session."""
    rows = read_rows(source.path, _PROMPTS, (mark.position, source.session))
    entries = [_entry(text, compressed) for _, text, compressed in rows.items]
    texts = tuple(found for entry in entries if entry and (found := prompt(entry)) is not None)
    return Prompts(texts, Mark(max((number(row[0]) for row in rows.items), default=mark.position)))


TRANSCRIPTS = Transcripts(
    kind="database",
    verified="2026.9.6",
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    headless=False,
    note="not those of headless runs, which keep none; long events need Python 3.14 or the library zstd",
)
