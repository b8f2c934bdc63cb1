"""Evidence: what was seen when a claim was checked against a real binary. Append-only JSON lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.core.files import append_line


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One check of one claim: ``what`` is e.g. ``channel.stdin``; the newest check of a claim counts."""

    runtime: str
    version: str
    what: str
    holds: bool
    seen_at: str
    how: str


def read(path: Path) -> Iterator[Evidence]:
    """All stored evidence, oldest first; lines that do not decode are passed over."""
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                yield msgspec.json.decode(line, type=Evidence)


def store(path: Path, evidence: Evidence) -> None:
    """Add one piece of evidence."""
    append_line(path, msgspec.json.encode(evidence))


def latest(path: Path, runtime: str, version: str | None) -> dict[str, Evidence]:
    """The newest evidence for each claim about one version of a runtime."""
    return {item.what: item for item in read(path) if item.runtime == runtime and item.version == version}
