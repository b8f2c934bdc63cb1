"""What every operation stands on: an environment, a working folder, the folders, the configuration and the
runtimes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core import config, paths
from remuda.core.errors import ConfigError
from remuda.dispatch.agents import Roster
from remuda.runtimes.herd import Herd

if TYPE_CHECKING:
    from remuda.core.sql import Database


class World(msgspec.Struct, frozen=True):
    """Read once by a surface and passed on; operations read no global state. ``caller`` is the process on
    whose behalf something is done, where that is not this one."""

    environ: Mapping[str, str]
    cwd: Path
    folders: paths.Folders
    config: config.Config
    caller: int | None = None

    @property
    def herd(self) -> Herd:
        return Herd(self.folders.declared_runtimes)

    def shared(self) -> Database:
        """The database that processes, and where it is a server machines, share. Whoever opens it closes
        it."""
        from remuda.core.sql import open_database

        return open_database(self.folders.shared_database, self.environ, self.config.database_url)

    @property
    def roster(self) -> Roster:
        return Roster(self.herd, self.config.agents)


def open_world(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> World:
    """The world as a process finds it."""
    variables = dict(os.environ if environ is None else environ)
    folder = (cwd or Path.cwd()).absolute()
    folders = paths.folders(variables)
    return World(variables, folder, folders, config.load(folders, folder))


def bare_world() -> World:
    """The world without its configuration, for what has to answer also when that is malformed."""
    variables = dict(os.environ)
    return World(variables, Path.cwd().absolute(), paths.folders(variables), config.Config())


def can_be_launched(name: str) -> bool:
    """Whether a runtime, or an agent of the user's own, has this name. A malformed configuration has none."""
    folders = paths.folders(os.environ)
    if name in Herd(folders.declared_runtimes):
        return True
    try:
        return name in config.load_user(folders.config_file).agents
    except ConfigError:
        return False
