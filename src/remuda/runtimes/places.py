"""Where settings lie, for runtimes that must tell the user's own from those of the folder they work in."""

from __future__ import annotations

from pathlib import Path


def lies_below(path: Path, folder: Path) -> bool:
    """Whether a path is a folder or lies in it, links followed. What cannot be told counts as so."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return True
