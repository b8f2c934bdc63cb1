"""What a resolver case is made of: a small machine in a folder, and the answer to expect there."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

NAMES = ("amplifier", "claude", "codex", "copilot", "rehearsal")
PLACE = ".claude/runtime/launcher_context.json"
DAY = 86400


@dataclass
class Site:
    """A machine in a folder: a home, a repository to stand in, programs to be found, an environment."""

    root: Path
    cwd: Path = field(init=False)
    environ: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.cwd = self.repo = self.root / "work" / "repo"
        self.home = self.root / "home"
        self.bin = self.root / "bin"
        (self.repo / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.bin.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": str(self.bin)}

    def context(
        self, content: bytes | str | dict[str, object], folder: Path | None = None, age: float = 0
    ) -> Path:
        """A launcher context file; a dictionary becomes JSON."""
        path = (folder or self.repo) / PLACE
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def started(self, age: float, **more: object) -> dict[str, object]:
        """A context for claude that says it began that many seconds ago."""
        return {"launcher": "claude", "started_at": stamp(age), **more}

    def sticky(self, content: bytes, folder: Path | None = None) -> Path:
        """The file that ``remuda use`` writes."""
        path = (folder or self.home / ".config/remuda") / "active_agent"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def config(self, text: str, folder: Path | None = None) -> Path:
        """A configuration file."""
        path = (folder or self.home / ".config/remuda") / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def install(self, *programs: str) -> None:
        """Programs on PATH."""
        for program in programs:
            (self.bin / program).write_text("#!/bin/sh\n")
            (self.bin / program).chmod(0o755)

    def go(self, folder: Path) -> Path:
        """Stand in a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.cwd = folder
        return folder

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        """Run the real git, without anybody's configuration."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(
            ["git", *identity, *arguments],
            cwd=cwd or self.repo,
            env=environ,
            check=True,
            capture_output=True,
        )

    def worktree(self, *options: str) -> Path:
        """A real repository with a real linked worktree, in which we stand."""
        (self.repo / ".git").rmdir()
        self.git("init")
        self.git("commit", "--allow-empty", "-m", "first")
        self.git(*options, "worktree", "add", str(self.root / "linked"))
        return self.go(self.root / "linked")


@dataclass(frozen=True)
class Case:
    """A situation and its answer."""

    id: str
    agent: str
    source: str
    build: Callable[[Site], object]


def stamp(age: float, suffix: str = "Z", shift: float = 0) -> str:
    """An RFC 3339 timestamp for so many seconds ago, as a clock that is ``shift`` seconds ahead shows it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - age + shift)) + suffix


def place(agent: str, source: str) -> Callable[[Callable[[Site], object]], Case]:
    """Make a case of a function that builds its situation."""
    return lambda build: Case(build.__name__.replace("_", "-"), agent, source, build)
