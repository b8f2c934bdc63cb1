"""Read and change the configuration, key by key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from remuda.core import config
from remuda.core.errors import NotFoundError
from remuda.operations.world import World

_PASSWORD = re.compile(r"(//[^/:@]*:|[?&]password=)(?:[^/]*(?=@)|[^&]*)")


class Setting(msgspec.Struct, frozen=True):
    """One key with the value in force."""

    key: str
    value: object


class Settings(msgspec.Struct, frozen=True):
    """The answer of ``remuda config list``."""

    user_file: str
    project_file: str | None
    settings: list[Setting]


def settings(world: World) -> Settings:
    """Every key and its value in force."""
    project = config.project_file(world.cwd)
    flat = _flat("", _told(world))
    return Settings(str(world.folders.config_file), str(project) if project else None, flat)


def get(world: World, key: str) -> Setting:
    """One key, or a whole table."""
    value: object = _told(world)
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise NotFoundError(f"there is no setting {key!r}", "'remuda config list' shows every key.")
        value = value[part]
    return Setting(key, value)


def change(world: World, key: str, text: str | None, *, project: bool) -> Path:
    """Set a key (its value read as JSON if it is that, as plain text otherwise), or remove it with None."""
    path = world.cwd / config.PROJECT_FILE if project else world.folders.config_file
    config.edit(path, key, None if text is None else _value(text))
    return path


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _told(world: World) -> dict[str, object]:
    """The configuration as it may be shown: without the password of the database."""
    told: dict[str, object] = msgspec.to_builtins(world.config)
    if world.config.database_url:
        told["database_url"] = _PASSWORD.sub(r"\1…", world.config.database_url)
    return told


def _flat(prefix: str, value: object) -> list[Setting]:
    if not isinstance(value, dict) or not value:
        return [Setting(prefix, value)]
    return [
        setting
        for name, inner in value.items()
        for setting in _flat(f"{prefix}.{name}" if prefix else str(name), inner)
    ]
