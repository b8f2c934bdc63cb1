"""From a decided sandbox to what the launcher is told."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from remuda.sandbox import bwrap, cgroups
from remuda.sandbox.engine import CONTROLLERS, Abilities, EngineName, wanted
from remuda.sandbox.fences import rules_of
from remuda.sandbox.mounts import Mount, held, layered
from remuda.sandbox.network import Outlets
from remuda.sandbox.profile import Profile
from remuda.sandbox.spec import Network, Spec, encoded

_HOOKS = "hooks.sock"
_RESIDENT = "serve.sock"
_LATER = 3.0
"""Seconds by which the launcher lets those come first who watch over an agent and can say why it ended."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was decided of one agent's sandbox. ``resident`` is the folder of the process that
    answers hook programs, where there are some, and ``asked`` the one in which they look for it inside."""

    profile: Profile
    able: Abilities
    outlets: Outlets
    mounts: tuple[Mount, ...]
    cwd: Path
    scratch: Path
    resident: Path | None = None
    asked: Path | None = None
    terminal: bool = False


def built(engine: EngineName, site: Site) -> bytes:
    """What the launcher is told, as a file's content."""
    limits = {CONTROLLERS[name]: amount for name, amount in wanted(site.profile.limits).items()}
    return encoded(
        Spec(
            command=_bubblewrap(site) if engine == "bubblewrap" else (),
            held=held(layered(site.mounts)) if engine == "bubblewrap" else (),
            rules=rules_of(site.mounts) if engine == "landlock" else (),
            inside=_inside() if site.terminal else (),
            terminal=site.terminal,
            network=_network(site.outlets),
            hooks=(str(site.scratch / _HOOKS), str(site.resident / _RESIDENT)) if site.resident else None,
            cgroups=cgroups.groups(dict(site.able.groups), limits),
            timeout=site.profile.limits.timeout and site.profile.limits.timeout + _LATER,
        )
    )


def _network(ways: Outlets) -> Network | None:
    return None if ways.shared else Network(ways.ports, ways.loopback, ways.egress)


def _bubblewrap(site: Site) -> tuple[str, ...]:
    assert site.able.bubblewrap is not None
    asking = (Mount(str(site.asked / _RESIDENT), "rw", str(site.scratch / _HOOKS)),) if site.asked else ()
    walls = bwrap.Walls(
        mounts=(*site.mounts, *asking),
        cwd=site.cwd,
        network=site.outlets.shared,
        terminal=site.terminal,
        masked=site.able.masked,
    )
    return (site.able.bubblewrap, *bwrap.arguments(walls))


def _inside() -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py")))
