"""Which engine builds the walls of a profile here, and what stands in the way. Pure: what this machine can do
is looked up elsewhere (``abilities``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from remuda.sandbox.cgroups import Hierarchy
from remuda.sandbox.profile import Limits, Profile, UnresolvableError

EngineName = Literal["bubblewrap", "landlock"]
ENGINES: tuple[EngineName, ...] = ("bubblewrap", "landlock")

LANDLOCK_NEEDED = 6
"""The first version of Landlock's interface that keeps an agent from signalling processes outside."""

CONTROLLERS = {"memory": "memory", "processes": "pids", "cpu_shares": "cpu"}
"""The controller that each limit needs."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do: ``bubblewrap`` is its program, ``fault`` why it does not work; ``setuid``: it
    has rights of its own, and so nobody can get into its networks; ``landlock`` is the version of the
    interface, 0 where there is none; ``groups`` are the control groups that we may make. ``masked``: for root
    there can be a user of no rights inside."""

    bubblewrap: str | None = None
    fault: str = ""
    setuid: bool = False
    landlock: int = 0
    groups: Mapping[str, Hierarchy] = {}
    masked: bool = False


def choose(profile: Profile, able: Abilities) -> EngineName:
    """The first engine that enforces all of a profile. Where there is none, the profile is refused."""
    reasons = {engine: tuple(obstacles(profile, able, engine)) for engine in ENGINES}
    for engine, found in reasons.items():
        if not found:
            return engine
    said = "; ".join(f"{engine}: {', '.join(found)}" for engine, found in reasons.items())
    raise UnresolvableError(
        f"the sandbox {profile.name} cannot be enforced here ({said})", "See 'remuda sandbox check'."
    )


def obstacles(profile: Profile, able: Abilities, engine: EngineName) -> Iterator[str]:
    """Why an engine cannot enforce a profile."""
    if engine == "bubblewrap":
        yield from _bubblewrap(profile, able)
    else:
        yield from _landlock(profile, able)
    for name in wanted(profile.limits):
        if CONTROLLERS[name] not in able.groups:
            yield f"the limit of {name} needs the control group '{CONTROLLERS[name]}', which we may not make"


def _bubblewrap(profile: Profile, able: Abilities) -> Iterator[str]:
    if able.bubblewrap is None:
        yield "'bwrap' is not installed"
    elif able.fault:
        yield able.fault
    elif able.setuid and profile.network != "open":
        yield "'bwrap' is setuid here, so that no way out of its network can be made"


def _landlock(profile: Profile, able: Abilities) -> Iterator[str]:
    if able.landlock < LANDLOCK_NEEDED:
        yield f"the kernel has version {able.landlock} of its interface, and {LANDLOCK_NEEDED} is needed"
    if profile.network != "open":
        yield "it does not bound the network"


def wanted(limits: Limits) -> dict[str, int]:
    """The limits that take a control group, by name."""
    given = {
        "memory": limits.memory,
        "processes": limits.processes,
        "cpu_shares": limits.cpu_shares,
    }
    return {name: amount for name, amount in given.items() if amount}
