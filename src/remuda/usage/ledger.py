"""The ledger: every answer that transcripts ever told of, once each, in the store.

Transcripts are read without holding the store. What was found goes into it together with how far was read,
in one transaction: after a crash the same lines are read again, and the same answers are known again by their
keys. Two processes may do this at once.
"""

from __future__ import annotations

import stat
import zlib
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.database import opened
from remuda.runtimes.transcripts import Answer, Mark, Places, Source, Transcripts, collect

if TYPE_CHECKING:
    import sqlite3

FLUSH = 50_000
"""How many answers are held back before they go into the store."""

HEAD = 512
"""How many bytes of a file's beginning tell it from another one that took its place."""

_SOURCES = """
    SELECT runtime, path, inode, size, changed, head, position, state, skipped, trouble FROM usage_sources
"""
_SAVE_SOURCE = "INSERT OR REPLACE INTO usage_sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SAVE_GROUP = """
    INSERT INTO usage_groups (runtime, session, project, model) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_GROUPS = "SELECT runtime, session, project, model, id FROM usage_groups"
_SAVE_ANSWER = """
    INSERT INTO usage_answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET input = excluded.input, output = excluded.output,
        cached_read = excluded.cached_read, cached_write = excluded.cached_write,
        thought = excluded.thought, cost = coalesce(excluded.cost, cost)
    WHERE excluded.input + excluded.output + excluded.cached_read + excluded.cached_write
        > input + output + cached_read + cached_write
"""

SLOT = 900_000
"""A quarter of an hour in milliseconds, by which answers are summed up: no time zone's midnight falls into
the middle of one."""

SUMS = """
    SELECT grouped, time / 900000 AS slot, cost IS NOT NULL AS told, count(*) AS answers, sum(input) AS input,
        sum(output) AS output, sum(cached_read) AS cached_read, sum(cached_write) AS cached_write,
        sum(thought) AS thought, sum(cost) AS cost, min(time) AS first, max(time) AS last
    FROM usage_answers
"""
"""Sums over answers; a condition goes behind it, and then ``GROUP BY 1, 2, 3``."""

_TOUCHED = """
    SELECT DISTINCT a.grouped FROM json_each(?) AS j JOIN usage_answers AS a ON a.key = j.value
"""
_AMONG = "grouped IN (SELECT value FROM json_each(?))"
_FORGET_SUMS = " ".join(("DELETE FROM usage_sums WHERE", _AMONG))
_SAVE_SUMS = " ".join(("INSERT INTO usage_sums", SUMS, "WHERE", _AMONG, "GROUP BY 1, 2, 3"))

Group = tuple[str, str, str, str]


class Reading(msgspec.Struct, frozen=True):
    """How far a source was read, and what it was like then; field by field as the table has them."""

    runtime: str
    path: str
    inode: int = 0
    size: int = -1
    changed: int = 0
    head: str = ""
    position: int = 0
    state: bytes = b""
    skipped: int = 0
    trouble: str = ""


class Look(msgspec.Struct, frozen=True):
    """What the file system says of a source. It changes when the source does."""

    inode: int
    size: int
    changed: int


class Refreshed(msgspec.Struct, frozen=True):
    """What a refresh did: how many sources there are, and how many of them had something new."""

    sources: int = 0
    read: int = 0


class _Pending(msgspec.Struct):
    """What was read and is not in the store yet."""

    answers: dict[str, dict[str, Answer]] = {}
    readings: list[Reading] = []
    count: int = 0


def refresh(database: Path, runtimes: Mapping[str, Transcripts], places: Places) -> Refreshed:
    """Read what is new in all transcripts, and add it to the ledger. What was changed first is read first, so
    that an answer belongs to the session that it was given in, and not to a later copy of that."""
    known = _known(database)
    sources, new = 0, []
    for name, transcripts in runtimes.items():
        for source in transcripts.sources(places):
            sources += 1
            before = known.get((name, str(source.path))) or Reading(name, str(source.path))
            look = look_at(source.path, transcripts)
            if look and look != Look(before.inode, before.size, before.changed):
                new.append((look, before, source, transcripts))
    pending = _Pending()
    for look, before, source, transcripts in sorted(new, key=lambda each: each[0].changed):
        _read(database, transcripts, source, before, look, pending)
    _flush(database, pending)
    return Refreshed(sources, len(new))


def _known(database: Path) -> dict[tuple[str, str], Reading]:
    with opened(database) as connection:
        rows = connection.execute(_SOURCES).fetchall()
    return {(row[0], row[1]): Reading(*row) for row in rows}


