"""Hermes: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = (".hermes", "HERMES_HOME")
_PROGRAMS = (
    *("plugins", "hooks", "scripts", "cron", "bin", "node", "node_modules", "mcp-installs", "profiles"),
    "hermes-agent",
)

CELL = Cell(
    state=(Place(*_HOME),),
    reads=(
        Place(*_HOME, "config.yaml", kind="file", blank=""),
        Place(*_HOME, ".env", kind="file", blank=""),
        Place(*_HOME, "shell-hooks-allowlist.json", kind="file", blank="{}\n"),
        *(Place(*_HOME, folder) for folder in _PROGRAMS),
    ),
    private=(Place(*_HOME, "checkpoints"),),
    hosts=(
        *("openrouter.ai", "inference-api.nousresearch.com", "portal.nousresearch.com", "api.anthropic.com"),
        *("api.openai.com", "generativelanguage.googleapis.com"),
    ),
    verified=True,
)
