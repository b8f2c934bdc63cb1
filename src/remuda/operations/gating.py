"""The gate of a request: everything that policy may object to, before it is routed anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from remuda.core.errors import RefusedError, RemudaError, of_system
from remuda.dispatch import gate, origin
from remuda.dispatch.agents import Agent
from remuda.dispatch.gate import Objection
from remuda.operations import sandboxing
from remuda.operations.agentsecrets import secrets_for
from remuda.operations.guarding import check_capability
from remuda.operations.requests import RunRequest
from remuda.operations.world import World


def pass_gate(world: World, request: RunRequest, agent: Agent) -> None:
    """Let a request for an agent pass, or raise RefusedError. Nothing is started or changed by it."""
    objection = gate.first_objection(
        {
            "danger": lambda: gate.danger(request.sandbox or agent.sandbox, request.unsafe_yes),
            "sandbox": lambda: _told(lambda: sandboxing.check(world, request, agent)),
            "secrets": lambda: _told(lambda: secrets_for(world, agent, world.herd.get(agent.runtime))),
            "capability": lambda: _told(lambda: check_capability(world, request, agent.runtime)),
            "limits": lambda: _told(lambda: _limits(world, agent)),
            "trust": lambda: _told(lambda: _trust(world, request)),
        }
    )
    if objection is not None:
        asked = request.agent in (None, agent.name, agent.runtime)
        raise RefusedError(f"{'' if asked else f'{agent.name}: '}{objection.message}", objection.hint)


def _told(look: Callable[[], object]) -> Objection | None:
    """What a check objects to. Whatever else goes wrong in it is an objection, too."""
    try:
        look()
    except OSError as error:
        return Objection(of_system(error).message)
    except RemudaError as error:
        return Objection(error.message, error.hint)
    return None


def _limits(world: World, agent: Agent) -> None:
    """Limits that cannot be read are none that could be kept."""
    given = agent.limits or world.config.dispatch.limits
    if given.rate:
        from remuda.dispatch.limits import parse_rate

        parse_rate(given.rate)


def _trust(world: World, request: RunRequest) -> None:
    """A session that is continued is judged by the folder that it works in."""
    if request.unattended:
        from remuda.operations import trust
        from remuda.operations.routing import earlier, folder_of

        before = None if request.cwd else earlier(world, request)
        trust.check(world, request, Path(before.cwd) if before else folder_of(world, request))


def check_origin(world: World, request: RunRequest, agent: Agent) -> None:
    """Refuse an agent that would be called from within itself, or too deep."""
    origin.check(
        origin.here(world.environ, request.origin),
        agent.name,
        world.herd.get(agent.runtime),
        world.environ,
        most=world.config.dispatch.max_depth,
        nested=request.nested,
    )


def with_origin(world: World, request: RunRequest) -> RunRequest:
    """A request that is carried out by another process, with the chain of those who ask."""
    chain = origin.here(world.environ, request.origin)
    return msgspec.structs.replace(request, origin=origin.written(chain))
