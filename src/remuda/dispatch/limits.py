"""How often an agent is called, and how many at a time: bounds that all processes and machines share.

A turn is asked for, waited for in the order of asking, held until it is given back, and freed by the others
when its holder dies. Where an agent has no bounds nothing of this touches the database.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event, Thread
from typing import TypeVar

import msgspec

from remuda.core.clock import rfc3339_seconds
from remuda.core.dispatchconfig import LimitsConfig
from remuda.core.errors import ConfigError, ErrorKind, RemudaError
from remuda.core.identity import identity, lives, place
from remuda.core.sql import Database, StoreGoneError, Transaction

LEASE, WAITING = 60.0, 15.0
"""Seconds without a sign of life after which a holder counts as dead, wherever it is, and who waits."""

_RATE = re.compile(r"([1-9]\d{0,8})/(\d{1,8}(?:\.\d{1,6})?)?(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SOON, _LATER = 0.05, 0.5
_T = TypeVar("_T")


class LimitedError(RemudaError):
    """An agent's turn did not come in time; ``until`` is when the next one does, where that is known."""

    kind: ErrorKind = "rate_limit"

    def __init__(self, message: str, hint: str, until: float | None) -> None:
        super().__init__(message, hint)
        self.until = until


class Limits(msgspec.Struct, frozen=True):
    """Turns per second, how many may come at once, and how many go side by side; 0 is no bound."""

    per_second: float = 0.0
    burst: int = 0
    side_by_side: int = 0

    def __bool__(self) -> bool:
        return bool(self.per_second or self.side_by_side)


def parse_rate(text: str) -> float:
    """Turns per second of ``30/m``, ``5/s``, ``1000/h``, ``2/10s``."""
    found = _RATE.fullmatch(text.strip())
    if found and (found[2] or found[3]):
        span = float(found[2] or 1) * _UNITS[found[3] or "s"]
        if span > 0:
            return int(found[1]) / span
    raise ConfigError(
        'dispatch.rate: expect "<n>/<dur>" e.g. "30/m"',
        f"It is {text!r} in dispatch.limits.rate, or in the limits of an agent.",
    )


def limits_of(own: LimitsConfig | None, common: LimitsConfig) -> Limits:
    """An agent's limits: its own, or else those that all agents have."""
    given = own or common
    rate = parse_rate(given.rate) if given.rate else 0.0
    burst = int(rate) + 1 if given.burst is None else max(given.burst, 1)
    return Limits(rate, burst if rate else 0, given.max_concurrent)


class Bucket(msgspec.Struct, frozen=True):
    """How many turns could be taken at a moment."""

    tokens: float
    at: float


def filled(bucket: Bucket | None, limits: Limits, now: float) -> Bucket:
    """The bucket as it is by now; a new one is full. A clock that was set back takes nothing away."""
    if bucket is None:
        return Bucket(float(limits.burst), now)
    gained = max(now - bucket.at, 0.0) * limits.per_second
    return Bucket(min(max(bucket.tokens, 0.0) + gained, float(limits.burst)), now)


def wait_for(bucket: Bucket, limits: Limits, ahead: int) -> float:
    """Seconds until there is a token for one who has this many others in front of them."""
    missing = ahead + 1 - bucket.tokens
    return max(missing, 0.0) / limits.per_second


@contextlib.contextmanager
def acquire(db: Database, agent: str, limits: Limits, *, holder: str, within: float) -> Iterator[None]:
    """Hold a turn of an agent while the block runs; :class:`LimitedError` when it does not come ``within``
    that many seconds. ``holder`` names the run, once in the world."""
    if not limits:
        yield
        return
    turn = _Turn(db, agent, limits, holder, within)
    try:
        while (pause := turn.step()) is not None:
            time.sleep(pause)
        turn.hold()
        yield
    finally:
        turn.leave()


@contextlib.asynccontextmanager
async def acquire_async(
    db: Database, agent: str, limits: Limits, *, holder: str, within: float
) -> AsyncIterator[None]:
    """The same, where an event loop must not stand still."""
    import asyncio

    if not limits:
        yield
        return
    turn = _Turn(db, agent, limits, holder, within)
    try:
        while (pause := await aside(turn.step)) is not None:
            await asyncio.sleep(pause)
        turn.hold()
        yield
    finally:
        await aside(turn.leave)


async def aside(function: Callable[[], _T]) -> _T:
    """Call something slow in a thread. One that is cancelled meanwhile still waits for it to end, so that
    what it does is not undone before it is done."""
    import asyncio

    under_way = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        await asyncio.wait([under_way])
        raise


