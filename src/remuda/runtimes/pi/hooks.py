"""Pi's extension for everyday sessions: a module of its own in a folder from which Pi loads all."""

from __future__ import annotations

from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.javascript import asking
from remuda.runtimes.wiring import Edit, OwnFile, Site, Wiring, folder_of

_EXTENSION = """\
export default (pi) => {
  let prolonged = false;
  const tell = (event, ctx, fields) =>
    message(event, { session_id: ctx.sessionManager.getSessionId(), cwd: ctx.cwd, ...fields });
  const shown = (content) => ({ customType: "remuda", content, display: true });

  pi.on("tool_call", async ({ toolName, input }, ctx) => {
    const reason = await objection({ tool_name: toolName, tool_input: input ?? {}, cwd: ctx.cwd });
    if (reason !== undefined) return { block: true, reason };
  });
  pi.on("session_start", async (_event, ctx) => {
    await tell("SessionStart", ctx, { heartbeat: true });
  });
  pi.on("before_agent_start", async (_event, ctx) => {
    prolonged = false;
    const text = await tell("UserPromptSubmit", ctx, {});
    if (text !== undefined) return { message: shown(text) };
  });
  pi.on("agent_before_settle", async ({ outcome }, ctx) => {
    const text = await tell("Stop", ctx, { heartbeat: prolonged || outcome !== "completed" });
    if (text === undefined) return;
    prolonged = true;
    return { entries: [{ type: "custom_message", ...shown(text) }], continue: true };
  });
  pi.on("session_shutdown", async ({ reason }, ctx) => {
    if (reason === "quit") await tell("SessionEnd", ctx, {});
  });
};
"""
_EVENTS: tuple[Event, ...] = ("PreToolUse", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")


def _folder(site: Site) -> Path:
    if site.scope == "project":
        return site.project / ".pi"
    return folder_of(site, "PI_CODING_AGENT_DIR", ".pi/agent")


def edits(site: Site) -> tuple[Edit, ...]:
    """An extension that does not load stops Pi, and one that throws blocks the call."""
    path = _folder(site) / "extensions" / "remuda.js"
    return (OwnFile(path=path, content=asking({event: site.hooks[event] for event in _EVENTS}) + _EXTENSION),)


WIRING = Wiring(
    dialect="gemini",
    edits=edits,
    condition={
        "user": "Pi loads no extensions with --no-extensions, and asks none about commands that a person "
        "types behind !",
        "project": "Pi loads a project's extensions only when it was told to trust the project",
    },
)
