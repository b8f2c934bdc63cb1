"""What tokens cost: a dated table of list prices, under the user's own. No price is ever guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib import resources

import msgspec

from remuda.core.config import PriceConfig
from remuda.core.events import Usage

_MILLION = 1_000_000

_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest)(?:-v\d+(?::\d+)?)?$|-v\d+(?::\d+)?$")
"""What vendors put behind a model's name without another model being meant."""

_BEDROCK = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google)\.")
_CLAUDE_VERSION = re.compile(r"(?<=\d)\.(?=\d)")


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_read: float
    cached_write: float

    def cost(self, usage: Usage) -> float:
        """What these tokens cost."""
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cached_read_tokens * self.cached_read
            + usage.cached_write_tokens * self.cached_write
        ) / _MILLION


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table as it is shipped."""

    as_of: str
    models: dict[str, tuple[float, float, float, float]]


class Prices(msgspec.Struct, frozen=True):
    """All prices that are known: the user's first."""

    as_of: str
    own: Mapping[str, Price]
    listed: Mapping[str, Price]
    found: dict[str, Price | None] = {}

    def of(self, model: str) -> Price | None:
        """The price of a model; None if there is none. It is looked up once, for it is asked very often."""
        if model not in self.found:
            self.found[model] = self._look_up(model)
        return self.found[model]

    def _look_up(self, model: str) -> Price | None:
        """The price of the longest pattern that matches a model's name."""
        names = spellings(model)
        for table in (self.own, self.listed):
            fitting = (pattern for pattern in table if any(fnmatchcase(name, pattern) for name in names))
            if best := max(fitting, key=len, default=None):
                return table[best]
        return None


def load(own: Mapping[str, PriceConfig]) -> Prices:
    """The shipped table, and what the user has set."""
    import tomllib

    text = resources.files("remuda.usage").joinpath("prices.toml").read_text("utf-8")
    table = msgspec.convert(tomllib.loads(text), _Table)
    return Prices(
        table.as_of,
        {pattern: _price(each) for pattern, each in own.items()},
        {pattern: Price(*numbers) for pattern, numbers in table.models.items()},
    )


def _price(own: PriceConfig) -> Price:
    read = own.input if own.cached_read is None else own.cached_read
    written = own.input if own.cached_write is None else own.cached_write
    return Price(own.input, own.output, read, written)


def spellings(model: str) -> tuple[str, ...]:
    """A model's name as it is told, and without what gateways and vendors put before and behind it."""
    plain = model.strip().lower()
    bare = _BEDROCK.sub("", plain.rpartition("/")[2])
    undated = _DATE.sub("", bare)
    if undated.startswith("claude"):
        undated = _CLAUDE_VERSION.sub("-", undated)
    return tuple(dict.fromkeys(name for name in (model, plain, bare, undated) if name))
