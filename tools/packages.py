"""Installs a program with the system's own packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

INSTALL = {
    "apt-get": ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends"),
    "dnf": ("dnf", "install", "--assumeyes", "--quiet"),
    "apk": ("apk", "add", "--quiet"),
    "pacman": ("pacman", "-Sy", "--noconfirm"),
    "zypper": ("zypper", "--non-interactive", "install"),
    "brew": ("brew", "install", "--quiet"),
}
"""What installs packages, by the program that does so."""

REFRESH = {"apt-get": ("apt-get", "update", "--quiet")}
"""What is done first where installing failed: the list of packages may be old, or not there."""


def as_root(command: tuple[str, ...]) -> list[str]:
    """The command with the rights that it needs; Homebrew wants none."""
    rightless = os.getuid() != 0 and command[0] != "brew" and shutil.which("sudo")
    return ["sudo", "-n", *command] if rightless else list(command)


def install(package: str, names: Mapping[str, str] | None = None) -> None:
    """Install a package with whatever does so here; ``names`` are those that it has elsewhere."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    def run(command: tuple[str, ...]) -> bool:
        return subprocess.run(as_root(command), stdout=sys.stderr, env=environ, check=False).returncode == 0

    for manager, command in INSTALL.items():
        if shutil.which(manager):
            whole = (*command, (names or {}).get(manager, package))
            if not run(whole) and manager in REFRESH and run(REFRESH[manager]):
                run(whole)
            return
