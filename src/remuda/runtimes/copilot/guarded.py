"""Copilot under the guard: only tools that ask over the Agent Client Protocol, and a hook that tells why not.

Copilot ends a turn whose request is refused. The hook refuses first, and the model hears its reason; where
the hook does not run, the refused request still holds.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from remuda.core.events import ToolCall as Shown
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Connection, Guard, ScratchFile, Turn

TOOLS = ("bash", "read_bash", "stop_bash", "list_bash", "apply_patch", "create", "edit")
"""What asks, or only looks at commands that run. Copilot's own tools for reading and searching ask nobody."""

_HOOK_SECONDS = 30
_WATCHING = {"shellId", "delay"}
_CHATTER = "Info: "
_DENIED = "Denied by preToolUse hook"
_NAMES = {"execute": "bash", "edit": "apply_patch"}
_SETTINGS = (
    *(".claude/settings.json", ".claude/settings.local.json"),
    *(".github/copilot/settings.json", ".github/copilot/settings.local.json"),
    *(".mcp.json", ".vscode/mcp.json", ".github/mcp.json"),
)
"""What a repository brings along and Copilot uses in a folder that is trusted."""


Kind = TypeVar("Kind", bound=msgspec.Struct)


class _Trust(msgspec.Struct, frozen=True, rename="camel"):
    trusted_folders: list[str] = []


class _Place(msgspec.Struct, frozen=True):
    tool_approvals: list[object] = []


class _Approvals(msgspec.Struct, frozen=True):
    locations: dict[str, _Place] = {}


def plugin(guard: Guard) -> tuple[ScratchFile, ScratchFile]:
    """A plugin for this run alone, whose hook is the guard's."""
    command = shlex.quote(str(guard.hooks / "pre_tool_use"))
    hook = {"type": "command", "bash": command, "timeoutSec": _HOOK_SECONDS}
    about = {
        "name": "remuda",
        "version": "1.0.0",
        "description": "The guard of this run",
        "hooks": "hooks.json",
    }
    return (
        ScratchFile("plugin.json", json.dumps(about)),
        ScratchFile("hooks.json", json.dumps({"version": 1, "hooks": {"preToolUse": [hook]}})),
    )


def understands(call: wire.Change, told: Told, cwd: str) -> ToolCall | None:
    """The tool call of a request, by its kind: a command, a change to a file, a look at one."""
    given = wire.decode(call.raw_input, dict[str, object]) or {}
    match call.kind:
        case "execute":
            command = given.get("command")
            known = told.fields().get("command") == command and isinstance(command, str)
            return ToolCall("bash", {"command": command}, cwd) if known else None
        case "edit":
            patch = wire.decode(told.input, str)
            named = _texts(*wire.paths(call), given.get("fileName"), told.fields().get("path"))
            if patch is not None:
                return ToolCall("apply_patch", {"input": patch, "paths": named}, cwd)
            return ToolCall("edit", {"paths": named}, cwd)
        case "read":
            return ToolCall("view", {"paths": _texts(*wire.paths(call), given.get("path"))}, cwd)
    return None


def _texts(*values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def ran(update: wire.Change, told: Told) -> bool:
    """What is completed has run, and so has what shows its output."""
    if told.fields().keys() <= _WATCHING and wire.decode(told.input, str) is None:
        return False
    showing = update.session_update == "tool_call_update" and update.status is None
    return update.status in ("in_progress", "completed") or (showing and bool(wire.texts(update.content)))


def chatter(text: str) -> bool:
    """What Copilot says itself: which tools were taken away, that it tries again."""
    return text.startswith(_CHATTER)


def refuses(output: str) -> bool:
    """Whether the guard's hook refused."""
    return output.startswith(_DENIED)


def tool(call: Shown) -> str:
    """A tool's name: Copilot shows what a call is for."""
    return _NAMES.get(call.kind, call.title)


_DIALECT = Dialect(
    counted_since="process",
    uncounted_is_failed=True,
    refuses=refuses,
    tool=tool,
    chatter=chatter,
    manners=Manners(understands=understands, ran=ran),
)


def connection(turn: Turn) -> Connection:
    """A conversation, under the guard or in a person's own session."""
    return AcpConnection(turn, _DIALECT)


def objection(turn: Turn) -> str | None:
    """Over the protocol, Copilot runs a repository's hooks in any folder, and they may grant what the model
    wants. In a trusted folder it runs more. What a person once allowed for good is not asked about again."""
    cwd = turn.cwd.resolve()
    for folder in _repository(cwd):
        if any((folder / ".github" / "hooks").glob("*.json")):
            return f"Copilot would run the hooks in {folder / '.github' / 'hooks'}"
    home = Path(turn.environ.get("COPILOT_HOME") or Path(turn.environ.get("HOME", "/"), ".copilot"))
    approved = _read(home / "permissions-config.json", _Approvals)
    if approved is None or any(
        _around(cwd, place) for place, what in approved.locations.items() if what.tool_approvals
    ):
        return f"{home / 'permissions-config.json'} allows tools for good"
    trust = _read(home / "config.json", _Trust)
    if trust is not None and not any(_around(cwd, folder) for folder in trust.trusted_folders):
        return None
    places = (folder / name for folder in _repository(cwd) for name in _SETTINGS)
    found = next((place for place in places if place.exists()), None)
    return f"Copilot trusts the folder, and would use its {found}" if found else None


def _repository(cwd: Path) -> Iterator[Path]:
    """The folders whose settings count: the working folder, and all up to the top of its work tree."""
    folders = (cwd, *cwd.parents)
    top = next((number for number, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    yield from folders[: top + 1]


def _around(cwd: Path, folder: str) -> bool:
    return cwd.is_relative_to(Path(folder).resolve())


def _read(file: Path, kind: type[Kind]) -> Kind | None:
    """A file of settings; None if it cannot be read. Copilot allows comments in them."""
    try:
        lines = file.read_text().splitlines()
        text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
        return msgspec.json.decode(text, type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, ValueError):
        return None
