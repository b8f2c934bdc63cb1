"""Makes sure that there is a tmux that sessions can use, with the system's own packages.

Usage: python tools/tmux.py     install it if it is missing or too old; exit 1 when that cannot be done
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from remuda.sessions.tmux.client import version
from remuda.sessions.tmux.errors import OLDEST

INSTALL = {
    "apt-get": ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "tmux"),
    "dnf": ("dnf", "install", "--assumeyes", "--quiet", "tmux"),
    "apk": ("apk", "add", "--quiet", "tmux"),
    "pacman": ("pacman", "-Sy", "--noconfirm", "tmux"),
    "zypper": ("zypper", "--non-interactive", "install", "tmux"),
    "brew": ("brew", "install", "--quiet", "tmux"),
}
"""What installs it, by the program that does so."""

REFRESH = {"apt-get": ("apt-get", "update", "--quiet")}
"""What is done first where installing failed: the list of packages may be old, or not there."""


def usable() -> bool:
    """Whether there is a tmux that is new enough."""
    program = shutil.which("tmux")
    if program is None:
        return False
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    found = version(said.stdout)
    return said.returncode == 0 and (found is None or found >= OLDEST)


def as_root(command: tuple[str, ...]) -> list[str]:
    """The command with the rights that it needs; Homebrew wants none."""
    rightless = os.getuid() != 0 and command[0] != "brew" and shutil.which("sudo")
    return ["sudo", "-n", *command] if rightless else list(command)


def install() -> None:
    """Install it with whatever installs packages here."""
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    def run(command: tuple[str, ...]) -> bool:
        return subprocess.run(as_root(command), stdout=sys.stderr, env=environ, check=False).returncode == 0

    for manager, command in INSTALL.items():
        if shutil.which(manager):
            if not run(command) and manager in REFRESH and run(REFRESH[manager]):
                run(command)
            return


def main() -> int:
    if not usable():
        print("Installing tmux …", file=sys.stderr)
        install()
    if usable():
        return 0
    print(f"The tests need tmux {OLDEST[0]}.{OLDEST[1]} or newer; install it and try again.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
