"""What an agent finds in its file system: mounts, of which the deepest one on a path counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

import msgspec

Kind = Literal["ro", "rw", "empty", "hidden", "hidden-file", "private", "link"]
"""Read only, to be changed, an empty folder, an empty folder or file in the place of what must not be seen,
an own place that is gone afterwards, a symbolic link."""

_VISIBLE = ("ro", "rw")


class Mount(msgspec.Struct, frozen=True):
    """What is at a path inside. ``source`` is what is shown there, or where a link leads; without one, what
    is at the same path outside. ``loose``: others may replace it, and then nothing is lost that matters."""

    path: str
    kind: Kind
    source: str = ""
    loose: bool = False

    @property
    def origin(self) -> str:
        return self.source or self.path


def layered(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Mounts in the order in which they have to be made: outer ones first. Of several for one path the last
    counts; one that changes nothing is left out."""
    last = {_plain(mount.path): mount for mount in mounts}
    last = {**{pin.path: pin for pin in _pins(last)}, **last}
    ordered = [mount for _, mount in sorted(last.items(), key=lambda item: item[0].count("/"))]
    return tuple(mount for mount in ordered if _needed(mount, last))


def held(ordered: Iterable[Mount]) -> tuple[str, ...]:
    """The paths that an agent could change, or see, were they not mounted over."""
    mounts = {mount.path: mount for mount in ordered}
    return tuple(
        path
        for path, mount in mounts.items()
        if mount.kind in ("ro", "hidden", "hidden-file")
        and not mount.loose
        and (above := covering(mounts, path))
        and above.kind in (("rw",) if mount.kind == "ro" else _VISIBLE)
    )


def _pins(mounts: dict[str, Mount]) -> Iterator[Mount]:
    """The folders around what is held within a folder that may be changed: mounted themselves, they cannot be
    renamed, and something else put in their place."""
    for path, mount in mounts.items():
        above = covering(mounts, path)
        if above is None or above.kind != "rw" or mount.kind in ("rw", "link"):
            continue
        for folder in PurePosixPath(path).parents:
            if str(folder) in mounts:
                break
            yield Mount(str(folder), "rw", above.origin + str(folder).removeprefix(above.path))


def _plain(path: str) -> str:
    return str(PurePosixPath(path))


def _needed(mount: Mount, all_of_them: dict[str, Mount]) -> bool:
    """Whether a mount changes anything: hiding does so below what is visible only, linking where nothing is,
    and showing what is shown already does not."""
    above = covering(all_of_them, mount.path)
    if mount.kind in ("hidden", "hidden-file"):
        return above is not None and above.kind in _VISIBLE
    if mount.kind == "link":
        return above is None or above.kind not in _VISIBLE
    return not (
        above is not None and mount.kind == above.kind == "ro" and _in_place(mount) and _in_place(above)
    )


def _in_place(mount: Mount) -> bool:
    return mount.origin == mount.path


def covering(mounts: dict[str, Mount], path: str) -> Mount | None:
    """The mount that a path lies in, itself not counted."""
    return next((mounts[str(each)] for each in PurePosixPath(path).parents if str(each) in mounts), None)
