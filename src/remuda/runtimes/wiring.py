"""How an agent CLI's own settings are made to call the guard: edits as data, which others carry out and undo.

A runtime says what has to stand where. Nothing here reads or writes a file, but for ``switched_off``, which
may look at settings.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from remuda.hooks.answer import Dialect
from remuda.hooks.events import Event
from remuda.hooks.settings.edits import Edit, ListEntry, OwnFile, TableValue
from remuda.hooks.settings.edits import Trouble as Trouble

__all__ = [
    "Edit",
    "ListEntry",
    "OwnFile",
    "Scope",
    "Site",
    "TableValue",
    "Wiring",
    "folder_of",
    "json_object",
]

Scope = Literal["user", "project"]
"""Whose sessions are guarded: all of the user's, or those in one project."""

TIMEOUT = 30
"""Seconds that a CLI is to wait for a hook program: longer than that ever takes."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where settings lie: an environment that names homes, a project's top folder, and the staged hook
    programs by event, as absolute paths."""

    scope: Scope
    environ: Mapping[str, str]
    project: Path
    hooks: Mapping[Event, Path]


def nothing_off(_site: Site) -> list[str]:
    """No setting is known that switches hooks off."""
    return []


def no_consent(_site: Site, _positions: tuple[int, ...]) -> tuple[Edit, ...]:
    """Hooks run without anybody's consent to them."""
    return ()


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """How a CLI is made to call the guard, in its ``dialect``.

    ``consent`` are further edits by which the user agrees to the hooks, for a CLI that would skip them
    otherwise; it is told at which position of its list each entry came to stand. ``switched_off`` tells what
    in the settings keeps the CLI from calling the guard, ``condition`` what else has to be so (a trusted
    folder) and what happens if it is not. ``unseen`` is why a run against another model endpoint would not
    show whether the hooks hold, where that is so.
    """

    dialect: Dialect
    edits: Callable[[Site], tuple[Edit, ...]]
    scopes: tuple[Scope, ...] = ("user", "project")
    consent: Callable[[Site, tuple[int, ...]], tuple[Edit, ...]] = no_consent
    switched_off: Callable[[Site], list[str]] = nothing_off
    condition: Mapping[Scope, str] = {}
    unseen: str = ""


def folder_of(site: Site, variable: str, usual: str) -> Path:
    """A CLI's home: what a variable of its own says, or the usual folder below the user's."""
    home = Path(site.environ.get("HOME") or Path.home())
    named = site.environ.get(variable)
    return Path(named).expanduser().absolute() if named else home / usual


def command_line(program: Path, event: Event) -> str:
    """How a shell calls a hook program. One that is gone, or was shot, denies as well, with a text, without
    which a deny counts for nothing in some CLIs."""
    called = shlex.quote(str(program))
    if event != "PreToolUse":
        return called
    return f"{called} || {{ [ $? = 2 ] || echo 'remuda: denied: the guard is gone' >&2; exit 2; }}"


def json_object(path: Path) -> Mapping[str, object]:
    """A settings file as an object; empty where there is none or it cannot be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}
