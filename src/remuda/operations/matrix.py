"""The runtime matrix: what is claimed about each runtime, and on which version it was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from remuda.operations.guarding import CLAIM
from remuda.operations.runtimes import RuntimeReport

FEATURES = ("headless", "connection", "hooks", "sandbox", "resume", "usage")
_CLAIMS = {"headless": "events", "resume": "resume", "usage": "usage"}
"""The claim by whose evidence a feature stands or falls."""


def markdown(reports: Iterable[RuntimeReport], *, installed: bool) -> str:
    """The matrix as a Markdown table; ``installed`` adds what was found on this machine."""
    found = ("installed",) if installed else ()
    header = ("runtime", *found, "last verified", "stability", "prompt channels", *FEATURES, "guard")
    rows = (_row(report, installed) for report in reports)
    return "\n".join(_line(row) for row in (header, tuple("---" for _ in header), *rows))


def installed_version(report: RuntimeReport) -> str:
    """The version on this machine, in a word or two."""
    return (report.version or "unknown version") if report.installed else "no"


def state(report: RuntimeReport, feature: str) -> str:
    """How sure we are of a feature: what was seen here counts more than what is declared."""
    seen = report.evidence.get(_CLAIMS.get(feature, ""))
    if seen is not None:
        return "verified" if seen else "no"
    return report.features[feature].state if feature in report.features else "no"


def guard(report: RuntimeReport) -> str:
    """How a capability is held, and that it was seen not to hold here, if so."""
    if report.guard == "nothing":
        return "no"
    return f"{report.guard}, but seen to fail" if report.evidence.get(CLAIM) is False else report.guard


def _row(report: RuntimeReport, installed: bool) -> tuple[str, ...]:
    found = (installed_version(report),) if installed else ()
    features = (_cell(state(report, name), _seen_on(report, _CLAIMS.get(name))) for name in FEATURES)
    channels = ", ".join(_channels(report))
    return (
        f"`{report.name}`",
        *found,
        report.verified_version,
        report.stability,
        channels,
        *features,
        guard(report),
    )


def _channels(report: RuntimeReport) -> Iterator[str]:
    for channel in report.channels:
        seen = report.evidence.get(f"channel.{channel.mode}")
        version = report.version if seen else channel.verified
        proof = "no" if seen is False else _cell("verified" if version else "documented", version)
        yield f"{channel.mode} ({proof}{'; on request' if channel.on_request else ''})"


def _seen_on(report: RuntimeReport, claim: str | None) -> str | None:
    return report.version if claim in report.evidence else report.verified_version


def _cell(state: str, version: str | None) -> str:
    return f"verified on {version}" if state == "verified" else state


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
