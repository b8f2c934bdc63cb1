"""Launch an agent interactively: the person's terminal is handed over to it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda import __version__
from remuda.core import clock, log
from remuda.core.errors import NotInstalledError, RefusedError, RemudaError
from remuda.core.ids import ulid
from remuda.core.processes import Command
from remuda.core.terminal import hand_over
from remuda.dispatch import installation, launcher_context
from remuda.dispatch.agents import Agent
from remuda.operations.agents import which
from remuda.operations.environment import interactive_environment
from remuda.operations.world import World
from remuda.sandbox.profile import resolve


class LaunchRequest(msgspec.Struct, frozen=True):
    """An agent, and the arguments for its own command line."""

    agent: str | None = None
    arguments: tuple[str, ...] = ()
    cwd: Path | None = None


def launch(world: World, request: LaunchRequest) -> int:
    """Start the agent in the foreground; the answer is its exit code, 128+n when signal n killed it."""
    agent = _agent(world, request.agent)
    _check_walls(world, agent)
    runtime = world.herd.get(agent.runtime)
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
            env=interactive_environment(world, agent, runtime),
            cwd=cwd,
        )
    )


def _agent(world: World, name: str | None) -> Agent:
    """Whom a person means: an agent, or the only one of a runtime."""
    agent = world.roster.get(which(world, name).agent)
    if agent.disabled:
        raise NotInstalledError(f"{agent.name} is disabled", f"agents.{agent.name}.disabled says so.")
    return agent


def _check_walls(world: World, agent: Agent) -> None:
    """A terminal that is handed over has no walls around it: who always has some is not started in it."""
    if agent.sandbox is not None and resolve(agent.sandbox, world.config.sandboxes).walls:
        raise RefusedError(
            f"{agent.name} runs in the sandbox {agent.sandbox}, and a launch has no walls",
            f"Use 'remuda session start NAME --agent {agent.name} --mode tmux', and attach to that.",
        )


def _remember(cwd: Path, name: str) -> None:
    """Persist the launcher context. A folder we may not write to is no reason not to launch."""
    root = launcher_context.repo_root(cwd)
    try:
        launcher_context.persist(root, name, ulid(), cwd, clock.now(), __version__)
    except RemudaError as error:
        log.warn("the launcher context was not written", reason=error.message)
