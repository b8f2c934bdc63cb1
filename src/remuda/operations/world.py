"""What every operation stands on: an environment, a working folder, the folders, the configuration and the
runtimes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core import config, paths
from remuda.runtimes.herd import Herd


class World(msgspec.Struct, frozen=True):
    """Read once by a surface and passed on; operations read no global state."""

    environ: Mapping[str, str]
    cwd: Path
    folders: paths.Folders
    config: config.Config

    @property
    def herd(self) -> Herd:
        return Herd(self.folders.declared_runtimes)


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


def is_runtime(name: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a runtime has this name; no configuration is read for that."""
    return name in Herd(paths.folders(os.environ if environ is None else environ).declared_runtimes)
