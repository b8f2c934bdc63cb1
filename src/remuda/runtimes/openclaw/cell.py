"""OpenClaw: what it needs inside a sandbox."""

from __future__ import annotations

from pathlib import Path

from remuda.runtimes.cell import Cell, Place

GATEWAY = Path(__file__).with_name("gateway.py")
_HOME = (".openclaw", "OPENCLAW_STATE_DIR")


def objection(command: tuple[str, ...]) -> str | None:
    """Its connection leads to the user's gateway, unless one of its own is started with it."""
    if "acp" in command and str(GATEWAY) not in command:
        return "OpenClaw's connection leads to your gateway, which works outside of any walls"
    return None


CELL = Cell(
    state=(Place(*_HOME), Place(None, "OPENCLAW_HOME", ".openclaw")),
    reads=(
        Place(*_HOME, "openclaw.json", kind="file"),
        Place(*_HOME, ".env", kind="file", blank=""),
        *(Place(*_HOME, folder) for folder in ("extensions", "hooks")),
    ),
    hosts=("api.anthropic.com", "api.openai.com", "openrouter.ai", "generativelanguage.googleapis.com"),
    objection=objection,
    verified=True,
    notes=("A session over a connection is refused inside unless REMUDA_ENDPOINT names its model.",),
)
