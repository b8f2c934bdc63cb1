"""What arguments and options take: numbers that are some, and names that a shell completes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click


class _Amount(click.FloatRange):
    """A number from 0 on; neither *nan* nor *inf*, which pass every comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no amount.", param, ctx)
        return found


AMOUNT = _Amount(min=0)
SEQ = click.IntRange(0, 2**53)
"""The number of an event."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def completing(offered: Callable[[], list[str]]) -> Complete:
    """Offer the names that begin like what is typed, in whatever case."""

    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        from remuda.core.errors import RemudaError

        try:
            return [name for name in offered() if name.lower().startswith(begun.lower())]
        except RemudaError:  # a shell that completes has no use for an error
            return []

    return complete


def _known(which: str) -> Complete:
    def offered() -> list[str]:
        from remuda.operations import names
        from remuda.operations.world import open_world

        found: list[str] = getattr(names, which)(open_world())
        return found

    return completing(offered)


AGENTS, TAGS, PROFILES, PEERS = (_known(which) for which in ("agents", "tags", "profiles", "peers"))
