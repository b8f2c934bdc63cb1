"""Copilot's hooks: a JSON file of its own in a folder that Copilot reads whole."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.wiring import TIMEOUT, Edit, OwnFile, Site, Wiring, folder_of, json_object

_EVENTS: dict[str, Event] = {
    "sessionStart": "SessionStart",
    "preToolUse": "PreToolUse",
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}
_SWITCH = "disableAllHooks"


def _folder(site: Site) -> Path:
    return (
        site.project / ".github" if site.scope == "project" else folder_of(site, "COPILOT_HOME", ".copilot")
    )


def edits(site: Site) -> tuple[Edit, ...]:
    """Copilot's own form: with Claude's, it would answer to Claude's dialect."""
    hooks = {
        name: [{"type": "command", "bash": shlex.quote(str(site.hooks[event])), "timeoutSec": TIMEOUT}]
        for name, event in _EVENTS.items()
    }
    content = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
    return (OwnFile(path=_folder(site) / "hooks" / "remuda.json", content=content),)


def switched_off(site: Site) -> list[str]:
    """A project's settings, where the folder is trusted, also switch off the hooks of the user."""
    file = site.project / ".github" / "copilot" / "settings.json"
    return [f"{_SWITCH} is set in {file}"] if json_object(file).get(_SWITCH) is True else []


WIRING = Wiring(
    dialect="copilot",
    edits=edits,
    switched_off=switched_off,
    condition={"project": "Copilot reads a project's hooks only in a folder that it was told to trust"},
)
