"""Codex: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = (".codex", "CODEX_HOME")

CELL = Cell(
    state=(Place(*_HOME),),
    reads=(
        Place(*_HOME, "config.toml", kind="file", blank=""),
        Place(*_HOME, "hooks.json", kind="file", blank="{}\n"),
        Place(*_HOME, "AGENTS.md", kind="file", blank=""),
        Place(*_HOME, "AGENTS.override.md", kind="file", blank=""),
        Place(*_HOME, ".env", kind="file", blank=""),
        Place(*_HOME, "*.config.toml", kind="file"),
        *(
            Place(*_HOME, folder)
            for folder in ("rules", "plugins", "prompts", "packages", "skills", "agents")
        ),
    ),
    private=tuple(Place(*_HOME, folder) for folder in ("app-server-control", "shell_snapshots", "tmp")),
    hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    verified=True,
    notes=("Where it may ask nobody, it puts commands into a sandbox of its own, which stands within.",),
)
