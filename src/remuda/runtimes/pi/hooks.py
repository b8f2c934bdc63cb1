"""Pi's extension for everyday sessions: a module of its own in a folder from which Pi loads all."""

from __future__ import annotations

from pathlib import Path

from remuda.runtimes.javascript import asking
from remuda.runtimes.wiring import Edit, OwnFile, Site, Wiring, folder_of

_EXTENSION = """\
export default (pi) => {
  pi.on("tool_call", async ({ toolName, input }, ctx) => {
    const reason = await objection({ tool_name: toolName, tool_input: input ?? {}, cwd: ctx.cwd });
    if (reason !== undefined) return { block: true, reason };
  });
};
"""


def _folder(site: Site) -> Path:
    if site.scope == "project":
        return site.project / ".pi"
    return folder_of(site, "PI_CODING_AGENT_DIR", ".pi/agent")


def edits(site: Site) -> tuple[Edit, ...]:
    """An extension that does not load stops Pi, and one that throws blocks the call."""
    path = _folder(site) / "extensions" / "remuda.js"
    return (OwnFile(path=path, content=asking(site.hooks["PreToolUse"]) + _EXTENSION),)


WIRING = Wiring(
    dialect="gemini",
    edits=edits,
    condition={
        "user": "Pi loads no extensions with --no-extensions, and asks none about commands that a person "
        "types behind !",
        "project": "Pi loads a project's extensions only when it was told to trust the project",
    },
)
