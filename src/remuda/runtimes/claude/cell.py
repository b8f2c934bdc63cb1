"""Claude Code: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = (".claude", "CLAUDE_CONFIG_DIR")
_WRITTEN = (
    *("projects", "sessions", "todos", "tasks", "plans", "file-history", "cache", "debug", "paste-cache"),
)

CELL = Cell(
    state=(
        *(Place(*_HOME, folder) for folder in _WRITTEN),
        Place(*_HOME, "history.jsonl", kind="file", blank=""),
        Place(*_HOME, ".credentials.json", kind="file"),
        Place(".cache", "XDG_CACHE_HOME", "claude-cli-nodejs"),
    ),
    reads=(Place(*_HOME), Place("", "CLAUDE_CONFIG_DIR", ".claude.json", kind="file")),
    private=tuple(Place(*_HOME, name) for name in ("ide", "session-env", "shell-snapshots", "backups")),
    env={"IS_SANDBOX": "1"},
    trusting={"CLAUDE_CODE_SANDBOXED": "1"},
    hosts=("api.anthropic.com", "claude.ai", "platform.claude.com", "mcp-proxy.anthropic.com"),
    verified=True,
    notes=("Its folder is read only inside, but for what it remembers; its .claude.json, too.",),
)
