"""Amplifier: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

CELL = Cell(
    state=(Place(".amplifier", None, "projects"),),
    reads=(Place(".amplifier"),),
    hosts=("api.anthropic.com", "api.openai.com", "github.com"),
    notes=("Unverified: seen with a stand-in only.",),
)
