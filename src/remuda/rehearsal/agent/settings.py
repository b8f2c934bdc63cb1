"""Settings files in Claude Code's layout: which hook commands run on which event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

_NAMES = re.compile(r"[A-Za-z0-9_|]+")


class Hook(Struct, frozen=True):
    """A command that is asked about an event."""

    type: Literal["command"]
    command: str
    timeout: Annotated[float, Meta(gt=0)] = 60


class Group(Struct, frozen=True):
    """Hooks for the subjects (tools, mostly) that a matcher selects."""

    hooks: tuple[Hook, ...]
    matcher: str = ""

    def selects(self, subject: str) -> bool:
        """Names joined by ``|`` are compared whole, anything else is a pattern; '' and * take all."""
        if not subject or self.matcher in ("", "*"):
            return True
        if _NAMES.fullmatch(self.matcher):
            return subject in self.matcher.split("|")
        try:
            return re.search(self.matcher, subject) is not None
        except re.error:
            return False


class Settings(Struct, frozen=True):
    """The part of a settings file that matters here."""

    hooks: dict[str, tuple[Group, ...]] = {}
    disable_all_hooks: bool = msgspec.field(default=False, name="disableAllHooks")

    def hooks_for(self, event: str, subject: str) -> list[Hook]:
        """Every hook of an event."""
        groups = () if self.disable_all_hooks else self.hooks.get(event, ())
        return [hook for group in groups if group.selects(subject) for hook in group.hooks]


def read_settings(paths: Iterable[Path], warn: Callable[[str], None]) -> Settings:
    """All files together; an invalid one is dropped as a whole, and any one can disable the hooks of all."""
    merged: dict[str, tuple[Group, ...]] = {}
    disabled = False
    for path in paths:
        settings = _read(path, warn)
        disabled |= settings.disable_all_hooks
        for event, groups in settings.hooks.items():
            merged[event] = merged.get(event, ()) + groups
    return Settings(merged, disabled)


def _read(path: Path, warn: Callable[[str], None]) -> Settings:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        warn(f"{path}: {error.strerror or 'cannot be read'}; none of it is used")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        warn(f"{path}: not a valid settings file, none of it is used: {error}")
    return Settings()
