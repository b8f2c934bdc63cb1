"""A guarded turn of Codex: its app server, in which nothing runs until the guard has answered.

``untrusted`` is the one approval policy under which Codex asks about every command and every file. A hook
stands behind it, and tells the model why. What asks nobody is switched off.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Literal

from remuda.guard.model import Capability
from remuda.runtimes.base import Guard, Turn

POLICY = "untrusted"
"""Over the connection only: as a setting Codex no longer takes it."""

_HOOK_SECONDS = 10
_ADMINISTRATED = Path("/etc/codex")
_WRITING: frozenset[Capability] = frozenset(("builder", "merger", "supervised"))
_SILENT = (
    *("unified_exec_tty", "multi_agent", "multi_agent_v2", "view_image", "image_generation", "goals"),
    *("apps", "plugins", "tool_suggest", "skill_mcp_dependency_install", "browser_use", "computer_use"),
    *("memories", "code_mode", "daemon_auto_start"),
)
"""Tools that ask nobody, and what brings such tools along. Without a terminal, nobody can type into a program
that was allowed to run."""

Sandbox = Literal["read-only", "danger-full-access"]


def sandbox_for(capability: Capability) -> Sandbox:
    """Codex's own sandbox. Whoever only reads is held by it as well. Whoever writes is not: Codex runs an
    approved command that fails in the sandbox a second time without it."""
    return "danger-full-access" if capability in _WRITING else "read-only"


def hook_command(guard: Guard) -> str:
    """How Codex is to call the hook program: it gives the text to a shell."""
    return shlex.quote(str(guard.hooks / "pre_tool_use"))


def settings(turn: Turn, guard: Guard) -> tuple[str, ...]:
    """Settings that win over the user's: the sandbox, what is off, the hook, and that nothing in the folder
    counts. Codex makes a folder trusted by working in it, unless it is said to be untrusted."""
    program = json.dumps(hook_command(guard))
    hook = f'{{type="command",command={program},timeout={_HOOK_SECONDS}}}'
    untrusted = ",".join(f'{json.dumps(folder)}={{trust_level="untrusted"}}' for folder in _folders(turn.cwd))
    values = (
        f'sandbox_mode="{sandbox_for(guard.capability)}"',
        'web_search="disabled"',
        f"projects={{{untrusted}}}",
        f"hooks.PreToolUse=[{{hooks=[{hook}]}}]",
        *(f"features.{feature}=false" for feature in _SILENT),
    )
    return tuple(part for value in values for part in ("-c", value))


def _folders(cwd: Path) -> list[str]:
    """The folder and all above it, as they are called and as they really are: whichever Codex takes for the
    top of the project is among them."""
    real = Path(os.path.realpath(cwd))
    return list(dict.fromkeys(str(path) for start in (cwd, real) for path in (start, *start.parents)))


def objection(turn: Turn) -> str | None:
    """Rules that let commands run unasked. Nothing keeps the app server from reading them; what else stands
    in the way is found out over the connection, before the prompt is sent."""
    home = turn.environ.get("CODEX_HOME") or Path(turn.environ.get("HOME") or "~").expanduser() / ".codex"
    for folder in (Path(home) / "rules", _ADMINISTRATED / "rules"):
        for file in sorted(folder.rglob("*.rules")):
            if _has_rules(file):
                return f"the rules in {file} may let commands run that nobody is asked about"
    return None


def _has_rules(file: Path) -> bool:
    """Whether there is more in a file of rules than comments; one that cannot be read may say anything."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return True
    return any(line.strip() and not line.lstrip().startswith("#") for line in lines)
