"""Agents that are at their own limit are left alone for a while; one that answers is not any more."""

from __future__ import annotations

from contextlib import closing

from remuda.core import clock, log
from remuda.core.errors import RemudaError
from remuda.core.events import Failure
from remuda.dispatch.agents import Agent
from remuda.operations.world import World

COOLS = frozenset({"rate_limit", "quota"})


async def note_end(world: World, agent: Agent, failure: Failure | None) -> None:
    """Put on record what the end of a call tells about an agent. A database that does not answer is no reason
    to fail."""
    if failure is not None and failure.kind not in COOLS:
        return
    import asyncio

    try:
        await asyncio.to_thread(_note, world, agent, failure)
    except RemudaError as error:
        log.warn("a cooldown was not put on record", agent=agent.name, reason=error.message)


def _note(world: World, agent: Agent, failure: Failure | None) -> None:
    from remuda.dispatch import cooldown
    from remuda.dispatch.resets import until_from

    with closing(world.shared()) as database:
        if failure is None:
            cooldown.clear(database, agent.name)
            return
        now = clock.now()
        until = until_from(failure.message, now) or now + world.config.dispatch.cooldown
        cooldown.note(database, agent.name, failure.kind, failure.message, until)
