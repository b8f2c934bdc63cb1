"""Names that a request may hold, for a shell to complete: nothing is looked at but the record."""

from __future__ import annotations

from remuda.operations.world import World


def agents(world: World) -> list[str]:
    """The agents that there are."""
    return [*world.roster]


def tags(world: World) -> list[str]:
    """The labels that agents carry."""
    return sorted({tag for each in world.config.agents.values() for tag in each.tags})


def profiles(world: World) -> list[str]:
    """The sandboxes that an agent can be put into."""
    from remuda.sandbox.profile import profiles

    return [each.name for each in profiles(world.config.sandboxes)]


def peers(world: World) -> list[str]:
    """The sessions that can be messaged."""
    from remuda.operations.peer.messaging import listed

    return [each.name for each in listed(world, all_=False).peers]
