"""Hermes' hooks in its config.yaml, and the list of those that its user has agreed to."""

from __future__ import annotations

import shlex
from pathlib import Path

from remuda.hooks.answer import refusal
from remuda.hooks.events import Event
from remuda.runtimes.wiring import TIMEOUT, Edit, ListEntry, Site, Wiring, folder_of

_EVENTS: dict[str, Event] = {
    "pre_tool_call": "PreToolUse",
    "pre_llm_call": "UserPromptSubmit",
    "on_session_end": "Stop",
    "on_session_reset": "SessionStart",
    "on_session_finalize": "SessionEnd",
}
"""What Hermes calls the end of a session is that of a turn."""

_CALL = "{program}; case $? in 0|2) ;; *) echo '{gone}' ;; esac"
"""Only what is said counts for Hermes: also when the program is gone, or was shot."""


def _command(program: Path, event: Event) -> str:
    called = shlex.quote(str(program))
    if event != "PreToolUse":
        return called
    gone = refusal("hermes", "the guard is gone")
    return shlex.join(("/bin/sh", "-c", _CALL.format(program=called, gone=gone)))


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool, and those by which a session is known to others and gets their messages. One
    that is not on the list of the agreed, Hermes skips without a word."""
    home = folder_of(site, "HERMES_HOME", ".hermes")
    calls = {name: (site.hooks[event], _command(site.hooks[event], event)) for name, event in _EVENTS.items()}
    hooks = (
        ListEntry(
            path=home / "config.yaml",
            keys=("hooks", name),
            value={"command": command, "timeout": TIMEOUT},
            mark=str(program),
        )
        for name, (program, command) in calls.items()
    )
    agreed = (
        ListEntry(
            path=home / "shell-hooks-allowlist.json",
            keys=("approvals",),
            value={"event": name, "command": command},
            mark=str(program),
        )
        for name, (program, command) in calls.items()
    )
    return (*hooks, *agreed)


def switched_off(site: Site) -> list[str]:
    """Safe mode leaves all hooks out."""
    on = site.environ.get("HERMES_SAFE_MODE", "").strip().lower() in ("1", "true", "yes", "on")
    return ["HERMES_SAFE_MODE is set"] if on else []


WIRING = Wiring(
    dialect="hermes",
    edits=edits,
    scopes=("user",),
    switched_off=switched_off,
    condition={"user": "Hermes runs no hooks with --safe-mode"},
    unseen="against the built-in model server Hermes gets a home of its own, without these settings",
)
