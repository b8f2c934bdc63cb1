"""Reads from a runtime's own words when it can be called again. Total: what is not understood is None."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

LONGEST = 7 * 86400.0
"""Seconds: no word of a program keeps it away for longer."""

_READ = 20_000
_MILLISECONDS = 1e12
_EPOCH = 1e9
"""From here on, a number is a moment; below, it is a number of seconds."""

_AGAIN = r"(?:try again|retry|resets?|available(?: again)?|wait|renews?|refresh(?:es)?|until|regain access)"
_LENGTHS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_UNIT = r"(milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
_PART = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?)\s?{_UNIT}", re.IGNORECASE)
_SPAN = re.compile(
    rf"{_AGAIN}[-_ \"']{{0,3}}(?:after|in|for|delay|within|[a-z]{{1,20}}:)?[-_:= \"']{{0,4}}"
    rf"(?:about |approximately )?((?:\d{{1,9}}(?:\.\d{{1,9}})?\s?{_UNIT},?\s?(?:and )?){{1,5}})",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:retry[-_ ]?after|resets?[\w-]{0,40}?)([-_]ms)?[\"']?\s?[:=]\s?[\"']?"
    r"(\d{1,13}(?:\.\d{1,9})?)(?![\w.:/-])",
    re.IGNORECASE,
)
_AFTER_BAR = re.compile(r"limit reached\|(\d{10,13})(?!\d)", re.IGNORECASE)
_ISO = re.compile(
    rf"{_AGAIN}[^\n]{{0,40}}?(\d{{4}}-\d\d-\d\d(?:[T ]| at )"
    r"\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)",
    re.IGNORECASE,
)
_HTTP_DATE = re.compile(
    r"(?:retry-after|reset)[^\n]{0,10}?\w{3}, (\d\d \w{3} \d{4} \d\d:\d\d:\d\d) GMT", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    rf"(?:again|{_AGAIN})(?: at| on| by)? "
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.? (?P<day>\d\d?)(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4}))?,?(?: at)? )?"
    r"(?P<hour>\d\d?)(?::(?P<minute>\d\d))?(?: ?(?P<half>[ap])\.?m\b)?"
    r"(?: ?\(?(?P<zone>[a-z_]{1,30}/[a-z_/+-]{1,40}|utc|gmt)\b\)?)?",
    re.IGNORECASE,
)


def until_from(text: str, now: float) -> float | None:
    """When it can be called again, in seconds since the epoch: the latest moment that is spoken of, neither
    in the past nor further away than :data:`LONGEST`. ``text`` may also hold headers, one a line."""
    told = [moment for moment in _moments(text[:_READ], now) if moment > now]
    return min(max(told), now + LONGEST) if told else None


def _moments(text: str, now: float) -> Iterator[float]:
    for found in _SPAN.finditer(text):
        yield now + sum(float(n) * _length(unit) for n, unit in _PART.findall(found[1]))
    for found in _NUMBER.finditer(text):
        yield _moment(float(found[2]) * (0.001 if found[1] else 1.0), now)
    for found in _AFTER_BAR.finditer(text):
        yield _moment(float(found[1]), now)
    for found in _ISO.finditer(text):
        yield _iso(found[1])
    for found in _HTTP_DATE.finditer(text):
        yield _http_date(found[1])
    for found in _CLOCK.finditer(text):
        yield _clock(found, now)


def _length(unit: str) -> float:
    small = unit.lower()
    return _LENGTHS["ms"] if small == "ms" or small.startswith("milli") else _LENGTHS[small[0]]


def _moment(number: float, now: float) -> float:
    if number >= _MILLISECONDS:
        return number / 1000
    return number if number >= _EPOCH else now + number


def _iso(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text.replace(" at ", "T"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _http_date(text: str) -> float:
    try:
        return datetime.strptime(text, "%d %b %Y %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _clock(found: re.Match[str], now: float) -> float:
    """The next time that a clock shows this; on a day, if one is named. A bare number is no time."""
    if not found["half"] and not found["minute"]:
        return 0.0
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            return 0.0
        hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    try:
        here = datetime.fromtimestamp(now, _zone(found["zone"])).astimezone(_zone(found["zone"]))
        then = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            return _dated(then, found).timestamp()
        return (then if then > here else then + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _dated(then: datetime, found: re.Match[str]) -> datetime:
    """On the day that is named, of this year or the one after it where none is."""
    month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
    if found["year"]:
        return then.replace(year=int(found["year"]), month=month, day=day)
    later = then.year + (month < then.month)
    return then.replace(year=later, month=month, day=day)


def _zone(name: str | None) -> tzinfo | None:
    """A time zone by its name; this machine's own where there is none, or none of that name."""
    if name is None:
        return None
    if name.lower() in ("utc", "gmt"):
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None
