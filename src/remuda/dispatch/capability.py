"""What a capability lets an agent touch, as far as the runtimes' own restrictions can hold it."""

from __future__ import annotations

from remuda.core.errors import UsageError
from remuda.runtimes.base import Access

ACCESS: dict[str, Access | None] = {
    "scout": "read",
    "reviewer": "read",
    "lead": "read",
    "coordinator": "read",
    "builder": "workspace",
    "merger": "workspace",
    "supervised": None,
}


def access_for(capability: str | None) -> Access | None:
    """The access bound of a capability; no capability means that only the permission mode counts."""
    if capability is None:
        return None
    if capability not in ACCESS:
        raise UsageError(f"there is no capability {capability!r}", f"Known: {', '.join(ACCESS)}.")
    return ACCESS[capability]
