"""Operations over HTTP, at the socket of the resident process. Nothing is loaded before somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remuda.surfaces.http.host import HttpHost


def hosting() -> HttpHost:
    """Load what answers HTTP."""
    from remuda.surfaces.http.host import HttpHost

    return HttpHost()
