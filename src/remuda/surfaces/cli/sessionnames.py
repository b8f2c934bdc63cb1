"""The argument that names a session, and what a shell offers for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _known(which: str) -> Complete:
    def complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        from remuda.core.errors import RemudaError
        from remuda.operations.session import names
        from remuda.operations.world import bare_world

        try:
            found: list[str] = getattr(names, which)(bare_world())
        except RemudaError:  # a shell that completes has no use for an error
            return []
        return [name for name in found if name.startswith(begun)]

    return complete


RUNNING, ENDED = _known("running"), _known("ended")


def named(
    complete: Complete = RUNNING, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument NAME: a session that runs, unless another kind is meant."""
    return click.argument("name", shell_complete=complete, **settings)
