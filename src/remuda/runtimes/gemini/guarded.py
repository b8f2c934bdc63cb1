"""Gemini under the guard: every tool asks over the Agent Client Protocol, in a folder that it does not trust.

A request has no input, but it names the tool in the call's id, and says the rest in its title and its places.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from remuda.core.clock import now, rfc3339
from remuda.core.events import Usage
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Connection, Turn
from remuda.runtimes.gemini.stream import hear

POLICY = "policy.toml"
RULES = """\
[[rule]]
toolName = "invoke_agent"
decision = "deny"
priority = 999

[[rule]]
toolName = "run_shell_command"
argsPattern = ".*"
decision = "ask_user"
priority = 999

[[rule]]
toolName = "*"
decision = "ask_user"
priority = 998
"""
"""Every tool asks. Agents below this one would ask nobody, so there are none. By a rule without a pattern,
Gemini would run commands unasked that it takes for safe, such as ``cat``."""

_ADMINISTRATED = Path(
    "/Library/Application Support/GeminiCli/policies"
    if sys.platform == "darwin"
    else "/etc/gemini-cli/policies"
)
_SHELL = "run_shell_command"
_ON_FILES = ("read_file", "write_file", "replace")
_BELOW = ("list_directory", "glob", "grep_search")
_ASKING_NOTHING = (
    *("update_topic", "write_todos", "list_background_processes", "read_background_output"),
    *("activate_skill", "enter_plan_mode", "exit_plan_mode", "ask_user"),
)
_TOOLS = (_SHELL, *_ON_FILES, *_BELOW, *_ASKING_NOTHING, "web_fetch", "google_web_search")
_ELSEWHERE = re.compile(r"\[in ([^]]+)\](?: \([^]]*\))?(?: \[background\])?")
_PLACE = re.compile(r" (?:within|in) ")
_SHORTENED = "..."
_BUILT_IN_SKILL = "activate_skill__"


class _Counts(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0


class _Quota(msgspec.Struct, frozen=True):
    token_count: _Counts = _Counts()


class _Meta(msgspec.Struct, frozen=True):
    quota: _Quota = _Quota()


def usage(outcome: wire.Outcome) -> Usage | None:
    """The tokens of all calls of a turn; those from a cache are not told apart."""
    counts = (wire.decode(outcome.meta, _Meta) or _Meta()).quota.token_count
    return Usage(counts.input_tokens, counts.output_tokens) if counts.input_tokens else None


def _tool(ident: str) -> str | None:
    return next((name for name in _TOOLS if ident.startswith(f"{name}__")), None)


def understands(call: wire.Change, _told: Told, cwd: str) -> ToolCall | None:
    """The tool call of a request, if all that matters of its input is to be seen."""
    name, title = _tool(call.tool_call_id or ""), call.title or ""
    if name == _SHELL:
        folder = _folder(wire.texts(call.content), cwd)
        return ToolCall(name, {"command": title, "dir_path": folder}, cwd) if folder and title else None
    if name in _ON_FILES:
        named = wire.paths(call)
        return ToolCall(name, {"paths": named}, cwd) if named else None
    if name in _BELOW:
        places = _places(title, name)
        return None if places is None else ToolCall(name, {"paths": [".", *places]}, cwd)
    if name == "web_fetch":
        return ToolCall(name, {} if _SHORTENED in title else {"prompt": title}, cwd)
    return None if name is None else ToolCall(name, {}, cwd)


def _folder(details: str, cwd: str) -> str | None:
    """Where a command would run. What it is for, which the model words, stands behind that; where that could
    be taken for a part of the folder, it is not known."""
    for own in (f"[current working directory {place}]" for place in (cwd, os.path.realpath(cwd))):
        if details == own or details.startswith(f"{own} "):
            return cwd
    found = _ELSEWHERE.fullmatch(details)
    return found[1] if found else None


def _places(title: str, name: str) -> list[str] | None:
    """Every place that a search may be about: a title is a pattern, then perhaps files, then a folder, and a
    pattern can look like either. A shortened path is none."""
    if name == "list_directory":
        return None if _SHORTENED in title else [title or "."]
    places = [title[found.end() :] for found in _PLACE.finditer(title)]
    parts = [part for place in places for part in _PLACE.split(place)]
    return None if any(_SHORTENED in part for part in parts) else [part for part in parts if part]


def ran(update: wire.Change, told: Told) -> bool:
    """A tool runs once it is said to be in progress. An edit that cannot be made asks nobody: it is one that
    ran only if it shows a change. What is new and over is history, and a skill of Gemini's own is a text."""
    new = update.session_update == "tool_call"
    if (update.tool_call_id or "").startswith(_BUILT_IN_SKILL) or (new and update.status == "completed"):
        return False
    if (update.kind or told.kind) == "edit":
        blocks = wire.decode(update.content, list[wire.Block]) or []
        return update.status == "completed" and any(block.type == "diff" for block in blocks)
    return update.status in ("in_progress", "completed")


_DIALECT = Dialect(
    settles="default", usage=usage, hear=hear, manners=Manners(understands=understands, ran=ran)
)


def connection(turn: Turn) -> Connection:
    """A conversation, under the guard or in a person's own session."""
    return AcpConnection(turn, _DIALECT)


def objection(turn: Turn) -> str | None:
    """An administrator's policies go before ours, and may allow what nobody asked about."""
    if any(_ADMINISTRATED.glob("*.toml")):
        return f"the policies in {_ADMINISTRATED} decide before anybody is asked"
    return too_young(turn)


def too_young(turn: Turn) -> str | None:
    """Why a session cannot be taken up over the protocol. Gemini names its file by the minute, and begins it
    anew when it takes the session up."""
    own = turn.environ.get("GEMINI_CLI_HOME") or turn.environ.get("HOME", "/")
    home = turn.keep if turn.endpoint else Path(own)
    minute = rfc3339(now())[:16].replace(":", "-")
    file = f"tmp/*/chats/session-{minute}-{turn.session[:8]}.jsonl"
    if turn.resume and any((home / ".gemini").glob(file)):
        return "the session is less than a minute old, Gemini would write over it"
    return None
