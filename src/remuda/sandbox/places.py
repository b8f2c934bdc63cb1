"""The places of an agent CLI's own, as mounts: what it writes, and what it finds and may not change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from remuda.core.files import private_folder, write_atomic
from remuda.runtimes.cell import Cell, Place
from remuda.sandbox.mounts import Kind, Mount
from remuda.sandbox.profile import UnresolvableError


def own_places(cell: Cell, environ: Mapping[str, str], home: Path) -> Iterator[Mount]:
    """Everything that a cell names, made where it has to be there and is not."""
    kinds: dict[Kind, tuple[Place, ...]] = {"rw": cell.state, "ro": cell.reads, "private": cell.private}
    found = [each for kind, places in kinds.items() for each in _located(places, kind, environ)]
    found.sort(key=lambda each: len(each[1].parts))
    around: dict[Path, Kind] = {}
    for place, path, kind in found:
        if home.resolve().is_relative_to(path.resolve()):
            raise UnresolvableError(f"the agent's own folder, {path}, is your home folder or above it")
        _make(place, path)
        within = _within(path, around)
        if within == "rw" and kind == "ro":
            _check_held(path)
        if path.exists():
            yield _mounted(path, kind, within)
        if place.kind == "folder":
            around[path] = kind


def _located(
    places: tuple[Place, ...], kind: Kind, environ: Mapping[str, str]
) -> Iterator[tuple[Place, Path, Kind]]:
    for place in places:
        path = place.at(environ)
        if path is not None:
            root = Path(str(path).removesuffix(place.below))
            found = sorted(root.glob(place.below)) if "*" in place.below else [path]
            yield from ((place, Path(os.path.normpath(each)), kind) for each in found)


def _make(place: Place, path: Path) -> None:
    if place.kind == "folder":
        private_folder(path)
    elif place.blank is not None and not os.path.lexists(path):
        private_folder(path.parent)
        write_atomic(path, place.blank.encode())


def _within(path: Path, around: Mapping[Path, Kind]) -> Kind | None:
    """What may be done in the folder of the program's own that a path lies in."""
    return next((around[folder] for folder in path.parents if folder in around), None)


def _check_held(path: Path) -> None:
    """Refuse a link, wherever it leads: where it could be replaced, nothing could be held."""
    if path.is_symlink():
        raise UnresolvableError(
            f"{path} is a link, which an agent could replace by settings of its own",
            f"Put the file itself there: cp --remove-destination {os.path.realpath(path)} {path}",
        )


def _mounted(path: Path, kind: Kind, within: Kind | None) -> Mount:
    """A place as it is seen inside. Nothing can be mounted on a link that is seen itself: what it leads to
    has to be there then."""
    real = os.path.realpath(path)
    if kind == "private":
        return Mount(str(path), kind)
    return Mount(real, kind) if path.is_symlink() and within is not None else Mount(str(path), kind, real)
