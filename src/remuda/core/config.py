"""Configuration: the user's config.toml, overlaid by the project's .remuda/config.toml."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from remuda.core.errors import ConfigError
from remuda.core.files import write_atomic
from remuda.core.paths import Folders

PROJECT_FILE = ".remuda/config.toml"

Shape = TypeVar("Shape", bound="ProjectConfig")
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class EnvironmentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent's environment may carry beyond the built-in allow-list."""

    pass_: tuple[str, ...] = msgspec.field(default=(), name="pass")


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Defaults for runs. A timeout of 0 means none; without a patience, each runtime's own holds."""

    timeout: Seconds = 0
    idle_timeout: Seconds = 0
    retry_patience: Seconds | None = None
    retry_patience_midway: Seconds = 120.0


class RuntimeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One runtime's settings: another program to run, a default model."""

    binary: str | None = None
    model: str | None = None


class ProjectConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may configure: nothing that names a program or lets a variable through, for it may be
    somebody else's."""

    agent: str | None = None
    prompt_delivery: str | None = None
    run: RunConfig = RunConfig()


class Config(ProjectConfig, frozen=True, forbid_unknown_fields=True):
    """What a user may configure; unknown keys are refused, so that a typing error is noticed."""

    environment: EnvironmentConfig = EnvironmentConfig()
    runtimes: dict[str, RuntimeConfig] = {}


def project_file(cwd: Path) -> Path | None:
    """The nearest project configuration, looking upwards from a folder."""
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def load(folders: Folders, cwd: Path) -> Config:
    """Read and merge the configuration files; a malformed one is an error that names file and place."""
    merged = _read(folders.config_file, Config)
    if project := project_file(cwd):
        _overlay(merged, _read(project, ProjectConfig))
    return _convert(merged, "configuration", Config)


def _read(path: Path, shape: type[ProjectConfig]) -> dict[str, object]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "Fix the file or move it away.") from None
    import tomllib

    try:
        document: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}", "Fix that line; the file was left as it is.") from None
    _convert(document, str(path), shape)
    return document


def _convert(document: dict[str, object], where: str, shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        hint = "'remuda config list' shows every key."
        if shape is ProjectConfig:
            hint += " A project may not set 'environment' or 'runtimes': set those in your own file."
        raise ConfigError(f"{where}: {error}", hint) from None


def _overlay(base: dict[str, object], top: dict[str, object]) -> None:
    for key, value in top.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _overlay(below, value)
        else:
            base[key] = value


def edit(path: Path, key: str, value: object | None) -> None:
    """Set one dotted key, or remove it with None; comments and layout stay, bad values are refused."""
    import tomlkit

    shape = ProjectConfig if path.parts[-2:] == Path(PROJECT_FILE).parts else Config
    _read(path, shape)
    document = tomlkit.parse(path.read_bytes().decode("utf-8-sig") if path.exists() else "")
    *tables, name = key.split(".")
    place: MutableMapping[str, object] = document
    for table in tables:
        if value is None and table not in place:
            return
        place = _table(place, table, key)
    if value is not None:
        try:
            place[name] = value
        except tomlkit.exceptions.ConvertError:
            raise ConfigError(
                f"{key}: this value cannot be written as TOML", "null has no place in it."
            ) from None
    elif name in place:
        del place[name]
    else:
        return
    _convert(document.unwrap(), key, shape)
    write_atomic(path, tomlkit.dumps(document).encode())


def _table(place: MutableMapping[str, object], name: str, key: str) -> MutableMapping[str, object]:
    """A table in a table, made when it is missing."""
    import tomlkit

    table = place.setdefault(name, tomlkit.table())
    if not isinstance(table, MutableMapping):
        raise ConfigError(f"{key}: {name} is not a table", "'remuda config list' shows every key.")
    return table
