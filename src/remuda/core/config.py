"""Configuration: the user's config.toml, overlaid by the project's .remuda/config.toml."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from remuda.core.dispatchconfig import (
    AgentConfig,
    DispatchConfig,
    PeerConfig,
    SandboxConfig,
    TasksConfig,
)
from remuda.core.errors import ConfigError
from remuda.core.files import write_atomic
from remuda.core.guardconfig import GuardConfig, ProjectGuardConfig
from remuda.core.paths import PROJECT_FILE as PROJECT_FILE
from remuda.core.paths import Folders

LARGEST = 256 * 1024
"""The longest file, in bytes, that the guard takes rules from."""

Shape = TypeVar("Shape", bound="CommonConfig")
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Program = Annotated[str, msgspec.Meta(pattern="^/")]


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


class HooksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Other judges of a tool call, beside the guard, and how their answers become one."""

    judges: tuple[Program, ...] = ()
    precedence: Literal["documented", "strictest"] = "strictest"


class ServeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The resident process: after how many seconds without a request it ends."""

    idle: Seconds = 300.0


class SessionsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sessions that last: the kinds of dialogs that may be answered for the user, how long a person has to
    answer a question, how long a turn may be silent (0: without end), and to end once it is asked to."""

    consent: tuple[str, ...] = ()
    answer_within: Seconds = 300.0
    idle_timeout: Seconds = 0
    abort_within: Seconds = 10.0


class PriceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model costs, in US dollars per million tokens. What is cached costs what input costs, unless it
    is told apart."""

    input: Price
    output: Price
    cached_read: Price | None = None
    cached_write: Price | None = None


class UsageConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices by patterns of model names; they win over the shipped ones."""

    prices: dict[str, PriceConfig] = {}


class CommonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What users and projects alike may configure."""

    agent: str | None = None
    prompt_delivery: str | None = None
    run: RunConfig = RunConfig()


class ProjectConfig(CommonConfig, frozen=True, forbid_unknown_fields=True):
    """What a project may configure: nothing that names a program, lets a variable through or loosens the
    guard, for it may be somebody else's."""

    guard: ProjectGuardConfig = ProjectGuardConfig()


class Config(CommonConfig, frozen=True, forbid_unknown_fields=True):
    """What a user may configure; unknown keys are refused, so that a typing error is noticed."""

    guard: GuardConfig = GuardConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    runtimes: dict[str, RuntimeConfig] = {}
    hooks: HooksConfig = HooksConfig()
    serve: ServeConfig = ServeConfig()
    sessions: SessionsConfig = SessionsConfig()
    usage: UsageConfig = UsageConfig()
    agents: dict[str, AgentConfig] = {}
    dispatch: DispatchConfig = DispatchConfig()
    sandboxes: dict[str, SandboxConfig] = {}
    peer: PeerConfig = PeerConfig()
    tasks: TasksConfig = TasksConfig()
    database_url: str | None = None


def project_file(cwd: Path) -> Path | None:
    """The nearest project configuration, looking upwards from a folder."""
    for folder in (cwd, *cwd.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None


def load_user(path: Path) -> Config:
    """What the user's own file says, whatever a project says."""
    return _convert(_read(path, Config), str(path), Config)


def load(folders: Folders, cwd: Path) -> Config:
    """Read and merge the configuration files; a malformed one is an error that names file and place."""
    merged = _read(folders.config_file, Config)
    if project := project_file(cwd):
        _overlay(merged, _read(project, ProjectConfig))
    return _convert(merged, "configuration", Config)


def _read(path: Path, shape: type[CommonConfig]) -> dict[str, object]:
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


class MisreadError(Exception):
    """A configuration file that the guard cannot read, and the line that is to blame."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def read_guard(path: str, *, own: bool) -> GuardConfig:
    """The guard's part of a file that is there: one's ``own``, or a project's. The whole file has to be in
    order, for a key that nobody knows may be a rule that was meant."""
    from remuda.core.tomlplaces import line_of_error, line_of_syntax, spelled_out

    try:
        with Path(path).open("rb") as stream:
            text = stream.read(LARGEST + 1).decode("utf-8-sig")
    except OSError:
        raise MisreadError(1) from None
    except UnicodeDecodeError as error:
        raise MisreadError(error.object.count(b"\n", 0, error.start) + 1) from None
    if len(text.encode()) > LARGEST:
        raise MisreadError(text.count("\n") + 1)
    import tomllib

    shape: type[Config] | type[ProjectConfig] = Config if own else ProjectConfig
    document: dict[str, object] = {}
    try:
        document = tomllib.loads(text)
        msgspec.convert(document, shape)
        return msgspec.convert(document.get("guard", {}), GuardConfig)
    except tomllib.TOMLDecodeError as error:
        raise MisreadError(line_of_syntax(str(error), text)) from None
    except msgspec.ValidationError as error:
        raise MisreadError(line_of_error(spelled_out(str(error), document, shape), text)) from None
    except RecursionError:
        raise MisreadError(1) from None


def _convert(document: dict[str, object], where: str, shape: type[Shape]) -> Shape:
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        from remuda.core.tomlplaces import spelled_out

        hint = "'remuda config list' shows every key."
        if shape is ProjectConfig:
            hint += (
                " A project may not set 'environment', 'runtimes', 'agents' or the like, nor loosen the"
                " guard: set that in your own file."
            )
        raise ConfigError(f"{where}: {spelled_out(str(error), document, shape)}", hint) from None


def _overlay(base: dict[str, object], top: dict[str, object], *, joins: bool = False) -> None:
    """Put one document over another. Of the guard, lists are joined: nobody takes away what another says."""
    for key, value in top.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _overlay(below, value, joins=joins or key == "guard")
        elif joins and isinstance(below, list) and isinstance(value, list):
            base[key] = [*below, *value]
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
