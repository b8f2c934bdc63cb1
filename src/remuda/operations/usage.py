"""Tokens and cost over all transcripts on this machine."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from remuda.core.database import opened
from remuda.core.errors import NotFoundError, UsageError
from remuda.operations.environment import home_of
from remuda.operations.world import World
from remuda.runtimes import registry
from remuda.runtimes.transcripts import Places, Transcripts, TranscriptSummary
from remuda.usage import ledger, prices
from remuda.usage.report import FOREVER, By, Question, report
from remuda.usage.report import Report as Report
from remuda.usage.report import Row as Row

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class UsageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to sum up, and over which time. Without ``refresh``, only what the ledger has already counts."""

    by: By = "day"
    since: str | None = None
    until: str | None = None
    runtime: str | None = None
    session: str | None = None
    refresh: bool = True


def usage(world: World, request: UsageRequest) -> Report:
    """Bring the ledger up to date and sum it up."""
    now = time.time()
    question = Question(
        by=request.by,
        since=0 if request.since is None else moment(request.since, now),
        until=FOREVER if request.until is None else moment(request.until, now, end=True),
        runtime=request.runtime,
        session=request.session,
    )
    known = prices.load(world.config.usage.prices)
    if request.refresh or request.runtime:
        chosen = _chosen(request.runtime)
        if request.refresh:
            _refresh(world, chosen)
    return report(world.folders.database, known, question)


def _refresh(world: World, chosen: Mapping[str, Transcripts]) -> None:
    """Read what is new, in the homes of the agents that have one of their own as well."""
    usual = places(world)
    ledger.refresh(world.folders.database, chosen, usual)
    for agent in map(world.roster.get, world.config.agents):
        if agent.home is not None and agent.runtime in chosen:
            environ = {**world.environ, **home_of(agent, world.herd.get(agent.runtime))}
            own = msgspec.structs.replace(usual, environ=environ)
            ledger.refresh(world.folders.database, {agent.runtime: chosen[agent.runtime]}, own)


def parse_transcript(runtime: str, path: Path) -> TranscriptSummary | None:
    """What one transcript of a runtime comes to; None if it is not there or cannot be read."""
    return next(iter(_chosen(runtime).values())).summary(path)


def _chosen(runtime: str | None) -> dict[str, Transcripts]:
    known = registry.transcripts()
    if runtime is None:
        return known
    if runtime not in known:
        raise NotFoundError(
            f"no transcripts are known of a runtime named {runtime!r}", f"Known are: {', '.join(known)}."
        )
    return {runtime: known[runtime]}


def places(world: World) -> Places:
    """Where transcripts lie for whoever works in this world."""
    with opened(world.folders.database) as connection:
        rows = connection.execute("SELECT DISTINCT cwd FROM sessions ORDER BY cwd").fetchall()
    folders = tuple(dict.fromkeys((world.cwd, *(Path(row[0]) for row in rows))))
    return Places(environ=world.environ, kept=world.folders.data / "sessions", folders=folders)


def moment(text: str, now: float, *, end: bool = False) -> int:
    """A time as a person writes it, in milliseconds since the epoch: so long ago (``7d``), a day, or a time.

    A day begins at midnight here; as the ``end`` of something it counts whole.
    """
    plain = text.strip()
    if ago := _AGO.fullmatch(plain):
        return round((now - int(ago[1]) * _UNITS[ago[2]]) * 1000)
    try:
        found = datetime.fromisoformat(plain)
        if end and _DAY.fullmatch(plain):
            found += timedelta(days=1)
        return round(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is no time", "Write 7d, 12h or 2w for so long ago, or a day such as 2026-11-01."
        ) from None
