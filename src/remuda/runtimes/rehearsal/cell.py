"""The rehearsal agent: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

CELL = Cell(
    state=(Place(".rehearsal", "REHEARSAL_HOME"),),
    reads=(Place(None, "REHEARSAL_SCENARIO", kind="file"),),
    verified=True,
)
