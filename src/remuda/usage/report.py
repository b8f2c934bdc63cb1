"""Sums over the ledger: by day, runtime, model, agent, session or project, with what they cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.database import opened
from remuda.core.events import Usage
from remuda.usage.ledger import SLOT, SUMS
from remuda.usage.prices import Prices

By = Literal["day", "agent", "runtime", "model", "session", "project"]
CostSource = Literal["runtime", "prices", "mixed", "none"]

UNKNOWN = "unknown"

FOREVER = SLOT << 32
"""Later than anything."""

_ROWS = """
    SELECT g.runtime, g.session, g.project, g.model, s.agent, s.cwd, a.slot, a.answers, a.input, a.output,
        a.cached_read, a.cached_write, a.thought, a.cost, a.first, a.last
    FROM ({sums}) AS a
    JOIN usage_groups AS g ON g.id = a.grouped
    LEFT JOIN (
        SELECT runtime, runtime_session, max(agent) AS agent, max(cwd) AS cwd FROM sessions
        WHERE runtime_session IS NOT NULL GROUP BY runtime, runtime_session
    ) AS s ON s.runtime = g.runtime AND s.runtime_session = g.session
"""
_WHOLE = _ROWS.format(sums="SELECT * FROM usage_sums WHERE slot * 900000 >= ? AND slot * 900000 < ?")
_PARTIAL = _ROWS.format(sums=" ".join((SUMS, "WHERE time >= ? AND time < ? GROUP BY 1, 2, 3")))
"""Where the time that is asked for does not begin and end with a slot, the single answers are looked at."""

_DAMAGE = "SELECT runtime, path, skipped, trouble FROM usage_sources WHERE skipped > 0 OR trouble != ''"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What to sum up. Times are milliseconds since the epoch; ``until`` itself is no part of it."""

    by: By = "day"
    since: int = 0
    until: int = FOREVER
    runtime: str | None = None
    session: str | None = None


class Sum(msgspec.Struct, frozen=True):
    """Answers of one kind that the store has summed up already; ``cost`` is what the runtime told."""

    runtime: str
    session: str
    project: str
    model: str
    agent: str
    slot: int
    answers: int
    usage: Usage
    cost: float | None
    first: int
    last: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report. ``cost_source`` tells who says what it cost: the runtime, the table of prices,
    both for parts of it, or nobody. ``unpriced_tokens`` are in no cost."""

    name: str
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = None
    cost_source: CostSource = "none"
    unpriced_tokens: int = 0
    runtimes: list[str] = []
    models: list[str] = []
    first: str | None = None
    last: str | None = None


class Unpriced(msgspec.Struct, frozen=True):
    """A model whose cost is in no total, for nobody told a price."""

    model: str
    answers: int
    tokens: int


class Damage(msgspec.Struct, frozen=True):
    """A transcript with lines that could not be read, or that could not be read at all."""

    runtime: str
    path: str
    skipped: int
    trouble: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Sums by one thing, and over all. ``prices_as_of`` is the date of the table of prices."""

    by: By
    rows: list[Row]
    total: Row
    unpriced: list[Unpriced]
    skipped_lines: int
    damaged: list[Damage]
    prices_as_of: str


def report(database: Path, prices: Prices, question: Question) -> Report:
    """Sum up the ledger."""
    with opened(database) as connection:
        whole = question.since % SLOT == question.until % SLOT == 0
        asked = (question.since, question.until)
        rows = connection.execute(_WHOLE if whole else _PARTIAL, asked).fetchall()
        damage = [Damage(*row) for row in connection.execute(_DAMAGE)]
    sums = [
        each
        for each in map(_sum, rows)
        if question.runtime in (None, each.runtime) and question.session in (None, each.session)
    ]
    return summed(
        sums, [each for each in damage if question.runtime in (None, each.runtime)], prices, question
    )


