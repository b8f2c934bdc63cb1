"""Read the guard's audit: what was decided, for whom, by which rule."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from remuda.core.clock import now, rfc3339
from remuda.core.errors import UsageError
from remuda.guard.model import Decision
from remuda.hooks import audit
from remuda.hooks.audit import Record as Record
from remuda.operations.world import World

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records to show: those that fit all of it, and of these the newest. A rule stands for its whole
    group too: ``git`` for ``git.force``. Without a limit all are shown."""

    decision: Decision | None = None
    rule: str | None = None
    session: str | None = None
    since: str | None = None
    limit: int | None = None


class Log(msgspec.Struct, frozen=True):
    """Records of the audit, oldest first."""

    records: list[Record]


def log(world: World, wanted: Filter) -> Log:
    """The records that fit."""
    fits = _fits(wanted)
    return Log([*_newest(filter(fits, audit.read(audit.place(world.folders))), wanted)])


def follow(world: World, wanted: Filter, wait: Callable[[], None]) -> Iterator[Record]:
    """The records that fit, and then every one to come, for as long as ``wait`` comes back."""
    fits = _fits(wanted)
    stream = audit.follow(audit.place(world.folders), wait)
    yield from _newest((each for each in iter(lambda: next(stream), None) if each and fits(each)), wanted)
    yield from (each for each in stream if each and fits(each))


def _newest(records: Iterable[Record], wanted: Filter) -> Iterable[Record]:
    return deque(records, wanted.limit)


def _fits(wanted: Filter) -> Callable[[Record], bool]:
    since = "" if wanted.since is None else rfc3339(moment(wanted.since, now()))

    def fits(record: Record) -> bool:
        return (
            wanted.decision in (None, record.decision)
            and wanted.session in (None, record.session)
            and (wanted.rule is None or f"{record.rule}.".startswith(f"{wanted.rule}."))
            and record.time >= since
        )

    return fits


def moment(text: str, today: float) -> float:
    """A point in time: ``90s``, ``10m``, ``2h``, ``7d``, ``1w`` ago, or a date and time as in ISO 8601, which
    is local where it names no zone."""
    number, unit = text[:-1], text[-1:]
    try:
        if unit in _UNITS and number.isdecimal():
            return today - timedelta(**{_UNITS[unit]: int(number)}).total_seconds()
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        hint = "As in: --since 2h, --since 2026-04-29, --since 2026-04-29T04:12:55Z"
        raise UsageError(f"{text!r} is no time", hint) from None
