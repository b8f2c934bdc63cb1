"""Hermes' hooks in its config.yaml, and the list of those that its user has agreed to."""

from __future__ import annotations

import shlex

from remuda.hooks.answer import refusal
from remuda.runtimes.wiring import TIMEOUT, Edit, ListEntry, Site, Wiring, folder_of

_EVENT = "pre_tool_call"
_CALL = "{program}; case $? in 0|2) ;; *) echo '{gone}' ;; esac"
"""Only what is said counts for Hermes: also when the program is gone, or was shot."""


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool. One that is not on the list of the agreed, Hermes skips without a word."""
    home = folder_of(site, "HERMES_HOME", ".hermes")
    program, gone = site.hooks["PreToolUse"], refusal("hermes", "the guard is gone")
    command = shlex.join(("/bin/sh", "-c", _CALL.format(program=shlex.quote(str(program)), gone=gone)))
    return (
        ListEntry(
            path=home / "config.yaml",
            keys=("hooks", _EVENT),
            value={"command": command, "timeout": TIMEOUT},
            mark=str(program),
        ),
        ListEntry(
            path=home / "shell-hooks-allowlist.json",
            keys=("approvals",),
            value={"event": _EVENT, "command": command},
            mark=str(program),
        ),
    )


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
