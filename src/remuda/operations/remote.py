"""Requests that come from another process: which world they are carried out in, and who asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core.environment import ORIGIN
from remuda.core.errors import RefusedError, UsageError
from remuda.core.identity import pid_of, remembers
from remuda.core.sql import URL
from remuda.dispatch import origin
from remuda.operations.world import World, open_world

_TAKEN = ("PATH", "LANG", "TZ", "TERM")
_TAKEN_FAMILIES = ("LC_", "REMUDA_", "AMPLIHACK_", "CLAWTOOL_")
_FIXED = ("HOME", "REMUDA_HOME", URL, "REMUDA_MARK")
_FIXED_FAMILIES = ("XDG_",)
_CAPABILITY = "REMUDA_CAPABILITY"


def world_of(cwd: str | None, given: Mapping[str, str], own: Mapping[str, str], caller: str) -> World:
    """The world of a request that a process makes, the ``caller``: that of this process, whose environment is
    ``own``, with what the request brings along, and with what shows that the asking process is part of an
    agent's session, whatever it says itself. An agent under guard brings nothing along: programs are looked
    for by it."""
    check_variables(given, own)
    if given:
        _check_free(caller)
    folder = Path(cwd or own.get("HOME", "/"))
    if not folder.is_absolute() or not _is_folder(folder):
        raise UsageError("cwd: this is no folder", "Give the absolute path of one.")
    environ = {**own, **given}
    pid = pid_of(caller)
    chain = origin.joined((environ.get(ORIGIN, ""), *origin.carried(pid)))
    world = open_world({**environ, **({ORIGIN: origin.written(chain)} if chain else {})}, folder)
    return msgspec.structs.replace(world, caller=pid)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long, or it may not be looked at
        return False


def check_variables(given: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Refuse variables that nothing here depends on, and those that would mean another state than that of
    the process that is asked."""
    for name, value in given.items():
        if "=" in name or "\0" in name + value:
            raise UsageError("environ: this is no variable", "A name has no '=', and nothing has a NUL byte.")
        if name in _FIXED or name.startswith(_FIXED_FAMILIES):
            if own.get(name) != value:
                raise UsageError(
                    f"environ: {name} is another one here", "Ask the process that serves that folder."
                )
        elif name not in _TAKEN and not name.startswith(_TAKEN_FAMILIES):
            raise UsageError(
                f"environ: {name} is not taken",
                f"Give {', '.join(_TAKEN)}, or names that begin with {', '.join(_TAKEN_FAMILIES)}.",
            )


def acting(world: World, caller: str) -> World:
    """The world for an operation that does more than look, with the variables that runtimes give to what they
    start, as the asking process has them. An agent under guard is refused: its guard judges what it calls by
    name, and would not see this."""
    names = {name for runtime in world.herd.own() for name in runtime.within}
    found = {name: value for name in names for value in origin.carried(pid_of(caller), name)}
    _check_free(caller)
    return msgspec.structs.replace(world, environ={**world.environ, **found})


def _check_free(caller: str) -> None:
    """Refuse an agent under guard, and whoever is gone: nobody can tell what they were part of."""
    if any(origin.carried(pid_of(caller), _CAPABILITY)):
        raise RefusedError(
            "an agent under guard asks for this", "Whoever started it can do it, outside of its session."
        )
    if not remembers(caller):
        raise RefusedError("whoever asks for this is gone", "Stay until the answer has come.")
