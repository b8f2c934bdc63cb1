"""What is asked of a run, and what was decided about it before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.runtimes.base import Permission, Runtime


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for one agent. ``session`` continues an earlier session; a limit of 0 means none.

    A ``capability`` makes it a guarded run: what the agent does is judged by that, and by the ``worktree``
    that it may change (the working folder, unless another is named). ``unproven`` runs it even though the
    guard was not seen to hold on the installed version.
    """

    prompt: str
    agent: str | None = None
    model: str | None = None
    capability: str | None = None
    worktree: Path | None = None
    branch_prefix: str | None = None
    unproven: bool = False
    permission: Permission = "ask"
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    cwd: Path | None = None
    session: str | None = None
    timeout: float | None = None
    idle_timeout: float | None = None
    env: Mapping[str, str] = {}
    extra: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """Who runs, where, and in which session."""

    runtime: Runtime
    cwd: Path
    session: str
    runtime_session: str
    resume: bool