def _sum(row: tuple[object, ...]) -> Sum:
    """A row of the store as a struct; what we know of our own sessions stands in for what is not told."""
    runtime, session, project, model, agent, cwd, slot, answers, *rest = row
    tokens, cost, first, last = rest[:5], *rest[5:]
    return msgspec.convert(
        {
            "runtime": runtime,
            "session": session or UNKNOWN,
            "project": project or cwd or UNKNOWN,
            "model": model,
            "agent": agent or runtime,
            "slot": slot,
            "answers": answers,
            "usage": dict(zip(Usage.__struct_fields__, tokens, strict=True)),
            "cost": cost,
            "first": first,
            "last": last,
        },
        Sum,
    )


def summed(sums: list[Sum], damage: list[Damage], prices: Prices, question: Question) -> Report:
    """The report that these sums come to."""
    parts: dict[str, list[Sum]] = {}
    for each in sums:
        parts.setdefault(name_of(each, question.by), []).append(each)
    rows = [row(name, part, prices) for name, part in parts.items()]
    if question.by == "day":
        rows.sort(key=lambda each: each.name)
    else:
        rows.sort(key=lambda each: (-(each.cost_usd or 0), -each.total_tokens, each.name))
    return Report(
        by=question.by,
        rows=rows,
        total=row("total", sums, prices),
        unpriced=_unpriced(sums, prices),
        skipped_lines=sum(each.skipped for each in damage),
        damaged=damage,
        prices_as_of=prices.as_of,
    )


def name_of(each: Sum, by: By) -> str:
    """What a sum is listed under."""
    match by:
        case "day":
            return (
                time.strftime("%Y-%m-%d", time.localtime(each.slot * SLOT // 1000))
                if each.slot > 0
                else UNKNOWN
            )
        case "agent":
            return each.agent
        case "runtime":
            return each.runtime
        case "model":
            return each.model or UNKNOWN
        case "session":
            return each.session
        case "project":
            return each.project


def row(name: str, sums: Iterable[Sum], prices: Prices) -> Row:
    """One line. What the runtime tells of a cost wins over the prices."""
    usage, told, estimated, unpriced, answers = Usage(), 0.0, 0.0, 0, 0
    sources: set[Literal["runtime", "prices"]] = set()
    times: list[int] = []
    runtimes: dict[str, None] = {}
    models: dict[str, None] = {}
    for each in sums:
        usage, answers = usage + each.usage, answers + each.answers
        runtimes[each.runtime] = None
        models[each.model or UNKNOWN] = None
        times += (moment for moment in (each.first, each.last) if moment > 0)
        if each.cost is not None:
            told, sources = told + each.cost, sources | {"runtime"}
        elif price := prices.of(each.model):
            estimated, sources = estimated + price.cost(each.usage), sources | {"prices"}
        else:
            unpriced += tokens(each.usage)
    source: CostSource = "mixed" if len(sources) > 1 else next(iter(sources), "none")
    return Row(
        name=name,
        answers=answers,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_read_tokens=usage.cached_read_tokens,
        cached_write_tokens=usage.cached_write_tokens,
        thought_tokens=usage.thought_tokens,
        total_tokens=tokens(usage),
        cost_usd=told + estimated if sources else None,
        cost_source=source,
        unpriced_tokens=unpriced,
        runtimes=sorted(runtimes),
        models=sorted(models),
        first=_moment(min(times, default=0)),
        last=_moment(max(times, default=0)),
    )


def tokens(usage: Usage) -> int:
    """All tokens; thoughts are part of the output."""
    return usage.input_tokens + usage.output_tokens + usage.cached_read_tokens + usage.cached_write_tokens


def _moment(milliseconds: int) -> str | None:
    if milliseconds <= 0:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds / 1000))


def _unpriced(sums: Iterable[Sum], prices: Prices) -> list[Unpriced]:
    """The models without a price, for which no runtime told a cost either."""
    found: dict[str, tuple[int, int]] = {}
    for each in sums:
        if each.cost is None and tokens(each.usage) and prices.of(each.model) is None:
            answers, so_far = found.get(each.model or UNKNOWN, (0, 0))
            found[each.model or UNKNOWN] = (answers + each.answers, so_far + tokens(each.usage))
    return [Unpriced(model, *counts) for model, counts in sorted(found.items())]
