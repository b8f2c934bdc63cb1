"""Pi: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = (".pi/agent", "PI_CODING_AGENT_DIR")
_PROGRAMS = ("extensions", "skills", "prompts", "themes", "tools", "bin", "npm", "git")

CELL = Cell(
    state=(Place(*_HOME), Place(None, "PI_CODING_AGENT_SESSION_DIR")),
    reads=(
        Place(*_HOME, "settings.json", kind="file", blank="{}\n"),
        Place(*_HOME, "models.json", kind="file", blank='{"providers": {}}\n'),
        Place(*_HOME, "auth.json", kind="file", blank="{}\n"),
        Place(*_HOME, "trust.json", kind="file", blank="{}\n"),
        *(Place(*_HOME, folder) for folder in _PROGRAMS),
    ),
    private=(Place(*_HOME, "tmp"),),
    hosts=(
        *("api.anthropic.com", "api.openai.com", "chatgpt.com", "openrouter.ai"),
        "generativelanguage.googleapis.com",
    ),
    verified=True,
    notes=("What it would download for itself (fd, rg) it does not get inside.",),
)
