"""OpenCode: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_PROGRAMS = ("bin", "packages", "node_modules", "skills")

CELL = Cell(
    state=(
        Place(".local/share", "XDG_DATA_HOME", "opencode"),
        Place(".local/state", "XDG_STATE_HOME", "opencode"),
        Place(".cache", "XDG_CACHE_HOME", "opencode"),
    ),
    reads=(
        Place(".config", "XDG_CONFIG_HOME", "opencode"),
        Place(".config", "XDG_CONFIG_HOME", "opencode/.gitignore", kind="file", blank="node_modules\n"),
        Place(".local/share", "XDG_DATA_HOME", "opencode/auth.json", kind="file", blank="{}\n"),
        *(Place(".cache", "XDG_CACHE_HOME", f"opencode/{folder}") for folder in _PROGRAMS),
    ),
    private=tuple(
        Place(".local/share", "XDG_DATA_HOME", f"opencode/{folder}") for folder in ("snapshot", "repos")
    ),
    hosts=(
        *("opencode.ai", "models.dev", "models.opencode.ai", "api.anthropic.com"),
        *("api.openai.com", "openrouter.ai", "generativelanguage.googleapis.com"),
    ),
    verified=True,
    notes=("It needs a .gitignore in its folder of settings, which is read only inside: one is made.",),
)
