"""Claude Code's settings: hooks by event, with a matcher for tools."""

from __future__ import annotations

from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.wiring import (
    TIMEOUT,
    Edit,
    ListEntry,
    Site,
    Wiring,
    command_line,
    folder_of,
    json_object,
)

_EVENTS: dict[Event, dict[str, str]] = {
    "SessionStart": {},
    "PreToolUse": {"matcher": "*"},
    "UserPromptSubmit": {},
    "Stop": {},
    "SessionEnd": {},
}
_SWITCH = "disableAllHooks"


def _settings(site: Site) -> Path:
    """The user's file, or the one of the project that is not shared with others: the hook program's path is
    of this machine."""
    if site.scope == "project":
        return site.project / ".claude" / "settings.local.json"
    return folder_of(site, "CLAUDE_CONFIG_DIR", ".claude") / "settings.json"


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool, and those by which a session is known to others and gets their messages."""
    return tuple(
        ListEntry(
            path=_settings(site),
            keys=("hooks", event),
            value={
                **matcher,
                "hooks": [
                    {"type": "command", "command": command_line(site.hooks[event], event), "timeout": TIMEOUT}
                ],
            },
            mark=str(site.hooks[event]),
        )
        for event, matcher in _EVENTS.items()
    )


def switched_off(site: Site) -> list[str]:
    """Any settings file, a project's too, can switch the hooks of all of them off."""
    files = (
        folder_of(site, "CLAUDE_CONFIG_DIR", ".claude") / "settings.json",
        site.project / ".claude" / "settings.json",
        site.project / ".claude" / "settings.local.json",
    )
    return [f"{_SWITCH} is set in {file}" for file in files if json_object(file).get(_SWITCH) is True]


_UNLOADED = (
    "Claude Code runs no hooks with --bare or --safe-mode, and none of the user's with --restricted or "
    "--setting-sources project"
)
WIRING = Wiring(
    dialect="claude",
    edits=edits,
    switched_off=switched_off,
    condition={"user": _UNLOADED, "project": _UNLOADED},
)
