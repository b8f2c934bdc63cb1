"""The argument that names a session, and what a shell offers for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from remuda.surfaces.cli.values import Complete, completing


def _known(which: str) -> Complete:
    def offered() -> list[str]:
        from remuda.operations.session import names
        from remuda.operations.world import bare_world

        found: list[str] = getattr(names, which)(bare_world())
        return found

    return completing(offered)


RUNNING, ENDED = _known("running"), _known("ended")


def named(
    complete: Complete = RUNNING, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument NAME: a session that runs, unless another kind is meant."""
    return click.argument("name", shell_complete=complete, **settings)
