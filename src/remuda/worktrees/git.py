"""Calls git so that nothing of a repository's own settings runs a program: no hooks, no file system monitor,
no filters but those of the user's own configuration, no signing, and no transport, for nothing is fetched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core.environment import BASE, allowed
from remuda.core.errors import UsageError
from remuda.runtimes.base import on_path

TIMEOUT = 600.0
"""Seconds; a checkout of a large repository takes its time."""

_SETTINGS = (
    *(("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("core.untrackedCache", "false")),
    *(("commit.gpgSign", "false"), ("gc.auto", "0"), ("maintenance.auto", "false")),
    *(("submodule.recurse", "false"), ("advice.detachedHead", "false"), ("advice.addEmbeddedRepo", "false")),
    *(("core.quotePath", "false"), ("core.safecrlf", "false"), ("checkout.guess", "false")),
    ("add.ignoreErrors", "false"),
)
_NONE = 1
"""The exit code of a look for settings that finds none."""

_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
    "GIT_AUTHOR_NAME": "Remuda",
    "GIT_AUTHOR_EMAIL": "remuda@localhost",
    "GIT_COMMITTER_NAME": "Remuda",
    "GIT_COMMITTER_EMAIL": "remuda@localhost",
}
STATUS = ("--no-optional-locks", "status", "--porcelain", "-z", "--ignore-submodules=dirty")
"""What is not committed. Repositories within are asked for nothing but their commit: git would look at their
files by their own settings."""

_FILTERS = r"^filter\..*\.(clean|smudge|process)$"
_TRUSTED = ("global", "system")


class GitError(Exception):
    """Git would not; ``reason`` is the first line that it said."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Place(msgspec.Struct, frozen=True):
    """Where git works: in a folder, or in a worktree whose git folders are known, whatever the ``.git`` file
    in it says by now."""

    folder: Path
    git_dir: Path | None = None
    common: Path | None = None

    def environment(self) -> dict[str, str]:
        """What tells git so."""
        if self.git_dir is None or self.common is None:
            return {}
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_COMMON_DIR": str(self.common),
            "GIT_WORK_TREE": str(self.folder),
        }


class Git:
    """Git in one place, with one environment."""

    def __init__(self, environ: Mapping[str, str], place: Place) -> None:
        self._place = place
        self._env = {**allowed(environ, BASE), **_OURS, **place.environment()}
        found = on_path("git", self._env)
        if found is None:
            raise UsageError("git is not on the PATH", "Install it, or run without --isolated.")
        self._program = found
        self._guards: dict[str, str] | None = None

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a command that has to succeed; what it prints, without the line end."""
        done = self._run(arguments, stdin, self._guarded())
        if done.returncode != 0:
            raise GitError(_reason(done.stderr, arguments[0]))
        return os.fsdecode(done.stdout).removesuffix("\n")

    def asks(self, *arguments: str, stdin: bytes = b"") -> str | None:
        """Run a command that may fail; None where it does."""
        try:
            return self(*arguments, stdin=stdin)
        except GitError:
            return None

    def _guarded(self) -> dict[str, str]:
        """The settings that keep a repository's own programs from running, as variables: on the command line
        a name with an equals sign in it would be cut off there."""
        if self._guards is None:
            asked = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", _FILTERS)
            listed = self._run(asked, b"", {})
            if listed.returncode not in (0, _NONE):
                raise GitError(_reason(listed.stderr, "config"))
            settings = (*_SETTINGS, *_without_filters(os.fsdecode(listed.stdout)))
            self._guards = {"GIT_CONFIG_COUNT": str(len(settings))}
            for number, (name, value) in enumerate(settings):
                self._guards |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return self._guards

    def _run(
        self, arguments: tuple[str, ...], stdin: bytes, guards: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                (*self._program, *arguments),
                cwd=self._place.folder,
                env={**self._env, **guards},
                input=stdin,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitError(f"git {arguments[0]} did not end in time") from None
        except OSError as error:
            raise GitError(f"git cannot be started in {self._place.folder}: {error.strerror}") from None


def _without_filters(listed: str) -> tuple[tuple[str, str], ...]:
    """Settings that switch off each filter of a repository: its scope and name come in pairs."""
    parts = listed.split("\0")
    foreign = {
        name.rpartition(".")[0]
        for scope, name in zip(parts[::2], parts[1::2], strict=False)
        if scope not in _TRUSTED
    }
    off = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return tuple((f"{name}.{key}", value) for name in sorted(foreign) for key, value in off.items())


def _reason(stderr: bytes, command: str) -> str:
    """The first line of an error, without git's own prefixes."""
    lines = [line.strip() for line in os.fsdecode(stderr).splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "")
    return told.removeprefix("fatal: ").removeprefix("error: ") or f"git {command} failed"
