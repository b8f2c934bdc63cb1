"""When a runtime can be called again, by its own words."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.dispatch.resets import LONGEST, until_from

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC).timestamp()
DAY = 86400


def at(zone: str, day: int, hour: int, minute: int = 0) -> float:
    return datetime(2026, 11, day, hour, minute, tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s.", 20),
        ("Rate limit reached for gpt-5 ... Please try again in 1.898s. Visit", 1.898),
        ("Please try again in 486ms.", 0.486),
        ("You've hit your usage limit. Try again in 2 days 3 hours.", 2 * DAY + 3 * 3600),
        ("try again in 3 hours 25 minutes and 10 seconds", 3 * 3600 + 25 * 60 + 10),
        ("Your quota will reset after 2h7m32s.", 2 * 3600 + 7 * 60 + 32),
        ("Please retry in 34.074824224s.", 34.074824224),
        ('"retryDelay": "34s"', 34),
        ("retry-after: 30", 30),
        ("Retry-After: 120\nserver: x", 120),
        ('{"retry_after": 5}', 5),
        ("retry-after-ms: 1500", 1.5),
        ("x-ratelimit-reset-requests: 6m0s", 360),
        (f"anthropic-ratelimit-unified-reset: {int(NOW) + 77}", 77),
        (f"Claude AI usage limit reached|{int(NOW) + 900}", 900),
        (f'{{"status":"rejected","resetsAt":{int(NOW) + 901}}}', 901),
        (f'"resets_at": {int(NOW) + 902}000', 902),
        ("anthropic-ratelimit-requests-reset: 2026-11-18T12:05:00Z", 300),
        ("quota resets at 2026-11-18T14:00:00+01:00", 3600),
        ("Retry-After: Wed, 18 Nov 2026 12:01:00 GMT", 60),
        ("You will regain access on 2026-11-19 at 00:00 UTC.", DAY / 2),
        ("try again in 90 days", LONGEST),
        ("wait 10s, or try again in 1m", 60),
    ],
)
def test_spans_and_moments(text: str, seconds: float) -> None:
    assert until_from(text, NOW) == pytest.approx(NOW + seconds, rel=0, abs=0.01)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("You've hit your limit · resets 3pm (Europe/Berlin)", at("Europe/Berlin", 18, 15)),
        ("You've hit your limit · resets 1pm (Europe/Berlin)", at("Europe/Berlin", 19, 13)),
        ("resets 3:30am (America/New_York)", at("America/New_York", 19, 3, 30)),
        ("limit reached ∙ resets Nov 20, 3pm (Europe/Berlin)", at("Europe/Berlin", 20, 15)),
        ("resets at 15:00 UTC", at("UTC", 18, 15)),
        ("try again at Nov 20th, 2026 10:31 AM GMT.", at("UTC", 20, 10, 31)),
        ("resets 12am (UTC)", at("UTC", 19, 0)),
    ],
)
def test_clocks(text: str, moment: float) -> None:
    assert until_from(text, NOW) == moment


def test_a_clock_without_a_zone_is_this_machines() -> None:
    found = until_from("Your limit resets at 3pm.", NOW)
    assert found is not None
    local = datetime.fromtimestamp(found)
    assert (local.hour, local.minute, NOW < found <= NOW + DAY) == (15, 0, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Rate limit reached. Try again later.",
        "try again 3 times",
        "resets at 25:99 UTC",
        "reset on Nov 99, 3pm",
        "retry-after: -5",
        "retry-after: 0",
        "quota reset at 2020-01-01T00:00:00Z",
        "try again at Jan 5th, 2020 10:31 AM.",
        "2026-11-15 22:30:54 [INFO] Streaming failed: 429",
        "Retrying API call in 1.0s (attempt 1/3)",
        "the answer is 42s long, 3pm",
    ],
)
def test_what_names_no_time(text: str) -> None:
    assert until_from(text, NOW) is None


WORDS = st.sampled_from(
    [
        *("try again in", "resets", "reset after", "retry-after: ", "limit reached|", "and ", "Wed, ", "at "),
        *(
            "Nov ",
            "20th, ",
            "3pm",
            "25pm",
            ":30",
            "(Europe/Berlin)",
            "(No/Where)",
            "GMT",
            "999999999",
            "0001",
        ),
        *("2026-11-18T12:05:00Z", "9999-12-31T23:59:59+00:00", "h", "m", "s", "days", " ", "\n"),
    ]
)


@given(st.one_of(st.text(), st.lists(WORDS).map("".join)), st.floats(0, 2**32))
def test_it_never_raises_and_keeps_its_bounds(text: str, now: float) -> None:
    found = until_from(text, now)
    assert found is None or now < found <= now + LONGEST


def test_a_long_text_takes_no_long_time() -> None:
    for text in (
        "try again in 1h " * 5000,
        "reset" * 20000,
        "retry-after_" * 9000,
        "resets 1" * 9000,
        "1h" * 9000,
    ):
        until_from(text, NOW)
