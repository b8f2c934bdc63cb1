"""Aider: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

CELL = Cell(
    state=(Place(".aider"),),
    reads=(
        Place(".aider", None, "oauth-keys.env", kind="file", blank=""),
        Place(".aider.conf.yml", kind="file"),
        Place(".aider.model.settings.yml", kind="file"),
        Place(".aider.model.metadata.json", kind="file"),
    ),
    hosts=(
        *("api.openai.com", "api.anthropic.com", "openrouter.ai", "generativelanguage.googleapis.com"),
        "api.deepseek.com",
    ),
    verified=True,
    notes=("It edits without tools: what it may not write, it fails to write by itself.",),
)
