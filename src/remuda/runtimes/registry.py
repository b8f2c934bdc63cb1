"""Every runtime Remuda knows, by name. The only place that imports the adapters, each on first use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from remuda.core.errors import NotFoundError
from remuda.runtimes.base import Runtime

BUILT_IN = (
    *("aider", "amplifier", "claude", "codex", "copilot", "gemini"),
    *("hermes", "openclaw", "opencode", "pi", "rehearsal"),
)
DEFAULT = "copilot"


def names() -> tuple[str, ...]:
    """The names of all runtimes, in alphabetical order."""
    return BUILT_IN


def get(name: str) -> Runtime:
    """The runtime of this name."""
    if name not in names():
        raise NotFoundError(f"there is no runtime named {name!r}", f"Known runtimes: {', '.join(names())}.")
    runtime = import_module(f"remuda.runtimes.{name}.runtime").RUNTIME
    assert isinstance(runtime, Runtime)
    return runtime


def all_runtimes() -> Iterator[Runtime]:
    """All runtimes."""
    return (get(name) for name in names())
