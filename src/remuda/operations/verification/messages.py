"""What the verification asks of its worker process, and what that tells, as lines of JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core import clock
from remuda.core.evidence import Evidence

Verdict = Literal["holds", "fails", "unchecked"]
Subject = Literal["everything", "guard", "run"]
"""What is looked at: all claims, the guard in runs and in hooks, or the guard in runs alone."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Verify one runtime within a private folder, no run longer than ``timeout`` (0: no such wish).

    ``config`` and ``cache`` are the user's own folders: one may declare the runtime, the other remembers
    versions. ``outside`` is the place that the worker must not be in.
    """

    runtime: str
    folder: str
    config: str
    cache: str
    binary: str | None
    timeout: float
    subject: Subject
    outside: tuple[str, ...]


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """There is no network, and this is the version that is going to be verified, if the program tells."""

    version: str | None


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """A check has begun."""

    title: str


class Finding(msgspec.Struct, frozen=True, tag="finding"):
    """What became of one claim; ``how`` says what was seen, or why it was not looked at."""

    what: str
    verdict: Verdict
    seconds: float
    how: str


Message = Opened | Begun | Finding


def as_evidence(runtime: str, version: str, finding: Finding) -> Evidence:
    """A finding as it is kept."""
    return Evidence(
        runtime=runtime,
        version=version,
        what=finding.what,
        holds=finding.verdict == "holds",
        seen_at=clock.rfc3339_seconds(clock.now()),
        how=finding.how,
    )
