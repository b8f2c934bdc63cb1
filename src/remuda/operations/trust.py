"""The folders in which agents may act unasked while nobody watches, and the record of what ran like that."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from remuda.core import clock
from remuda.core.errors import ConfigError, NotFoundError, RefusedError, UsageError
from remuda.core.files import PRIVATE, locked, write_atomic
from remuda.operations.isolation import records_folder
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World


class Trusted(msgspec.Struct, frozen=True):
    """A folder that is trusted with all below it, by its real path."""

    path: str
    since: str


class Trust(msgspec.Struct, frozen=True):
    """The answer of ``remuda trust list``."""

    trusted: tuple[Trusted, ...] = ()


class Unattended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of an unattended run; nothing of what was asked."""

    time: str
    uid: int
    agent: str
    runtime: str
    session: str
    folder: str
    permission: str
    capability: str = ""
    sandbox: str = ""


def place(world: World) -> Path:
    """Where unattended runs are on record."""
    return world.folders.state / "unattended.jsonl"


def check(world: World, request: RunRequest, cwd: Path) -> None:
    """Refuse an unattended run that asks nobody, in a folder that nobody has trusted. Arguments of the
    program's own may say so, too."""
    if not request.unattended or (request.permission != "bypass" and not request.extra):
        return
    folder = _checkout(world, cwd.resolve())
    if not any(folder.is_relative_to(each.path) for each in listed(world).trusted):
        raise RefusedError(
            f"{folder} is not trusted yet: nobody would be asked before the agent acts there",
            f"Run 'remuda trust add {folder}' if you want that, or let the agent ask: --permission ask, "
            "and no arguments of its own.",
        )


def _checkout(world: World, folder: Path) -> Path:
    """The folder that a person knows: of a worktree of ours, the repository that it was made from."""
    ours = world.folders.worktrees.resolve()
    if not folder.is_relative_to(ours):
        return folder
    from remuda.worktrees.records import Records

    _, session, *_ = *folder.relative_to(ours).parts, "", ""
    found = Records(records_folder(world)).find(session)
    return Path(found.repository).resolve() if found else folder


def record(world: World, request: RunRequest, plan: Plan) -> None:
    """Put an unattended run on record, before it starts."""
    from remuda.hooks import audit

    entry = Unattended(
        time=clock.rfc3339(clock.now()),
        uid=os.getuid(),
        agent=plan.agent.name,
        runtime=plan.runtime.name,
        session=plan.session,
        folder=str(plan.cwd),
        permission=request.permission,
        capability=request.capability or "",
        sandbox=request.sandbox or plan.agent.sandbox or "",
    )
    audit.store(place(world), entry)


def listed(world: World) -> Trust:
    """The trusted folders; a file that others could have written is none."""
    path = world.folders.trusted_file
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            data = stream.read()
    except FileNotFoundError:
        return Trust()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise RefusedError(
            f"{path} belongs to another user or can be changed by others",
            f"Look into it, then run 'chmod 600 {path}', or remove it.",
        )
    try:
        return msgspec.json.decode(data, type=Trust)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConfigError(f"{path} is malformed", "Remove it, and trust the folders again.") from None


def add(world: World, folder: Path) -> Trusted:
    """Trust a folder with all below it."""
    real = folder.resolve()
    if not real.is_dir():
        raise NotFoundError(f"{real} is not a folder", "Name an existing one.")
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise UsageError("the path of this folder is not UTF-8", "Move it to one that is.") from None
    with locked(_lock(world)):
        before = listed(world).trusted
        known = next((each for each in before if each.path == str(real)), None)
        if known is not None:
            return known
        new = Trusted(str(real), clock.rfc3339_seconds(clock.now()))
        _write(world, (*before, new))
    return new


def remove(world: World, folder: Path) -> Trusted:
    """Trust a folder no longer."""
    real = str(folder.resolve())
    with locked(_lock(world)):
        before = listed(world).trusted
        gone = next((each for each in before if each.path in (real, str(folder))), None)
        if gone is None:
            raise NotFoundError(f"{real} is not among the trusted folders", "See 'remuda trust list'.")
        _write(world, tuple(each for each in before if each is not gone))
    return gone


def _lock(world: World) -> Path:
    return world.folders.config / ".trusted.lock"


def _write(world: World, trusted: tuple[Trusted, ...]) -> None:
    ordered = sorted(trusted, key=lambda each: each.path)
    data = msgspec.json.format(msgspec.json.encode(Trust(tuple(ordered))), indent=1)
    write_atomic(world.folders.trusted_file, data + b"\n", PRIVATE)
