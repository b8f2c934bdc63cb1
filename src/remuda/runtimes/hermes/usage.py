"""Hermes's transcripts: one SQLite database for all sessions of a home.

Tokens are counted per session and model, in a row whose numbers grow: that row is one answer. Messages are
stored anew, with other ids but the same times, when a session is continued. Cached input is counted apart
from input.
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

_DATABASE = "state.db"
_PROFILES = "profiles"

_USAGE = """
    SELECT CAST(coalesce(u.last_seen, s.started_at, 0) * 1000 AS INTEGER) AS seen,
        u.session_id, s.cwd, s.model_config, u.model,
        u.billing_provider, u.billing_base_url, u.billing_mode, u.task, u.input_tokens, u.output_tokens,
        u.cache_read_tokens, u.cache_write_tokens, u.reasoning_tokens, u.actual_cost_usd, u.estimated_cost_usd
    FROM session_model_usage u LEFT JOIN sessions s ON s.id = u.session_id
    WHERE seen >= ?1 AND (?2 = '' OR u.session_id = ?2)
"""

_PROMPTS = """
    SELECT CAST(timestamp * 1000000 AS INTEGER), content FROM messages
    WHERE role = 'user' AND session_id = ?2 AND CAST(timestamp * 1000000 AS INTEGER) > ?1
    ORDER BY timestamp, id
"""

_SESSIONS = """
    SELECT s.id, s.cwd, s.model_config, max(s.started_at, coalesce(max(m.timestamp), 0)) AS changed
    FROM sessions s LEFT JOIN messages m ON m.session_id = s.id
    WHERE ?1 = '' OR s.id = ?1 GROUP BY s.id HAVING changed >= ?2 ORDER BY changed DESC
"""


class _Config(msgspec.Struct):
    """Where a session that came by a connection keeps its folder."""

    cwd: str | None = ""


_CONFIG = msgspec.json.Decoder(_Config)


def _folder(cwd: Value, config: Value) -> str:
    found = decoded(msgspec.Raw(str(config).encode()), _CONFIG) if config and not cwd else None
    return str(cwd or (found.cwd if found else "") or "")


def read(source: Source, mark: Mark) -> Batch:
    """The counters that have grown since a mark, which is a time."""
    rows = read_rows(source.path, _USAGE, (mark.position, source.session))
    answers = [_answer(row) for row in rows.items]
    position = max((answer.time for answer in answers), default=mark.position)
    return Batch([answer for answer in answers if answer.tokens], Mark(position), 0, False, rows.trouble)


def _answer(row: tuple[Value, ...]) -> Answer:
    """A model without known prices costs 0, which is no price."""
    seen, session, cwd, config, model, *route = row
    *names, read_in, out, cached, written, thought, actual, estimated = route
    costs = [cost for cost in (actual, estimated) if isinstance(cost, float) and cost > 0]
    return Answer(
        ":".join(str(part) for part in (session, model, *names)),
        number(seen),
        str(session),
        _folder(cwd, config),
        str(model or ""),
        number(read_in),
        number(out),
        number(cached),
        number(written),
        number(thought),
        next(iter(costs), None),
    )


def _homes(places: Places) -> Iterator[Path]:
    """The user's home with its profiles, and homes that sessions of Remuda's were given."""
    if home := places.home("HERMES_HOME", ".hermes"):
        root = home.parent.parent if home.parent.name == _PROFILES else home
        yield root
        yield from sorted((root / _PROFILES).glob("*"))
    if places.kept:
        yield from sorted(places.kept.glob("*"))


def sources(places: Places) -> Iterator[Source]:
    """All databases, each with all of its sessions."""
    for home in _homes(places):
        if (home / _DATABASE).is_file():
            yield Source(home / _DATABASE)


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was changed last in a folder. A new session is there with its
    first prompt."""
    found: list[tuple[float, Source]] = []
    for source in sources(places):
        rows = read_rows(source.path, _SESSIONS, (wanted.session or "", wanted.since))
        for session, cwd, config, changed in rows.items:
            folder = _folder(cwd, config)
            if wanted.session or folder == str(wanted.cwd):
                when = changed if isinstance(changed, float) else 0.0
                found.append((when, Source(source.path, str(session), folder)))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark in one session. Hermes drops white space at the ends."""
    rows = read_rows(source.path, _PROMPTS, (mark.position, source.session))
    position = max((number(time) for time, _ in rows.items), default=mark.position)
    return Prompts(tuple(str(text or "") for _, text in rows.items), Mark(position))


TRANSCRIPTS = Transcripts(
    kind="database",
    verified="0.19.0",
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    counters=True,
    note="counted per session and model, at the time of its last answer",
)
