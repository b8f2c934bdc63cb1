"""Copilot: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = (".copilot", "COPILOT_HOME")
_CACHE = (".cache/copilot", "COPILOT_CACHE_HOME")
_PROGRAMS = ("hooks", "agents", "skills", "installed-plugins", "extensions", "pkg")

CELL = Cell(
    state=(Place(*_HOME),),
    reads=(
        Place(*_HOME, "settings.json", kind="file", blank="{}\n"),
        Place(*_HOME, "mcp-config.json", kind="file", blank='{"mcpServers": {}}\n'),
        Place(*_HOME, "lsp-config.json", kind="file", blank='{"lspServers": {}}\n'),
        Place(*_HOME, "permissions-config.json", kind="file", blank="{}\n"),
        *(Place(*_HOME, folder) for folder in _PROGRAMS),
        Place(*_CACHE, "pkg/*/*"),
    ),
    private=(Place(*_CACHE),),
    hosts=(".githubcopilot.com", "api.github.com", "github.com"),
    verified=True,
    notes=("It unpacks some 235 MB into its cache: start it once outside, or it does so inside every time.",),
)
