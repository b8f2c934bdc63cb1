"""Gemini's settings: hooks by event, with a pattern for tools; comments are allowed in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from remuda.hooks.events import Event
from remuda.runtimes.wiring import TIMEOUT, Edit, ListEntry, Site, Trouble, Wiring, command_line, folder_of

_EVENTS: dict[str, Event] = {
    "SessionStart": "SessionStart",
    "BeforeTool": "PreToolUse",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "SessionEnd": "SessionEnd",
}
_NAME = "remuda"


def _files(site: Site) -> dict[str, Path]:
    home = folder_of(site, "GEMINI_CLI_HOME", "")
    return {
        "user": home / ".gemini" / "settings.json",
        "project": site.project / ".gemini" / "settings.json",
    }


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool, and those by which a session is known to others and gets their messages."""
    return tuple(
        ListEntry(
            path=_files(site)[site.scope],
            keys=("hooks", name),
            value={
                "hooks": [
                    {
                        "name": _NAME,
                        "type": "command",
                        "command": command_line(site.hooks[event], event),
                        "timeout": TIMEOUT * 1000,
                    }
                ],
            },
            mark=str(site.hooks[event]),
            comments=True,
        )
        for name, event in _EVENTS.items()
    )


def switched_off(site: Site) -> list[str]:
    """Hooks can be switched off as a whole, and by name."""
    return [problem for file in _files(site).values() for problem in _off(file)]


def _off(file: Path) -> list[str]:
    from remuda.hooks.settings import jsontext

    try:
        root = jsontext.read(file.read_text(), comments=True)
    except (OSError, ValueError, Trouble):
        return []
    settings = root.value if root and isinstance(root.value, Mapping) else {}
    found = settings.get("hooksConfig")
    config = found if isinstance(found, Mapping) else {}
    disabled = config.get("disabled")
    return [
        *([f"hooksConfig.enabled is off in {file}"] if config.get("enabled") is False else ()),
        *(
            [f"hooksConfig.disabled names {_NAME} in {file}"]
            if isinstance(disabled, list) and _NAME in disabled
            else ()
        ),
    ]


WIRING = Wiring(
    dialect="gemini",
    edits=edits,
    switched_off=switched_off,
    condition={
        "user": "Gemini runs no hooks with --acp",
        "project": "Gemini reads a project's settings only in a folder that it was told to trust, for which "
        "--skip-trust does not do, and runs no hooks with --acp",
    },
    unseen="against the built-in model server Gemini gets a home of its own, without these settings",
)
