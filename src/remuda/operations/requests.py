"""What is asked of a run, and what was decided about it before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from remuda.core.dispatchconfig import Policy
from remuda.core.errors import UsageError
from remuda.dispatch.agents import Agent
from remuda.runtimes.base import Permission, Runtime

Span = Annotated[float, msgspec.Meta(ge=0)]
"""Seconds, as many as one likes."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt for one agent. ``session`` continues an earlier session; a limit of 0 means none.

    A ``capability`` makes it a guarded run: what the agent does is judged by that, and by the ``worktree``
    that it may change (the working folder, unless another is named). ``unproven`` runs it even though the
    guard was not seen to hold on the installed version.

    ``agent`` is an agent's name or a runtime's, ``tag`` finds one by its label, ``policy`` is how it is
    picked. ``resume_elsewhere``: an agent that fails in the middle hands over to the next. ``sandbox`` is a
    profile around the whole agent; the one that is none needs ``unsafe_yes``. ``isolated``: in a git worktree
    of its own. ``unattended``: nobody is there who could have been asked. ``nested``: the agent that asks may
    be called itself. ``queue_within`` is how many seconds to wait where limits hold it back. ``origin`` is
    the chain of agents that ask (``REMUDA_ORIGIN``), where another process carries the request out.
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
    timeout: Span | None = None
    idle_timeout: Span | None = None
    env: Mapping[str, str] = {}
    extra: tuple[str, ...] = ()
    tag: str | None = None
    policy: Policy | None = None
    resume_elsewhere: bool = False
    sandbox: str | None = None
    unsafe_yes: bool = False
    isolated: bool = False
    unattended: bool = False
    nested: bool = False
    queue_within: Span | None = None
    origin: str = ""


def check_options(request: RunRequest) -> None:
    """Refuse what no program can be given, limits that would never be reached, and what would be passed over
    in silence."""
    texts = (request.model, request.system_prompt, request.append_system_prompt, request.branch_prefix)
    named = (text for pair in request.env.items() for text in pair)
    if any("\0" in text for text in (*filter(None, texts), *request.extra, *named)):
        raise UsageError("an option or a variable holds a NUL byte", "Remove it: no program can receive it.")
    for given in (request.timeout, request.idle_timeout, request.queue_within):
        if given is not None and not given >= 0:
            raise UsageError("a time limit is a number of seconds, or 0 for none", "Give such a number.")
    if request.capability is None and (request.worktree or request.branch_prefix):
        raise UsageError(
            "a worktree and a branch prefix are bounds of a guarded run, and this is none",
            "Add --capability, or use --cwd for the folder to work in.",
        )


class Plan(msgspec.Struct, frozen=True):
    """Who runs, where, and in which session."""

    agent: Agent
    runtime: Runtime
    cwd: Path
    session: str
    runtime_session: str
    resume: bool


Announce = Callable[[Plan], None]
"""Told of every agent that is about to be started, before anything is; what it raises keeps it from that."""