class _Turn:
    """One holder's place in the line of an agent, and later among those whose turn it is."""

    def __init__(self, db: Database, agent: str, limits: Limits, holder: str, within: float) -> None:
        self._db, self._agent, self._limits, self._holder = db, agent, limits, holder
        self._deadline = time.monotonic() + within
        self._host, self._process = place(), identity(os.getpid())
        self._pause = _SOON
        self._asked = False
        self._over = Event()
        self._beats: Thread | None = None

    def step(self) -> float | None:
        """Look whether it is our turn, and take it; otherwise, seconds until the next look."""
        self._asked = True
        with self._db.transaction() as t:
            t.alone(f"limits/{self._agent}")
            now = t.now()
            self._appear(t, now)
            bucket, ahead, free = self._found(t, now)
            wait = wait_for(bucket, self._limits, ahead) if self._limits.per_second else 0.0
            if not wait and ahead < free:
                self._take(t, bucket, now)
                return None
        left = self._deadline - time.monotonic()
        if left <= 0 or wait > left:
            raise self._limited(now + wait if wait else None)
        self._pause = min(self._pause * 2, _LATER)
        return min(max(wait, _SOON) if wait else self._pause, left, _LATER)

    def _appear(self, t: Transaction, now: float) -> None:
        """Be in the line, and let those who died in it or in their turn be forgotten."""
        t.run(
            "INSERT INTO slots (agent, holder, host, process, asked_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (agent, holder) DO UPDATE SET seen_at = excluded.seen_at",
            *(self._agent, self._holder, self._host, self._process, now, now),
        )
        for holder, host, process, waits, seen in t.rows(
            "SELECT holder, host, process, taken_at IS NULL, seen_at FROM slots WHERE agent = ?", self._agent
        ):
            late = isinstance(seen, float) and seen < now - (WAITING if waits else LEASE)
            if late or (host == self._host and not lives(str(process))):
                t.run("DELETE FROM slots WHERE agent = ? AND holder = ?", self._agent, holder)

    def _found(self, t: Transaction, now: float) -> tuple[Bucket, int, float]:
        """The bucket by now, how many are in front of us, and how many places are free. One that was filled
        in the future, by a clock that was set back since, fills from now on."""
        t.run("UPDATE buckets SET filled_at = ? WHERE agent = ? AND filled_at > ?", now, self._agent, now)
        rows = t.rows("SELECT tokens, filled_at FROM buckets WHERE agent = ?", self._agent)
        known = msgspec.convert(rows[0], tuple[float, float]) if rows else None
        line = t.rows(
            "SELECT holder, taken_at FROM slots WHERE agent = ? ORDER BY asked_at, holder", self._agent
        )
        waiting = [holder for holder, taken in line if taken is None]
        bound = self._limits.side_by_side
        free = float(bound - (len(line) - len(waiting))) if bound else float("inf")
        bucket = filled(Bucket(*known) if known else None, self._limits, now)
        return bucket, waiting.index(self._holder), free

    def _take(self, t: Transaction, bucket: Bucket, now: float) -> None:
        if self._limits.per_second:
            t.run(
                "INSERT INTO buckets (agent, tokens, filled_at) VALUES (?, ?, ?)"
                " ON CONFLICT (agent) DO UPDATE SET tokens = excluded.tokens, filled_at = excluded.filled_at",
                *(self._agent, bucket.tokens - 1, bucket.at),
            )
        if self._limits.side_by_side:
            t.run(
                "UPDATE slots SET taken_at = ? WHERE agent = ? AND holder = ?",
                *(now, self._agent, self._holder),
            )
        else:
            t.run("DELETE FROM slots WHERE agent = ? AND holder = ?", self._agent, self._holder)
            self._asked = False

    def _limited(self, until: float | None) -> LimitedError:
        bound = self._limits.side_by_side
        why = (
            f"its next turn is at {rfc3339_seconds(until)}"
            if until is not None
            else f"all of its {bound} places are taken"
        )
        hint = "Wait longer (dispatch.queue_within), name another agent, or change its limits."
        return LimitedError(f"{self._agent} is at its limit: {why}", hint, until)

    def hold(self) -> None:
        """Give a sign of life now and then from now on, where a place is held."""
        if self._limits.side_by_side:
            self._beats = Thread(target=self._beat, daemon=True)
            self._beats.start()

    def _beat(self) -> None:
        """Whoever slept so long that the others forgot it takes its place again."""
        while not self._over.wait(LEASE / 3):
            with contextlib.suppress(StoreGoneError), self._db.transaction() as t:
                now = t.now()
                t.run(
                    "INSERT INTO slots (agent, holder, host, process, asked_at, taken_at, seen_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (agent, holder) DO UPDATE SET seen_at = excluded.seen_at",
                    *(self._agent, self._holder, self._host, self._process, now, now, now),
                )

    def leave(self) -> None:
        """Give back what is held, or the place in the line. Where the database is gone, the others do so when
        no more signs of life come."""
        self._over.set()
        if self._beats is not None:
            self._beats.join()
        if self._asked:
            with contextlib.suppress(StoreGoneError), self._db.transaction() as t:
                t.run("DELETE FROM slots WHERE agent = ? AND holder = ?", self._agent, self._holder)
