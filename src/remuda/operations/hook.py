"""Answer an agent CLI's hook: the same program, whichever way it is called."""

from __future__ import annotations

from remuda.hooks.program import Request, run


def hook(event: str, payload: str | None, dialect: str) -> int:
    """Read a payload, judge it, answer; the exit code. The answer goes out before this returns, so that
    nothing which happens later can turn a deny into something else."""
    return run(Request(event, payload, dialect))
