"""Sandbox profiles: what an agent may see, change, reach and use up. Decided here, enforced elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from remuda.core.dispatchconfig import Network, SandboxConfig, SandboxPathConfig
from remuda.core.errors import ConfigError, RefusedError
from remuda.sandbox.hosts import Host, host

DANGER = "danger-full-access"
"""The profile that is none: no walls. It takes a word of its own to be run with."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_MEMORY = re.compile(r"(\d{1,12})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_LEAST_MEMORY = 16 * 2**20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole agent may use up; 0 means any amount."""

    timeout: float = 0
    memory: int = 0
    cpu_shares: int = 0
    processes: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile: ``workspace`` is what may be done in the working folder, ``paths`` are rules on top,
    ``allow`` who may be reached beside the model, ``passes`` and ``drops`` patterns of variables. Without
    ``walls`` nothing is enforced."""

    name: str
    description: str
    workspace: Literal["ro", "rw"] = "rw"
    paths: tuple[SandboxPathConfig, ...] = ()
    network: Network = "open"
    allow: tuple[Host, ...] = ()
    limits: Limits = Limits()
    passes: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    extends: str | None = None
    walls: bool = True


BUILT_IN: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(name="workspace", description="changes its working folder only; the network is open"),
        Profile(
            name="read-only",
            description="changes nothing but its own state; the network is open",
            workspace="ro",
        ),
        Profile(
            name="offline",
            description="changes its working folder only; reaches nobody but its model",
            network="none",
        ),
        Profile(
            name=DANGER,
            description="no walls at all: may do whatever you may; needs --unsafe-yes",
            walls=False,
        ),
    )
}


class UnresolvableError(RefusedError):
    """A profile that is asked for and cannot be had. Nothing runs without it instead."""

    def __init__(self, message: str, hint: str = "See 'remuda sandbox list'.") -> None:
        super().__init__(f"{message}; refusing to run without a sandbox", hint)


def resolve(name: str, own: Mapping[str, SandboxConfig]) -> Profile:
    """The profile of that name: a built-in one, or one of the user's own."""
    check_names(own)
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in own:
        raise UnresolvableError(f"there is no sandbox profile named {name!r}")
    return extended(name, own[name])


def profiles(own: Mapping[str, SandboxConfig]) -> tuple[Profile, ...]:
    """All of them, the built-in ones first."""
    check_names(own)
    return (*BUILT_IN.values(), *(extended(name, config) for name, config in own.items()))


def check_names(own: Mapping[str, SandboxConfig]) -> None:
    """Refuse a configuration that gives a built-in name another meaning, or a name that is none."""
    for name in own:
        if name in BUILT_IN:
            raise ConfigError(
                f"sandboxes.{name}: this profile is built in and keeps its meaning",
                "Choose another name and set 'extends'.",
            )
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"sandboxes.{name!r}: this is no name for a profile",
                "Use up to 32 small letters, digits, dots, dashes or underscores.",
            )


def extended(name: str, config: SandboxConfig) -> Profile:
    """A profile of the user's own, on top of the built-in one that it names."""
    base = BUILT_IN[config.extends]
    network = config.network
    policy = network.policy if network else base.network
    listed = network.allow if network else ()
    if listed and policy in ("open", "none"):
        raise ConfigError(
            f"sandboxes.{name}.network: a list of hosts has no meaning with the policy '{policy}'",
            "Set the policy to 'allowlist' or 'loopback', or take the list away.",
        )
    return Profile(
        name=name,
        description=config.description or base.description,
        workspace=base.workspace,
        paths=config.paths,
        network=policy,
        allow=tuple(_host(f"sandboxes.{name}.network.allow", entry) for entry in listed),
        limits=_limits(name, config),
        passes=config.env.allow,
        drops=config.env.deny,
        extends=config.extends,
    )


def _limits(name: str, config: SandboxConfig) -> Limits:
    given = config.limits
    return Limits(
        timeout=given.timeout,
        memory=_bytes(f"sandboxes.{name}.limits.memory", given.memory) if given.memory is not None else 0,
        cpu_shares=given.cpu_shares or 0,
        processes=given.process_count or 0,
    )


def _host(key: str, text: str) -> Host:
    """An entry of a list of hosts."""
    entry = host(text)
    if entry is None:
        raise ConfigError(
            f"{key}: {text!r} is no host", "Write 'example.org', '.example.org' or 'HOST:PORT'."
        )
    return entry


def _bytes(key: str, text: str) -> int:
    """An amount of memory: a number and a unit, such as ``512MB`` or ``2G``."""
    match = _MEMORY.fullmatch(text.strip())
    amount = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if amount < _LEAST_MEMORY:
        raise ConfigError(f"{key}: {text!r} is no amount of memory", "Write it as '512MB' or '2GB'.")
    return amount
