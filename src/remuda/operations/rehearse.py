"""Serve a scripted model on loopback, alone or around a command that is to use it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.core.environment import ENDPOINT
from remuda.core.errors import ConfigError, UsageError
from remuda.core.processes import Command
from remuda.core.terminal import hand_over
from remuda.operations.world import World
from remuda.rehearsal.scenario import ScenarioError, load_scenario
from remuda.rehearsal.server import RehearsalServer


class RehearseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to serve: a scenario file or a built-in one, on which port, recorded where."""

    scenario: str = "default"
    port: int = 0
    record: Path | None = None


@contextlib.contextmanager
def serving(request: RehearseRequest) -> Iterator[RehearsalServer]:
    """The running server."""
    try:
        scenario = load_scenario(request.scenario)
    except ScenarioError as error:
        raise ConfigError(
            error.message, "'remuda rehearse --help' shows what a scenario looks like."
        ) from None
    with contextlib.ExitStack() as held:
        try:
            server = held.enter_context(RehearsalServer(scenario, port=request.port, record=request.record))
        except OSError as error:
            raise _cannot_serve(request, error) from None
        yield server


def _cannot_serve(request: RehearseRequest, error: OSError) -> UsageError:
    """Of the two things a server needs from the system, only a file has a name."""
    if error.filename:
        return UsageError(f"cannot record to {request.record}: {error.strerror}", "Choose another --record.")
    return UsageError(f"cannot serve on port {request.port}: {error.strerror}", "Choose another --port.")


def around(world: World, request: RehearseRequest, command: tuple[str, ...]) -> int:
    """Run a command whose agents talk to the scripted model; the answer is its exit code."""
    with serving(request) as server:
        env = {**world.environ, ENDPOINT: server.url}
        return hand_over(Command(argv=command, env=env, cwd=world.cwd))
