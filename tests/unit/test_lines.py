"""Cutting a byte stream into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remuda.core.children import Lines

streams = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"bc", b"\x00", b"\xff", b"ddddd"])).map(b"".join)


def cut(stream: bytes, sizes: list[int], cap: int) -> list[bytes]:
    lines, found, start = Lines(cap), [], 0
    for size in [*sizes, len(stream)]:
        found += lines.feed(stream[start : start + size])
        start += size
    return [*found, *lines.end()]


def expected(stream: bytes, cap: int) -> list[bytes]:
    *complete, rest = stream.split(b"\n")
    whole = [*complete, rest] if rest else complete
    return [line for line in whole if len(line) <= cap]


@given(streams, st.lists(st.integers(0, 7)), st.integers(0, 12))
def test_any_chunking_gives_the_same_lines(stream: bytes, sizes: list[int], cap: int) -> None:
    assert cut(stream, sizes, cap) == expected(stream, cap)


def test_a_line_over_the_cap_is_dropped_and_the_lines_after_it_are_kept() -> None:
    assert cut(b"one\n" + b"x" * 100 + b"\ntwo\nthree", [3, 50, 2, 1], 10) == [b"one", b"two", b"three"]


def test_an_over_long_last_line_is_dropped() -> None:
    assert cut(b"one\n" + b"x" * 11, [], 10) == [b"one"]


def test_a_dropped_line_holds_no_memory() -> None:
    lines = Lines(10)
    for _ in range(1000):
        assert list(lines.feed(b"x" * 1000)) == []
    assert sum(len(part) for part in lines._parts) == 0
    assert list(lines.feed(b"\nok\n")) == [b"ok"]
