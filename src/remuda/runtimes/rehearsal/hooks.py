"""The rehearsal agent's settings: laid out as Claude Code's."""

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

_EVENTS: tuple[Event, ...] = ("SessionStart", "PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd")
_SWITCH = "disableAllHooks"


def _files(site: Site) -> dict[str, Path]:
    return {
        "user": folder_of(site, "REHEARSAL_HOME", ".rehearsal") / "settings.json",
        "project": site.project / ".rehearsal" / "settings.json",
    }


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool, and those by which a session is known to others and gets their messages."""
    return tuple(
        ListEntry(
            path=_files(site)[site.scope],
            keys=("hooks", event),
            value={
                "hooks": [
                    {"type": "command", "command": command_line(site.hooks[event], event), "timeout": TIMEOUT}
                ]
            },
            mark=str(site.hooks[event]),
        )
        for event in _EVENTS
    )


def switched_off(site: Site) -> list[str]:
    """Either settings file can switch the hooks of both off."""
    files = _files(site).values()
    return [f"{_SWITCH} is set in {file}" for file in files if json_object(file).get(_SWITCH) is True]


WIRING = Wiring(dialect="claude", edits=edits, switched_off=switched_off)
