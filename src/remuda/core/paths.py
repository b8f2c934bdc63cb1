"""Where Remuda keeps things: the XDG folders, or one folder when REMUDA_HOME is set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

PROJECT_FILE = ".remuda/config.toml"
"""A project's configuration, in its folder."""


class Folders(msgspec.Struct, frozen=True):
    """The five folders, resolved from an environment once and passed on."""

    config: Path
    state: Path
    data: Path
    cache: Path
    runtime: Path

    @property
    def guarded(self) -> tuple[str, ...]:
        """Those that no agent may change: all but the cache, which holds nothing that anybody relies on."""
        return tuple(map(str, (self.config, self.state, self.data, self.runtime)))

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def secrets_file(self) -> Path:
        return self.config / "secrets.toml"

    @property
    def trusted_file(self) -> Path:
        """The folders in which agents may act unasked while nobody watches."""
        return self.config / "trusted.json"

    @property
    def worktrees(self) -> Path:
        """The worktrees of isolated runs: beside the data, for agents have to write there."""
        return self.data.with_name(f"{self.data.name}-worktrees")

    @property
    def sticky_file(self) -> Path:
        return self.config / "active_agent"

    @property
    def declared_runtimes(self) -> Path:
        return self.config / "runtimes"

    @property
    def screens(self) -> Path:
        """The user's own screen manifests."""
        return self.config / "screens"

    @property
    def database(self) -> Path:
        return self.state / "remuda.db"

    @property
    def shared_database(self) -> Path:
        """Tasks, peers and limits, where no server keeps them."""
        return self.state / "dispatch.db"

    @property
    def evidence_file(self) -> Path:
        return self.state / "evidence.jsonl"


def _base(environ: Mapping[str, str], variable: str, default: Path) -> Path:
    """An XDG base folder; relative values are ignored, as the XDG specification demands."""
    value = Path(environ.get(variable, ""))
    return value if value.is_absolute() else default


def folders(environ: Mapping[str, str]) -> Folders:
    """Resolve the folders; nothing is created."""
    override = environ.get("REMUDA_HOME")
    if override:
        home = Path(override).expanduser().absolute()
        return Folders(*(home / part for part in ("config", "state", "data", "cache", "runtime")))
    user = Path(environ.get("HOME") or Path.home())
    state = _base(environ, "XDG_STATE_HOME", user / ".local/state") / "remuda"
    return Folders(
        config=_base(environ, "XDG_CONFIG_HOME", user / ".config") / "remuda",
        state=state,
        data=_base(environ, "XDG_DATA_HOME", user / ".local/share") / "remuda",
        cache=_base(environ, "XDG_CACHE_HOME", user / ".cache") / "remuda",
        runtime=_base(environ, "XDG_RUNTIME_DIR", state / "run") / "remuda",
    )
