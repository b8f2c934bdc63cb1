"""Identifiers and times."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from remuda.core import clock
from remuda.core.ids import ulid, uuid4

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _number(text: str) -> int:
    number = 0
    for letter in text:
        number = number * 32 + ALPHABET.index(letter)
    return number


def test_a_ulid_carries_its_time_and_is_unlike_any_other() -> None:
    before = time.time_ns() // 1_000_000
    made = [ulid() for _ in range(2000)]
    after = time.time_ns() // 1_000_000
    assert len(set(made)) == 2000
    assert all(len(text) == 26 and text[0] in "01234567" for text in made)
    assert all(before <= _number(text) >> 80 <= after for text in made)


def test_ulids_sort_by_time() -> None:
    first = ulid()
    time.sleep(0.002)
    assert first < ulid()


def test_a_uuid_is_a_random_one_of_version_four() -> None:
    made = [uuid.UUID(uuid4()) for _ in range(500)]
    assert len(set(made)) == 500
    assert all(one.version == 4 and one.variant == uuid.RFC_4122 for one in made)
    assert all(str(one) == text for text in [uuid4()] for one in [uuid.UUID(text)])


@given(st.floats(0, 4e9))
def test_times_are_rfc3339_in_utc_and_never_ahead(seconds: float) -> None:
    written = clock.rfc3339(seconds)
    assert written.endswith("Z")
    read = datetime.fromisoformat(written)
    assert read.tzinfo == UTC
    assert -1e-5 <= seconds - read.timestamp() < 0.00101
    assert clock.rfc3339_seconds(seconds) == written[:19] + "Z"


def test_now_is_now() -> None:
    assert abs(clock.now() - time.time()) < 1
