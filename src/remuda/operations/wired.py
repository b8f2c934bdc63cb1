"""Where the guard stands in the settings of a runtime's CLI: what installing, removing and looking share."""

from __future__ import annotations

from pathlib import Path

import msgspec

from remuda.core.errors import ConfigError, RefusedError
from remuda.hooks import staging
from remuda.hooks.events import FILES
from remuda.hooks.settings import change, disk
from remuda.hooks.settings.edits import Edit, ListEntry, Trouble
from remuda.hooks.settings.ledger import Ledger, Record
from remuda.operations.world import World
from remuda.runtimes.base import Runtime
from remuda.runtimes.wiring import Scope, Site, Wiring

RECORDS = "guard"
"""The folder of the records, below the data folder."""


class Wired(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime at a site: its wiring, the edits that are needed, and the record of an installation."""

    runtime: Runtime
    wiring: Wiring
    site: Site
    edits: tuple[Edit, ...]
    record: Record | None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that the edits are in, each once."""
        return tuple(dict.fromkeys(edit.path for edit in self.edits))

    def read(self, path: Path) -> bytes | None:
        """A file's content. What belongs to a project has to be in it; consents are the user's."""
        in_project = self.site.scope == "project" and path in self.paths
        return disk.read(path, self.site.project if in_project else None)

    def known(self, path: Path) -> change.Change | None:
        """What was done to a file earlier."""
        changes = self.record.changes if self.record else ()
        return next((each for each in changes if each.path == str(path)), None)


def ledger(world: World) -> Ledger:
    """The records of all installations."""
    return Ledger(world.folders.data / RECORDS)


def project_of(cwd: Path) -> Path:
    """The top folder of the project that a folder is in: of its Git work tree, or else itself."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), cwd)


def why_not(runtime: Runtime) -> str:
    """Why a runtime's CLI cannot be made to call the guard."""
    feature = runtime.features.get("hooks")
    note = f": {feature.note}" if feature and feature.note else ""
    return f"{runtime.title} has no hook that would hold{note}"


def wired(world: World, runtime: Runtime, scope: Scope) -> Wired:
    """A runtime at its site in this world; an error where it has none."""
    wiring = runtime.wiring
    if wiring is None:
        hint = "Only 'remuda run --capability …' can hold it, or nothing: 'remuda runtimes' tells."
        raise RefusedError(why_not(runtime), hint)
    if scope not in wiring.scopes:
        raise RefusedError(f"{runtime.title} has no hooks of a project", "Install it for the user.")
    home = world.folders.data
    hooks = {event: staging.expected_path(home, runtime.name, event, world.herd) for event in FILES}
    site = Site(scope=scope, environ=world.environ, project=project_of(world.cwd), hooks=hooks)
    edits = wiring.edits(site)
    record = ledger(world).load(runtime.name, scope, (edit.path for edit in edits))
    return Wired(runtime=runtime, wiring=wiring, site=site, edits=edits, record=record)


def consents(each: Wired, contents: dict[Path, bytes | None]) -> tuple[Edit, ...]:
    """The edits by which a user agrees to the hooks, as these stand in the given contents."""
    try:
        listed = [
            (contents.get(edit.path) or b"", edit) for edit in each.edits if isinstance(edit, ListEntry)
        ]
        found = [change.position(data, edit) for data, edit in listed if edit.path.suffix == ".json"]
    except Trouble:
        return ()
    positions = tuple(position for position in found if position is not None)
    return each.wiring.consent(each.site, positions) if len(positions) == len(each.edits) else ()


def planned(path: Path, each: Wired, edits: tuple[Edit, ...]) -> disk.Target:
    """A file with the edits that belong into it."""
    data = each.read(path)
    try:
        after, done = change.put(
            str(path), data, [edit for edit in edits if edit.path == path], each.known(path)
        )
    except Trouble as trouble:
        raise disk.malformed(path, trouble) from None
    return disk.Target(path=path, before=data, after=after, change=done)


def unplanned(path: Path, each: Wired, edits: tuple[Edit, ...]) -> disk.Target:
    """A file without the edits that may be in it."""
    data = each.read(path)
    if data is None:
        return disk.Target(path=path, before=None, after=None, change=None)
    try:
        after = change.take(data, [edit for edit in edits if edit.path == path], each.known(path))
    except Trouble as trouble:
        raise disk.malformed(path, trouble) from None
    return disk.Target(path=path, before=data, after=after, change=None)


def holds(edit: Edit) -> bool | None:
    """Whether an edit is in place; None if its file cannot be understood."""
    try:
        data = disk.read(edit.path)
        return data is not None and change.holds(data, edit)
    except (Trouble, ConfigError):
        return None
