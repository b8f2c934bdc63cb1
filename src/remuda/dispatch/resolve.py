"""Which agent is active: one ordered list of sources, the first valid one wins, each accounts for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core import log
from remuda.core.clock import now as current_time
from remuda.core.errors import NotFoundError
from remuda.core.files import write_atomic
from remuda.dispatch.launcher_context import candidates, path_text, read_regular
from remuda.dispatch.names import Rejected, check_name
from remuda.runtimes.registry import DEFAULT

BUILT_IN = "rehearsal"
"""The agent that comes with Remuda: always there, so it never counts as the only one installed."""

MAX_STICKY = 1024

Source = Literal[
    "explicit",
    "REMUDA_AGENT_BINARY",
    "AMPLIHACK_AGENT_BINARY",
    "launcher_context",
    "sticky",
    "config",
    "sole",
    "default",
]
"""Where a name can come from, the strongest first."""

Outcome = Literal["won", "lost", "unset", "rejected", "stale", "unchecked"]
"""What became of a source; ``lost`` is a valid name that a stronger source overrules."""


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the answer depends on. ``installed`` is only called when its answer is needed."""

    cwd: Path
    environ: Mapping[str, str]
    names: Collection[str]
    installed: Callable[[], Collection[str]]
    sticky: Path
    config_agent: str | None = None
    explicit: str | None = None


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the explanation; the launcher context has one for each file that was looked at."""

    source: Source
    outcome: Outcome
    value: str | None = None
    path: str | None = None
    reason: str | None = None


class Resolution(msgspec.Struct, frozen=True):
    """The active agent, the source that named it, and what every source said."""

    agent: str
    source: Source
    explain: tuple[SourceReport, ...]


class Finding(msgspec.Struct, frozen=True):
    """What a source holds: a valid name, a refused value or file, or nothing."""

    verdict: str | Rejected | None
    path: Path | None = None
    raw: str | None = None


Look = Callable[[Inputs, float], Iterable[Finding]]


def resolve(
    inputs: Inputs, *, full: bool = False, now: float | None = None, warn: log.Warn = log.warn
) -> Resolution:
    """Find the active agent.

    A refused value is warned about and passed over. ``full`` also looks at the sources behind the winner, for
    the explanation; without it they are ``unchecked``.
    """
    moment = current_time() if now is None else now
    winner: tuple[str, Source] = (DEFAULT, "default")
    decided = False
    reports: list[SourceReport] = []
    for source, look in _LOOKS:
        if decided and not full:
            reports.append(SourceReport(source=source, outcome="unchecked"))
            continue
        for finding in look(inputs, moment):
            reports.append(_report(source, finding, decided))
            if decided:
                continue
            if isinstance(finding.verdict, str):
                winner, decided = (finding.verdict, source), True
            elif finding.verdict is not None:
                _warn_refused(warn, source, finding, finding.verdict.reason)
    return Resolution(*winner, tuple(reports))


def remember(sticky: Path, name: str) -> None:
    """Make an agent the sticky choice."""
    write_atomic(sticky, f"{name}\n".encode())


def _report(source: Source, finding: Finding, decided: bool) -> SourceReport:
    path = None if finding.path is None else path_text(finding.path)
    match finding.verdict:
        case None:
            return SourceReport(source=source, outcome="unset", path=path)
        case Rejected(reason="stale"):
            return SourceReport(source=source, outcome="stale", path=path, reason="stale")
        case Rejected(reason=reason):
            return SourceReport(source=source, outcome="rejected", path=path, reason=reason)
        case name:
            return SourceReport(source=source, outcome="lost" if decided else "won", value=name, path=path)


def _warn_refused(warn: log.Warn, source: Source, finding: Finding, reason: str) -> None:
    if finding.raw is not None:
        warn("ignored an invalid agent name", source=source, reason=reason, value=log.redacted(finding.raw))
    elif finding.path is not None:
        warn("ignored an unusable file", source=source, reason=reason, path=path_text(finding.path))


def _explicit(inputs: Inputs, _now: float) -> Iterable[Finding]:
    """A name asked for by hand: wrong is an error, never a reason to take another agent."""
    if inputs.explicit is None:
        return [Finding(None)]
    verdict = check_name(inputs.explicit, inputs.names)
    if isinstance(verdict, str):
        return [Finding(verdict)]
    raise NotFoundError(
        "no agent has the name that was asked for", f"The agents are: {', '.join(sorted(inputs.names))}."
    )


def _variable(name: str) -> Look:
    def look(inputs: Inputs, _now: float) -> Iterable[Finding]:
        return [_value(inputs.environ.get(name), inputs)]

    return look


def _launcher_context(inputs: Inputs, now: float) -> Iterable[Finding]:
    found = [Finding(c.verdict, c.path) for c in candidates(inputs.cwd, inputs.names, now)]
    return found or [Finding(None)]


def _sticky(inputs: Inputs, _now: float) -> Iterable[Finding]:
    content = read_regular(inputs.sticky, MAX_STICKY)
    if content is None or isinstance(content, Rejected):
        return [Finding(content, inputs.sticky)]
    text = content.data.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return [_value(text, inputs, inputs.sticky)]


def _config(inputs: Inputs, _now: float) -> Iterable[Finding]:
    return [_value(inputs.config_agent, inputs)]


def _sole(inputs: Inputs, _now: float) -> Iterable[Finding]:
    found = {name for name in inputs.installed() if name in inputs.names} - {BUILT_IN}
    return [Finding(found.pop() if len(found) == 1 else None)]


def _default(_inputs: Inputs, _now: float) -> Iterable[Finding]:
    return [Finding(DEFAULT)]


def _value(raw: str | None, inputs: Inputs, path: Path | None = None) -> Finding:
    return Finding(None if raw is None else check_name(raw, inputs.names), path, raw)


_LOOKS: tuple[tuple[Source, Look], ...] = (
    ("explicit", _explicit),
    ("REMUDA_AGENT_BINARY", _variable("REMUDA_AGENT_BINARY")),
    ("AMPLIHACK_AGENT_BINARY", _variable("AMPLIHACK_AGENT_BINARY")),
    ("launcher_context", _launcher_context),
    ("sticky", _sticky),
    ("config", _config),
    ("sole", _sole),
    ("default", _default),
)