def look_at(path: Path, transcripts: Transcripts) -> Look | None:
    """What can be seen of a source without opening it; a database also changes in the file beside it."""
    try:
        seen = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode):
        return None
    size, changed = seen.st_size, seen.st_mtime_ns
    if transcripts.kind == "database":
        try:
            beside = Path(f"{path}-wal").stat()
        except OSError:
            return Look(seen.st_ino, size, changed)
        size, changed = size + beside.st_size, max(changed, beside.st_mtime_ns)
    return Look(seen.st_ino, size, changed)


def begin(transcripts: Transcripts, before: Reading, look: Look) -> Reading:
    """Where to go on reading: behind what was read, or at the beginning if this is not the same file."""
    anew = Reading(before.runtime, before.path)
    if transcripts.kind == "file" or before.trouble or look.inode != before.inode:
        return anew
    if transcripts.kind == "lines" and (
        look.size < before.position or head(before.path, _length(before)) != before.head
    ):
        return anew
    return before


def _length(reading: Reading) -> int:
    return min(HEAD, reading.position)


def head(path: str, length: int) -> str:
    """A fingerprint of a file's first bytes."""
    try:
        with Path(path).open("rb", buffering=0) as stream:
            return f"{zlib.crc32(stream.read(length) or b''):08x}"
    except OSError:
        return ""


def _read(
    database: Path, transcripts: Transcripts, source: Source, before: Reading, look: Look, pending: _Pending
) -> None:
    """Read one source to its end, and put what was found on the heap."""
    start = begin(transcripts, before, look)
    mark, skipped, more = Mark(start.position, start.state), start.skipped, True
    while more:
        batch = transcripts.read(source, mark)
        more = batch.more and batch.mark != mark
        mark, skipped = batch.mark, skipped + batch.skipped
        kept = pending.answers.setdefault(start.runtime, {})
        collect(kept, batch.answers)
        pending.count += len(batch.answers)
        if pending.count >= FLUSH and more:
            _flush(database, pending)
    lines = transcripts.kind == "lines"
    pending.readings.append(
        Reading(
            start.runtime,
            start.path,
            look.inode,
            -1 if batch.trouble else look.size,
            look.changed,
            head(start.path, min(HEAD, mark.position)) if lines else "",
            mark.position,
            mark.state,
            skipped,
            batch.trouble,
        )
    )
    if pending.count >= FLUSH:
        _flush(database, pending)


def _flush(database: Path, pending: _Pending) -> None:
    """Put what was read into the store, all of it or nothing."""
    if not pending.readings and not pending.count:
        return
    with opened(database) as connection:
        for runtime, answers in pending.answers.items():
            _save(connection, runtime, answers.values())
        connection.executemany(_SAVE_SOURCE, map(msgspec.structs.astuple, pending.readings))
    pending.answers, pending.readings, pending.count = {}, [], 0


def _save(connection: sqlite3.Connection, runtime: str, answers: Iterable[Answer]) -> None:
    groups = {(runtime, each.session, each.project, each.model) for each in answers}
    ids = _group_ids(connection, groups)
    rows = [
        (
            number(runtime, each.key),
            ids[runtime, each.session, each.project, each.model],
            each.time,
            each.input,
            each.output,
            each.cached_read,
            each.cached_write,
            each.thought,
            each.cost,
        )
        for each in answers
    ]
    rows.sort(key=itemgetter(0))
    connection.executemany(_SAVE_ANSWER, rows)
    _sum_up(connection, [row[0] for row in rows])


def _sum_up(connection: sqlite3.Connection, keys: list[int]) -> None:
    """Sum up all groups anew that these answers belong to, which may be others than they were told in."""
    touched = connection.execute(_TOUCHED, (msgspec.json.encode(keys).decode(),)).fetchall()
    groups = msgspec.json.encode([row[0] for row in touched]).decode()
    connection.execute(_FORGET_SUMS, (groups,))
    connection.execute(_SAVE_SUMS, (groups,))


def _group_ids(connection: sqlite3.Connection, groups: set[Group]) -> dict[Group, int]:
    """The numbers of groups; those that are new get one."""
    connection.executemany(_SAVE_GROUP, groups)
    return {(row[0], row[1], row[2], row[3]): row[4] for row in connection.execute(_GROUPS)}


def number(runtime: str, key: str) -> int:
    """An answer's key as a number of 64 bits: small to keep, and with a chance of three in a million that
    any two of ten million answers are taken for one."""
    digest = blake2b(f"{runtime}:{key}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
