"""OpenCode's plugin: a module of its own in a folder from which OpenCode loads all."""

from __future__ import annotations

from pathlib import Path

from remuda.runtimes.javascript import asking
from remuda.runtimes.wiring import Edit, OwnFile, Site, Wiring, folder_of

_PLUGIN = """\
export const Remuda = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID }, { args }) => {
    const call = { tool_name: tool, tool_input: args ?? {}, session_id: sessionID, cwd: directory };
    const reason = await objection(call);
    if (reason !== undefined) throw new Error(reason);
  },
});
"""


def _folder(site: Site) -> Path:
    if site.scope == "project":
        return site.project / ".opencode"
    return folder_of(site, "XDG_CONFIG_HOME", ".config") / "opencode"


def edits(site: Site) -> tuple[Edit, ...]:
    """A tool call for which the plugin throws is not carried out."""
    path = _folder(site) / "plugins" / "remuda.js"
    return (OwnFile(path=path, content=asking(site.hooks["PreToolUse"]) + _PLUGIN),)


_CONDITION = (
    "OpenCode passes over a plugin that does not load, without a word, and all of them with --pure; where "
    "npm cannot be reached, it waits for its plugin library before it does anything"
)
WIRING = Wiring(dialect="gemini", edits=edits, condition={"user": _CONDITION, "project": _CONDITION})
