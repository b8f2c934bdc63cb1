"""OpenCode's plugin: a module of its own in a folder from which OpenCode loads all."""

from __future__ import annotations

from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.javascript import asking
from remuda.runtimes.wiring import Edit, OwnFile, Site, Wiring, folder_of

_PLUGIN = """\
export const Remuda = async ({ directory, client }) => {
  const kinds = new Map();

  // Whether a session is a person's own, and not one that another session has started.
  const own = async (sessionID) => {
    if (!kinds.has(sessionID)) {
      const { data } = await client.session.get({ path: { id: sessionID } });
      if (data) kinds.set(sessionID, !data.parentID);
    }
    return kinds.get(sessionID);
  };
  const tell = async (event, sessionID, fields) => {
    try {
      if (await own(sessionID))
        return await message(event, { session_id: sessionID, cwd: directory, ...fields });
    } catch {}
  };

  return {
    "tool.execute.before": async ({ tool, sessionID }, { args }) => {
      const call = { tool_name: tool, tool_input: args ?? {}, session_id: sessionID, cwd: directory };
      const reason = await objection(call);
      if (reason !== undefined) throw new Error(reason);
    },
    "chat.message": async ({ sessionID }, { message: { id }, parts }) => {
      const text = await tell("UserPromptSubmit", sessionID, {});
      if (text === undefined) return;
      const last = parts.at(-1)?.id ?? "prt_";
      parts.push({ id: `${last}r`, sessionID, messageID: id, type: "text", text, synthetic: true });
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return;
      await tell("Stop", event.properties.sessionID, { heartbeat: true });
    },
    dispose: async () => {
      for (const sessionID of kinds.keys()) await tell("SessionEnd", sessionID, {});
    },
  };
};
"""
_EVENTS: tuple[Event, ...] = ("PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd")


def _folder(site: Site) -> Path:
    if site.scope == "project":
        return site.project / ".opencode"
    return folder_of(site, "XDG_CONFIG_HOME", ".config") / "opencode"


def edits(site: Site) -> tuple[Edit, ...]:
    """A tool call for which the plugin throws is not carried out. Messages become a part of a prompt; the end
    of a turn has no place for one."""
    path = _folder(site) / "plugins" / "remuda.js"
    return (OwnFile(path=path, content=asking({event: site.hooks[event] for event in _EVENTS}) + _PLUGIN),)


_CONDITION = (
    "OpenCode passes over a plugin that does not load, without a word, and all of them with --pure; where "
    "npm cannot be reached, it waits for its plugin library before it does anything"
)
WIRING = Wiring(dialect="gemini", edits=edits, condition={"user": _CONDITION, "project": _CONDITION})
