"""Prices and sums: a cost that a runtime tells wins, an unknown model has none, and that is said."""

from __future__ import annotations

import pytest

from remuda.core.config import PriceConfig
from remuda.core.errors import UsageError
from remuda.core.events import Usage
from remuda.operations.usage import moment
from remuda.surfaces.cli.usage import bar, money, notes
from remuda.usage import prices
from remuda.usage.ledger import SLOT
from remuda.usage.report import Damage, Question, Report, Sum, summed

DAY = 86_400_000


def one(model: str, usage: Usage, cost: float | None = None, runtime: str = "claude") -> Sum:
    return Sum(
        runtime, "s", "/p", model, runtime, 20_000 * DAY // SLOT, 1, usage, cost, 20_000 * DAY, 20_000 * DAY
    )


def told(*sums: Sum, damage: tuple[Damage, ...] = (), **own: PriceConfig) -> Report:
    return summed(list(sums), list(damage), prices.load(own), Question(by="model"))


@pytest.mark.parametrize(
    ("model", "same"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openai/gpt-5-2025-08-07", "gpt-5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("GPT-5-Mini", "gpt-5-mini"),
    ],
)
def test_a_model_is_known_by_its_other_spellings(model: str, same: str) -> None:
    table = prices.load({})
    assert table.of(model) == table.of(same) is not None


@pytest.mark.parametrize(
    "model",
    ["", "claude", "claude-sonnet", "claude-opus-4-99", "gpt-5-turbo", "gpt", "scripted-model-1", "mygpt-5"],
)
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert prices.load({}).of(model) is None


def test_a_relative_of_a_model_is_not_taken_for_it() -> None:
    table = prices.load({})
    assert table.of("gpt-5") != table.of("gpt-5-mini")
    assert table.of("claude-opus-4-1") != table.of("claude-opus-4-5")


def test_prices_of_ones_own_win_and_the_longest_pattern_wins() -> None:
    table = prices.load(
        {"*": PriceConfig(1, 1), "claude-*": PriceConfig(2, 2), "claude-opus-*": PriceConfig(3, 3, 0.5)}
    )
    assert table.of("claude-opus-4-1") == prices.Price(3, 3, 0.5, 3)
    assert table.of("claude-sonnet-4-5") == prices.Price(2, 2, 2, 2)
    assert table.of("whatever") == prices.Price(1, 1, 1, 1)


def test_all_listed_prices_are_sensible() -> None:
    """Reading from a cache is never dearer than input, and output never cheaper."""
    for pattern, price in prices.load({}).listed.items():
        assert 0 < price.cached_read <= price.input <= price.output, pattern
        assert price.input <= price.cached_write <= 2 * price.input, pattern


def test_what_the_runtime_tells_wins() -> None:
    million = Usage(1_000_000, 0, 0, 0)
    report = told(one("claude-sonnet-4-5", million, 0.25), one("gpt-5", million), one("mystery", million))
    rows = {row.name: (row.cost_usd, row.cost_source, row.unpriced_tokens) for row in report.rows}
    assert rows == {
        "claude-sonnet-4-5": (0.25, "runtime", 0),
        "gpt-5": (1.25, "prices", 0),
        "mystery": (None, "none", 1_000_000),
    }
    assert (report.total.cost_usd, report.total.cost_source) == (1.5, "mixed")
    assert [(each.model, each.tokens) for each in report.unpriced] == [("mystery", 1_000_000)]


def test_each_kind_of_token_has_its_price() -> None:
    (row,) = told(one("claude-opus-4-1", Usage(1_000_000, 100_000, 10_000_000, 200_000, 50_000))).rows
    assert row.cost_usd == pytest.approx(15 + 7.5 + 15 + 3.75)
    assert row.total_tokens == 11_300_000


def test_what_is_missing_is_said() -> None:
    damage = (Damage("claude", "/x", 2, ""), Damage("claude", "/y", 1, ""), Damage("codex", "/z", 0, "gone"))
    report = told(one("mystery", Usage(5, 5)), damage=damage)
    said = list(notes(report))
    assert said == [
        "no price for model mystery: its cost is not in the total (10 tokens)",
        "skipped 3 damaged lines in 2 files",
        "could not read /z: gone",
    ]
    assert [money(row) for row in (*report.rows, report.total)] == ["unknown", "unknown"]


def test_money_shows_what_it_is() -> None:
    million = Usage(1_000_000)
    both = told(one("gpt-5", million), one("mystery", million)).total
    assert money(both) == "~$1.25+"
    assert money(told(one("x", million, 1234.5)).total) == "$1,234.50"
    assert money(told().total) == "-"


@pytest.mark.parametrize(
    ("value", "drawn"), [(0, ""), (8, "█" * 24), (4, "█" * 12), (0.0001, "▏"), (1, "███"), (1.5, "████▌")]
)
def test_bars(value: float, drawn: str) -> None:
    assert bar(value, 8) == drawn


NOW = 1_794_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600), (" 1 d ", 86_400)],
)
def test_so_long_ago(text: str, seconds: int) -> None:
    assert moment(text, NOW) == (NOW - seconds) * 1000


def test_days_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moment("2026-11-02", NOW) == moment("2026-11-01", NOW, end=True)
    assert moment("2026-11-01T00:00:00Z", NOW) == 1_793_491_200_000
    assert moment("2026-11-01T02:00:00+02:00", NOW, end=True) == 1_793_491_200_000


@pytest.mark.parametrize("text", ["", "soon", "7y", "-3d", "2026-13-01", "99999999999999d", "d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        moment(text, NOW)
