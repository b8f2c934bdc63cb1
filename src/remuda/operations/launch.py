"""Launch an agent interactively: the person's terminal is handed over to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda import __version__
from remuda.core import clock, log
from remuda.core.errors import NotInstalledError, RemudaError
from remuda.core.ids import ulid
from remuda.core.processes import Command
from remuda.core.terminal import hand_over
from remuda.dispatch import installation, launcher_context
from remuda.operations.agents import which
from remuda.operations.environment import interactive_environment
from remuda.operations.world import World


class LaunchRequest(msgspec.Struct, frozen=True):
    """An agent, and the arguments for its own command line."""

    agent: str | None = None
    arguments: tuple[str, ...] = ()
    cwd: Path | None = None


def launch(world: World, request: LaunchRequest) -> int:
    """Start the agent in the foreground; the answer is its exit code, 128+n when signal n killed it."""
    runtime = world.herd.get(which(world, request.agent).agent)
    found = installation.find(runtime, world.environ, world.config)
    if found is None:
        raise NotInstalledError(
            f"{runtime.title} is not installed: {installation.absence(runtime, world.environ)}",
            f"Install it with '{runtime.install}', or launch another agent ('remuda agents').",
        )
    cwd = (request.cwd or world.cwd).absolute()
    _remember(cwd, runtime.name)
    return hand_over(
        Command(
            argv=(*found.program, *request.arguments),
            env=interactive_environment(world, runtime),
            cwd=cwd,
        )
    )


def _remember(cwd: Path, name: str) -> None:
    """Persist the launcher context. A folder we may not write to is no reason not to launch."""
    root = launcher_context.repo_root(cwd)
    try:
        launcher_context.persist(root, name, ulid(), cwd, clock.now(), __version__)
    except RemudaError as error:
        log.warn("the launcher context was not written", reason=error.message)
