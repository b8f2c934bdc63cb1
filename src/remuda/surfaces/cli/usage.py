"""``remuda usage``"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from remuda.core.errors import UsageError
from remuda.surfaces.cli.output import as_json, draw, table, write_json

if TYPE_CHECKING:
    from remuda.operations.usage import Report, Row

_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_CSV = (
    *("name", "answers", "input_tokens", "output_tokens", "cached_read_tokens", "cached_write_tokens"),
    *("thought_tokens", "total_tokens", "cost_usd", "cost_source", "unpriced_tokens"),
)


@click.command()
@click.option(
    "--by",
    type=click.Choice(("day", "agent", "runtime", "model", "session", "project")),
    default="day",
    show_default=True,
    help="What to list.",
)
@click.option("--since", metavar="TIME", help="From then on: 7d, 12h, 2w, or a day such as 2026-11-01.")
@click.option("--until", metavar="TIME", help="Up to then; a day counts whole.")
@click.option("--runtime", metavar="NAME", help="Of one runtime only.")
@click.option("--no-refresh", is_flag=True, help="Look for nothing new in the transcripts.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table for other programs.")
@as_json
def usage(no_refresh: bool, as_csv: bool, as_json: bool, **request: Any) -> None:
    """Add up the tokens and the cost of all agents on this machine.

    Read are the transcripts that the agents' own programs keep, in the homes that the environment names; what
    was read once is remembered, also when the transcript is gone. Input is what came from no cache. A cost
    that a runtime tells itself counts; the others follow from a table of list prices, and a model that is not
    in it has none. Prices of your own: 'usage.prices' in the configuration.

    \b
    Examples:
      remuda usage --since 7d
      remuda usage --by model --json
      remuda usage --by project --runtime claude --csv > usage.csv
    """
    from remuda.operations.usage import UsageRequest
    from remuda.operations.usage import usage as operation
    from remuda.operations.world import open_world

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other", "Choose one.")
    report = operation(open_world(), UsageRequest(refresh=not no_refresh, **request))
    if as_json:
        write_json(report)
        return
    if as_csv:
        _write_csv(report)
    else:
        _draw(report)
    for note in notes(report):
        click.echo(note, err=True)


def _write_csv(report: Report) -> None:
    import csv

    writer = csv.writer(sys.stdout)
    writer.writerow((report.by, *_CSV[1:]))
    for row in report.rows:
        values = (getattr(row, field) for field in _CSV)
        writer.writerow("" if value is None else value for value in values)


def _draw(report: Report) -> None:
    if not report.rows:
        click.echo("No transcripts were found of that.", err=True)
        return
    drawn = table(
        report.by, "answers", "input", "output", "cache read", "cache write", "cost", _measured(report)
    )
    for column in drawn.columns[1:-1]:
        column.justify = "right"
    drawn.columns[-1].no_wrap = True
    most = max(_measure(report, row) for row in report.rows)
    for row in report.rows:
        drawn.add_row(*_cells(row), bar(_measure(report, row), most))
    drawn.add_section()
    drawn.add_row(*_cells(report.total), "", style="bold")
    draw(drawn)


def _cells(row: Row) -> Iterator[str]:
    yield row.name
    for number in (row.answers, row.input_tokens, row.output_tokens):
        yield f"{number:,}"
    yield f"{row.cached_read_tokens:,}"
    yield f"{row.cached_write_tokens:,}"
    yield money(row)


def money(row: Row) -> str:
    """A cost: with a tilde where it follows from list prices, with a plus where something has no price."""
    if row.cost_usd is None:
        return "unknown" if row.unpriced_tokens else "-"
    estimate = "" if row.cost_source == "runtime" else "~"
    return f"{estimate}${row.cost_usd:,.2f}{'+' if row.unpriced_tokens else ''}"


def _measured(report: Report) -> str:
    """What the bars show: the cost, or the tokens where not all of that is known."""
    return "tokens" if report.unpriced or report.total.cost_usd is None else "cost"


def _measure(report: Report, row: Row) -> float:
    return row.total_tokens if _measured(report) == "tokens" else row.cost_usd or 0.0


def bar(value: float, most: float) -> str:
    """A bar of blocks and eighths of blocks; anything above nothing shows."""
    if value <= 0 or most <= 0:
        return ""
    eighths = max(1, round(value / most * _BAR * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def notes(report: Report) -> Iterator[str]:
    """What somebody who reads the sums should know."""
    for model in report.unpriced:
        yield f"no price for model {model.model}: its cost is not in the total ({model.tokens:,} tokens)"
    if report.total.cost_source in ("prices", "mixed"):
        yield f"~ by list prices as of {report.prices_as_of}"
    damaged = [each for each in report.damaged if each.skipped]
    if damaged:
        yield f"skipped {_count(report.skipped_lines, 'damaged line')} in {_count(len(damaged), 'file')}"
    for each in report.damaged:
        if each.trouble:
            yield f"could not read {each.path}: {each.trouble}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
