"""Evidence: the newest of a version counts, and a damaged line hides no other."""

from __future__ import annotations

import stat
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remuda.core.evidence import Evidence, latest, read, store


def seen(what: str, holds: bool, version: str = "1.0.0", runtime: str = "claude", at: int = 0) -> Evidence:
    return Evidence(
        runtime=runtime,
        version=version,
        what=what,
        holds=holds,
        seen_at=f"2026-01-01T00:00:{at:02}Z",
        how="test",
    )


def test_nothing_stored_is_nothing_known(tmp_path: Path) -> None:
    assert latest(tmp_path / "none", "claude", "1.0.0") == {}


def test_the_newest_check_of_a_claim_counts(tmp_path: Path) -> None:
    path = tmp_path / "state" / "evidence.jsonl"
    for item in (seen("channel.stdin", True), seen("channel.argv", True), seen("channel.stdin", False, at=1)):
        store(path, item)
    known = latest(path, "claude", "1.0.0")
    assert {what: item.holds for what, item in known.items()} == {
        "channel.stdin": False,
        "channel.argv": True,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_other_versions_and_runtimes_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    store(path, seen("channel.stdin", False, version="1.0.1"))
    store(path, seen("channel.stdin", False, runtime="codex"))
    assert latest(path, "claude", "1.0.0") == {}
    assert latest(path, "claude", None) == {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.binary(max_size=200).map(lambda data: data.replace(b"\n", b" ")))
def test_a_damaged_line_is_passed_over(tmp_path: Path, rubbish: bytes) -> None:
    path = tmp_path / "evidence.jsonl"
    path.unlink(missing_ok=True)
    store(path, seen("one", True))
    with path.open("ab") as stream:
        stream.write(rubbish + b"\n")
    store(path, seen("two", True))
    assert [item.what for item in read(path)] == ["one", "two"]
