"""Claude Code under guard: every tool call asks over the connection, as a hook and for permission.

The hooks that a client announces there are loaded whatever the settings say, and a call whose hook is not
answered does not run. All that was seen on the version that this runtime is verified for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.runtimes.base import Channel, Guarding, Invocation, Turn
from remuda.runtimes.claude.command import CONVERSATION, VERSION, common, environment
from remuda.runtimes.places import lies_below

_SETTINGS = '{"permissions":{"ask":["*"]},"disableSkillShellExecution":true}'
"""What the user's settings grant beforehand waits for the guard; what they deny stays denied. Skills run no
command while they are loaded."""

_OWN_SETTINGS = ("--setting-sources", "user", "--strict-mcp-config", "--settings", _SETTINGS)
"""Nothing of the folder's counts: settings, hooks, servers, agents, skills, commands, plugins."""

_FOREGROUND = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}
"""What goes on behind the end of a turn would find nobody to ask."""

_BARE = "CLAUDE_CODE_SIMPLE"


class _Settings(msgspec.Struct, frozen=True):
    env: dict[str, object] = {}


def command(turn: Turn) -> Invocation:
    """One turn over a connection, in the mode that asks. The guard decides alone."""
    arguments, files = common(turn, "ask")
    return Invocation(
        arguments=(*CONVERSATION, *_OWN_SETTINGS, *arguments),
        env={**environment(turn), **_FOREGROUND},
        files=files,
    )


def objection(turn: Turn) -> str | None:
    """What would take the hooks away, or let the folder speak as the user."""
    folder = _folder(turn.environ)
    file = folder / "settings.json"
    for place in (folder, file):
        if lies_below(place, turn.cwd):
            return f"the user's settings of Claude Code, {place}, lie in the folder that is worked on"
    if _is_set(turn.environ.get(_BARE)):
        return f"{_BARE} in the environment keeps Claude Code from loading hooks"
    if _is_set(_settings(file).env.get(_BARE)):
        return f"{_BARE} in {file} keeps Claude Code from loading hooks"
    return None


def _folder(environ: Mapping[str, str]) -> Path:
    """Where the user's settings are."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or "/", ".claude"))


def _settings(file: Path) -> _Settings:
    """The settings, as far as they matter. Claude Code passes over a file that it cannot read, too."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Settings)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return _Settings()


def _is_set(value: object) -> bool:
    return str(value or "").strip().lower() not in ("", "0", "false", "no", "off")


GUARDING = Guarding(
    by="approval",
    command=command,
    channel=Channel("connection", (), VERSION, note="stream-json on both standard streams, byte for byte"),
    objection=objection,
    instructions=("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md"),
    note="the project's own settings, servers, agents and skills are left out",
)
