"""Installs the pinned peers into a cache folder, each by itself, and says how to start them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PINS = Path(__file__).with_name("peers.txt")


class Peer(NamedTuple):
    """A program to compare with."""

    registry: str
    package: str
    command: tuple[str, ...]

    @property
    def title(self) -> str:
        return " ".join(self.command)


def cache_folder() -> Path:
    """Outside the checkout, so that every clone on a machine shares one installation."""
    base = os.environ.get("REMUDA_AGENTS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "remuda-bench"


def pinned(pins: Path = PINS) -> list[Peer]:
    """The peers named in a file."""
    lines = (line.split() for line in pins.read_text().splitlines() if line and not line.startswith("#"))
    return [Peer(registry, package, tuple(command)) for registry, package, *command in lines]


def installed(peer: Peer) -> Path | None:
    """The peer's program, installed now if need be; None (and a word on stderr) when that fails."""
    key = hashlib.sha256(f"{peer.package} {sys.version}".encode()).hexdigest()[:8]
    folder = cache_folder() / f"{peer.command[0]}-{key}"
    bin_folder = folder / ("bin" if peer.registry == "pypi" else "node_modules/.bin")
    done = folder / ".done"
    if not done.exists():
        print(f"installing {peer.package} into {folder}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for step in _steps(peer, folder):
                subprocess.run(step, check=True, stdout=sys.stderr, cwd=folder)
        except (OSError, subprocess.CalledProcessError):
            print(f"could not install {peer.package}: left out", file=sys.stderr)
            return None
        done.touch()
    return bin_folder / peer.command[0]


def _steps(peer: Peer, folder: Path) -> list[list[str]]:
    """The commands that install a peer. Python peers are byte-compiled, whatever the environment says."""
    if peer.registry == "npm":
        npm = str(Path(sys.executable).with_name("npm"))
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        return [[npm, "install", *quiet, "--prefix", str(folder), peer.package]]
    python = str(folder / "bin" / "python")
    return [
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.package],
        [python, "-m", "compileall", "-q", str(folder / "lib")],
    ]
