"""What Codex asks before it acts, as a tool call for the guard, and a yes or no in Codex's words.

What is not understood is no tool call, and so it is declined.
"""

from __future__ import annotations

from collections.abc import Mapping

from remuda.guard.tools import ToolCall
from remuda.runtimes.acp_frames import NULL, decode
from remuda.runtimes.codex.appserver import FileChange, Params, Thing, same

COMMAND = "item/commandExecution/requestApproval"
FILES = "item/fileChange/requestApproval"
MCP = "mcpServer/elicitation/request"

_LOCAL = (None, "local")
_SECTIONS = {"add": "*** Add File: ", "update": "*** Update File: ", "delete": "*** Delete File: "}
_DENIED = {"decision": {"denied": {"rejection": "nobody is there to be asked"}}}
_GRANTS: dict[str, Mapping[str, object]] = {
    COMMAND: {"decision": "accept"},
    FILES: {"decision": "accept"},
    MCP: {"action": "accept", "content": {}},
}
_REFUSALS: dict[str, Mapping[str, object]] = {
    COMMAND: {"decision": "decline"},
    FILES: {"decision": "decline"},
    MCP: {"action": "decline"},
    "item/permissions/requestApproval": {"permissions": {}, "scope": "turn"},
    "item/tool/requestUserInput": {"answers": {}},
    "item/tool/call": {"contentItems": [], "success": False},
    "execCommandApproval": _DENIED,
    "applyPatchApproval": _DENIED,
}


def about(
    method: str, asked: Params, things: Mapping[str, Thing], judged: Mapping[str, object]
) -> str | None:
    """The thing that is asked about. A question about an MCP tool names its server and shows the tool's name
    in a sentence: it is about the first such call that nobody has asked about yet."""
    if method != MCP:
        return asked.item_id
    meta = asked.meta
    if meta is None or meta.codex_approval_kind != "mcp_tool_call":
        return None
    fitting = (
        thing.id
        for thing in things.values()
        if thing.type == "mcpToolCall"
        and thing.id not in judged
        and thing.server == asked.server_name
        and f'"{thing.tool}"' in (asked.message or "")
        and same(thing.arguments, meta.tool_params)
    )
    return next(fitting, None)


def call_of(method: str, asked: Params, thing: Thing | None, cwd: str) -> ToolCall | None:
    """The tool call that is asked for, if it can be told."""
    match method:
        case "item/commandExecution/requestApproval":
            return _command(asked)
        case "item/fileChange/requestApproval":
            return _files(asked, thing, cwd)
        case "mcpServer/elicitation/request":
            return _served(thing, cwd)
    return None


def answer_to(method: str, granted: bool) -> Mapping[str, object] | None:
    """The answer, or None if nothing is known of such a question."""
    return _GRANTS.get(method) if granted else _REFUSALS.get(method)


def askable(method: str, asked: Params) -> bool:
    """Whether a yes can be said to such a question at all."""
    tool = asked.meta is not None and asked.meta.codex_approval_kind == "mcp_tool_call"
    return method in _GRANTS and (method != MCP or tool)


def in_words(method: str, asked: Params) -> str:
    """All that is asked for, for a person who has to decide what the guard does not understand."""
    special = (asked.additional_permissions, asked.network_approval_context)
    extras = (bytes(extra).decode("utf-8", "replace") for extra in special if extra != NULL)
    return " ".join((asked.command or asked.message or method, *extras))


def _command(asked: Params) -> ToolCall | None:
    """A command as it will run, its shell included. Text for a running program, another machine, a host of
    the network, and more rights for one command are not understood."""
    special = (asked.additional_permissions, asked.network_approval_context)
    plain = asked.kind in (None, "command") and asked.environment_id in _LOCAL
    if not plain or any(extra != NULL for extra in special) or not asked.command or not asked.cwd:
        return None
    return ToolCall("Bash", {"command": asked.command}, asked.cwd)


def _files(asked: Params, thing: Thing | None, cwd: str) -> ToolCall | None:
    """The changed files as a patch that names them; what is written does not matter."""
    if thing is None or not thing.changes or asked.grant_root is not None:
        return None
    lines = [line for change in thing.changes for line in _lines(change)]
    if any(line.splitlines() != [line] or line != line.rstrip() for line in lines):
        return None
    patch = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return ToolCall("apply_patch", {"input": patch}, cwd)


def _lines(change: FileChange) -> list[str]:
    """The lines of a patch that name a file; an empty one, which no patch has, for what is not understood."""
    section = _SECTIONS.get(change.kind.type)
    if section is None or not change.path.startswith("/"):
        return [""]
    moved = [] if change.kind.move_path is None else [f"*** Move to: {change.kind.move_path}"]
    return [section + change.path, *moved]


def _served(thing: Thing | None, cwd: str) -> ToolCall | None:
    if thing is None or not thing.server or not thing.tool:
        return None
    return ToolCall(f"mcp__{thing.server}__{thing.tool}", decode(thing.arguments, object) or {}, cwd)
