"""What every operation stands on: an environment, a working folder, the folders and the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core import config, paths


class World(msgspec.Struct, frozen=True):
    """Read once by a surface and passed on; operations read no global state."""

    environ: Mapping[str, str]
    cwd: Path
    folders: paths.Folders
    config: config.Config


def open_world(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> World:
    """The world as a process finds it."""
    variables = dict(os.environ if environ is None else environ)
    folder = (cwd or Path.cwd()).absolute()
    folders = paths.folders(variables)
    return World(variables, folder, folders, config.load(folders, folder))
