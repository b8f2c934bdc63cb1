"""What a headless session is told beforehand, and the envelope that its events travel in."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda.core import clock
from remuda.core.errors import ErrorKind
from remuda.core.events import AnyUpdate, Event, Question, Result
from remuda.core.processes import Command
from remuda.runtimes.base import Parser

VERSION = 1


class Limits(msgspec.Struct, frozen=True):
    """How long a turn may take, in seconds; 0 means no limit.

    ``patience`` is how long the program may go on retrying a failing model before we call the failure final:
    short before the first answer, when nothing is lost by giving up, and long in the middle of the work. For
    the ``hasty`` kinds it is only ``haste`` before the first answer, because somebody else can be asked.
    """

    timeout: float = 0
    idle: float = 0
    patience: float = 4.0
    patience_midway: float = 120.0
    hasty: frozenset[ErrorKind] = frozenset()
    haste: float = 0.3


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one headless run needs, decided beforehand."""

    session: str
    agent: str
    command: Command
    parser: Parser
    leftover: Path | None = None
    limits: Limits = Limits()


def envelope(
    session: str,
    agent: str,
    seq: int,
    *,
    update: AnyUpdate | None = None,
    question: Question | None = None,
    result: Result | None = None,
) -> Event:
    """An update, a question or a result, numbered and stamped with its session."""
    return Event(
        v=VERSION,
        seq=seq,
        session=session,
        agent=agent,
        time=clock.rfc3339(clock.now()),
        update=update,
        question=question,
        result=result,
    )
