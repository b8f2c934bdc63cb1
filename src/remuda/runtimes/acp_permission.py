"""What an agent that asks over the Agent Client Protocol is allowed to do when nobody is there to answer."""

from __future__ import annotations

import os
from pathlib import Path

from remuda.runtimes.acp_frames import Change, paths
from remuda.runtimes.base import Turn

_HARMLESS = ("read", "search")
_WRITING = ("edit", "delete", "move")


def permitted(turn: Turn, call: Change) -> bool:
    """Whether a tool call that asks for permission gets it. An access bound always wins over a bypass."""
    if turn.access is None:
        return turn.permission == "bypass"
    if call.kind in _HARMLESS:
        return True
    named = paths(call)
    return (
        turn.access == "workspace"
        and call.kind in _WRITING
        and bool(named)
        and all(_below(turn.cwd, path) for path in named)
    )


def _below(folder: Path, path: str) -> bool:
    """Whether a path lies below a folder, links followed."""
    try:
        real = os.path.realpath(folder / Path(path).expanduser())
        return Path(real).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError, RuntimeError):
        return False
