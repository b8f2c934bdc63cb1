"""Remuda runs any coding agent, safely, from anywhere."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remuda.api import AsyncRemuda, Remuda

__all__ = ["AsyncRemuda", "Remuda", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the programming interface on first use, so that ``--version`` stays import-free."""
    if name in ("AsyncRemuda", "Remuda"):
        from remuda import api

        return getattr(api, name)
    raise AttributeError(f"module 'remuda' has no attribute {name!r}")
