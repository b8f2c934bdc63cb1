"""How often, and how many at a time: the arithmetic of it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.dispatchconfig import LimitsConfig
from remuda.core.errors import ConfigError
from remuda.dispatch.limits import Bucket, Limits, filled, limits_of, parse_rate, wait_for

RATES = st.builds(Limits, st.floats(0.001, 1000), st.integers(1, 100), st.just(0))
TIMES = st.floats(0, 1e9)


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("30/m", 0.5),
        ("5/s", 5),
        ("1000/h", 1000 / 3600),
        ("2/10s", 0.2),
        ("1/d", 1 / 86400),
        ("3/500ms", 6),
        (" 7/2m ", 7 / 120),
        ("4/2", 2),
    ],
)
def test_rates(text: str, per_second: float) -> None:
    assert parse_rate(text) == pytest.approx(per_second)


@pytest.mark.parametrize(
    "text", ["", "30", "/m", "0/m", "-1/m", "30/", "30/0s", "30/m/s", "x/m", "30/y", "1e3/s"]
)
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ConfigError, match=r'dispatch\.rate: expect "<n>/<dur>" e\.g\. "30/m"'):
        parse_rate(text)


@given(st.text())
def test_a_rate_is_positive_or_an_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert parse_rate(text) > 0


def test_an_agents_own_limits_take_the_place_of_the_common_ones() -> None:
    common = LimitsConfig(rate="30/m", max_concurrent=3)
    assert limits_of(None, common) == Limits(0.5, 1, 3)
    assert limits_of(LimitsConfig(rate="5/s"), common) == Limits(5.0, 6, 0)
    assert limits_of(LimitsConfig(rate="5/s", burst=2, max_concurrent=1), common) == Limits(5.0, 2, 1)
    assert limits_of(LimitsConfig(rate="5/s", burst=0), common).burst == 1
    assert not limits_of(None, LimitsConfig())
    assert not limits_of(LimitsConfig(burst=5), common)


@given(RATES, st.lists(st.floats(0, 100), max_size=60))
def test_no_more_turns_than_the_rate_and_the_burst_allow(limits: Limits, pauses: list[float]) -> None:
    """Whoever takes every turn that can be had gets at most the burst and what has come since."""
    now, taken = 1000.0, 0
    bucket = filled(None, limits, now)
    for pause in pauses:
        now += pause
        bucket = filled(bucket, limits, now)
        while wait_for(bucket, limits, 0) == 0:
            bucket = Bucket(bucket.tokens - 1, bucket.at)
            taken += 1
        assert 0 <= bucket.tokens < 1
    assert taken <= limits.burst + (now - 1000.0) * limits.per_second + 1e-6 * len(pauses)


@given(RATES, st.floats(0, 100), TIMES, st.integers(0, 50))
def test_who_waits_as_long_as_it_is_told_gets_its_turn(
    limits: Limits, tokens: float, now: float, ahead: int
) -> None:
    bucket = filled(Bucket(min(tokens, float(limits.burst)), now), limits, now)
    wait = wait_for(bucket, limits, ahead)
    if ahead < limits.burst:
        later = filled(bucket, limits, now + wait)
        assert later.tokens == pytest.approx(
            min(bucket.tokens + wait * limits.per_second, limits.burst), abs=0.5
        )
        assert (
            wait_for(later, limits, ahead) <= 1e-3 + 1e-6 * now / limits.per_second + 0.5 / limits.per_second
        )


@given(RATES, st.floats(-10, 1000), TIMES, TIMES)
def test_a_bucket_is_never_overfull_nor_in_debt(
    limits: Limits, tokens: float, then: float, now: float
) -> None:
    found = filled(Bucket(tokens, then), limits, now)
    assert 0 <= found.tokens <= limits.burst
    assert found.at == now
