"""Remuda runs any coding agent, safely, from anywhere."""

from __future__ import annotations

from remuda.core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remuda.api import AsyncRemuda, Remuda

__all__ = ["AsyncRemuda", "Remuda", "__version__"]


def __getattr__(name: str) -> object:
    """Import the programming interface on first use, so that ``--version`` stays import-free."""
    if name in {"Remuda", "AsyncRemuda"}:
        from remuda import api

        return getattr(api, name)
    raise AttributeError(f"module 'remuda' has no attribute {name!r}")
