"""The sandbox profiles that there are, what they mean in a folder, and whether they can be enforced here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda.core.dispatchconfig import Network, SandboxPathConfig
from remuda.core.errors import NotFoundError, RemudaError
from remuda.operations.world import World
from remuda.sandbox.abilities import look
from remuda.sandbox.engine import ENGINES, Abilities, EngineName, choose, obstacles
from remuda.sandbox.profile import BUILT_IN, Limits, Profile, profiles
from remuda.sandbox.scene import resolved


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A profile: ``engine`` is what enforces it here; without one, ``reasons`` tell why nothing does, and it
    is refused."""

    name: str
    description: str
    built_in: bool
    extends: str | None
    walls: bool
    workspace: str
    network: Network
    allow: tuple[str, ...]
    paths: tuple[SandboxPathConfig, ...]
    limits: Limits
    env_allow: tuple[str, ...]
    env_deny: tuple[str, ...]
    enforceable: bool
    engine: EngineName | None
    reasons: tuple[str, ...] = ()


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine: whether it works here, and what it says of itself."""

    name: EngineName
    works: bool
    detail: str


class Sandboxes(msgspec.Struct, frozen=True, kw_only=True):
    """All profiles."""

    sandboxes: tuple[Shown, ...]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do, and what follows for each profile."""

    engines: tuple[Engine, ...]
    limits: tuple[str, ...]
    sandboxes: tuple[Shown, ...]


def listed(world: World) -> Sandboxes:
    """Every profile, and whether it can be enforced here."""
    able = look(world.environ)
    return Sandboxes(sandboxes=tuple(_shown(world, each, able) for each in profiles(world.config.sandboxes)))


def show(world: World, name: str) -> Shown:
    """One profile."""
    found = {each.name: each for each in profiles(world.config.sandboxes)}
    if name not in found:
        raise NotFoundError(f"there is no sandbox profile named {name!r}", f"There are: {', '.join(found)}.")
    return _shown(world, found[name], look(world.environ))


def checked(world: World) -> Checked:
    """What can be enforced on this machine, and why something cannot."""
    able = look(world.environ)
    return Checked(
        engines=tuple(_engine(name, able) for name in ENGINES),
        limits=("timeout", *sorted(able.groups)),
        sandboxes=tuple(_shown(world, each, able) for each in profiles(world.config.sandboxes)),
    )


def _engine(name: EngineName, able: Abilities) -> Engine:
    wrong = tuple(obstacles(BUILT_IN["workspace"], able, name))
    if wrong:
        return Engine(name=name, works=False, detail=", ".join(wrong))
    detail = able.bubblewrap if name == "bubblewrap" else f"interface version {able.landlock}"
    return Engine(name=name, works=True, detail=detail or "")


def _shown(world: World, profile: Profile, able: Abilities) -> Shown:
    engine, reasons = _enforced(world, profile, able)
    return Shown(
        name=profile.name,
        description=profile.description,
        built_in=profile.name in BUILT_IN,
        extends=profile.extends,
        walls=profile.walls,
        workspace=profile.workspace,
        network=profile.network,
        allow=tuple(map(str, profile.allow)),
        paths=profile.paths,
        limits=profile.limits,
        env_allow=profile.passes,
        env_deny=profile.drops,
        enforceable=not reasons,
        engine=engine,
        reasons=reasons,
    )


def _enforced(world: World, profile: Profile, able: Abilities) -> tuple[EngineName | None, tuple[str, ...]]:
    """The engine that enforces a profile, or why none does. A profile without walls needs none."""
    if not profile.walls:
        return None, ()
    try:
        engine = choose(profile, able)
    except RemudaError as error:
        return None, (error.message,)
    wrong = tuple(reason for rule in profile.paths if (reason := _wrong(rule, world)))
    return (None, wrong) if wrong else (engine, ())


def _wrong(rule: SandboxPathConfig, world: World) -> str | None:
    """What keeps a rule of a profile from being applied in this folder."""
    try:
        path: Path = resolved(rule.path, world.cwd, world.environ)
    except RemudaError as error:
        return error.message
    return None if rule.mode == "none" or path.exists() else f"{path} is not there"
