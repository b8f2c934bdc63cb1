"""Pi under guard: nothing is loaded but what Remuda brings: no other extension, which could change a call
behind our back, no settings of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.runtimes.base import Turn

FLAGS = ("--no-extensions", "--no-approve")
"""Neither the user's extensions nor anything of the project's, whether it was trusted before or not."""

_SHELLS = ("bash", "sh")


class _Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings that change where Pi writes by itself, or what a shell command means."""

    session_dir: object = None
    shell_command_prefix: object = None
    shell_path: object = None


def _settings(file: Path) -> _Settings | None:
    """What a settings file says; None when it is there and cannot be understood."""
    try:
        text = file.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return _Settings()
    except (OSError, UnicodeError):
        return None
    try:
        return msgspec.json.decode(text, type=_Settings)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _home(environ: Mapping[str, str]) -> Path:
    """Where Pi keeps the user's settings."""
    home = environ.get("HOME", "/")
    named = environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return Path(f"{home}{named[1:]}" if named == "~" or named.startswith("~/") else named)


def objection(turn: Turn) -> str | None:
    """A project may name the folder of sessions although it is not trusted. The user's own settings may put
    something in front of every command, or have it read by another shell than it is judged for."""
    project = turn.cwd / ".pi" / "settings.json"
    brought = _settings(project)
    if brought is None or brought.session_dir is not None:
        return f"{project} says where Pi keeps its sessions, or cannot be read"
    own = _home(turn.environ) / "settings.json"
    kept = _settings(own)
    if kept is None:
        return f"{own} cannot be read"
    if kept.shell_command_prefix:
        return f"shellCommandPrefix in {own} puts something in front of every command"
    if kept.shell_path and Path(str(kept.shell_path)).name not in _SHELLS:
        return f"shellPath in {own} names a shell that the guard does not know"
    return None
