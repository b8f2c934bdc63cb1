"""Every runtime Remuda knows, by name. The only place that imports the adapters, each on first use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from remuda.core.errors import NotFoundError
from remuda.runtimes.base import Runtime

if TYPE_CHECKING:
    from remuda.runtimes.transcripts import Transcripts

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


def transcripts() -> dict[str, Transcripts]:
    """The transcripts of all runtimes that have any, by name; nothing else of them is loaded."""
    found: dict[str, Transcripts] = {}
    for name in names():
        place = f"remuda.runtimes.{name}.usage"
        if find_spec(place):
            found[name] = import_module(place).TRANSCRIPTS
    return found
