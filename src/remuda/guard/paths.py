"""Where a path leads: one resolver for shell commands and for native tools.

Parents are resolved as the kernel does, through every symbolic link, also those that the same command has
made a moment ago; the end of the path by what is done to it. Paths that do not exist yet get the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

import msgspec

from remuda.guard.globs import LONGEST, Entry, expand, is_glob
from remuda.guard.model import Context, Word, Write
from remuda.guard.places import HOMES, NOWHERE, SYSTEM, TEMPORARY, Mark, marks

Zone = Literal[
    "ground", "inside", "root", "temporary", "nowhere", "device", "system", "home", "outside", "unknown"
]
"""``ground``: the worktree itself. ``inside``: below it. ``root``: a folder that holds the worktree, a home,
or the top of the file system. ``nowhere``: /dev/null and its like."""

_MOST_LINKS = 40
_MOST_NAMES = 5000
_FLEETING = frozenset(("cwd", "exe", "fd", "map_files"))
"""What a folder of /proc says of another process than the one that will ask."""
_MOST_COPIES = 200
_UNTOLD = "\0"
"""The target of a link that nobody can tell."""


class Observer(Protocol):
    """Looks at the file system, and sees nothing where it may not look."""

    def link(self, path: str) -> str | None:
        """Where the symbolic link at a path points; None for everything else."""

    def entries(self, folder: str) -> Iterable[Entry]:
        """What lies in a folder, up to some number."""

    def folder(self, path: str) -> bool:
        """Whether a path leads to a folder."""


class Disk:
    """The file system as it is, each place looked at once."""

    def __init__(self) -> None:
        self._links: dict[str, str | None] = {}

    def link(self, path: str) -> str | None:
        import os

        if path not in self._links:
            try:
                self._links[path] = os.readlink(path)  # noqa: PTH115 - the hook does not load pathlib
            except (OSError, ValueError):
                self._links[path] = None
        return self._links[path]

    def folder(self, path: str) -> bool:
        import os

        return os.path.isdir(path)  # noqa: PTH112 - the hook does not load pathlib

    def entries(self, folder: str) -> Iterable[Entry]:
        import os
        from itertools import islice

        try:
            with os.scandir(folder) as found:
                return [(entry.name, entry.is_symlink()) for entry in islice(found, _MOST_NAMES)]
        except (OSError, ValueError):
            return []


class Place(msgspec.Struct, frozen=True):
    """Where a path leads: the path as written, the resolved one, and what lies there."""

    written: str
    path: str
    zone: Zone
    marks: frozenset[Mark] = frozenset()


NO_PLACE = Place("", "", "unknown")


class Terrain:
    """The land that a tool call is judged on: what the agent may change, whose home it is, and what
    the call itself has made so far: links, and files that nobody has read."""

    def __init__(self, context: Context, cwd: str, observer: Observer) -> None:
        self._observer = observer
        self._made: dict[str, str] = {}
        self._unpacked: set[str] = set()
        self._folders: set[str] = set()
        self._cwd = cwd
        self.downloads: set[str] = set()
        fallback = cwd if context.capability == "supervised" else None
        self.ground = self._folder(context.worktree or context.project_root or fallback)
        self.home = self._folder(context.home)
        self._protected = tuple(filter(None, map(self._folder, context.protected)))

    def places(
        self, word: Word, *, follows: bool = True, reads: bool = False, removes: bool = False
    ) -> list[Place]:
        """Every place that a word may lead to, and one that is unknown if there may be others. Where too many
        match, those who only read need not know them all."""
        if not word.values:
            folder = word.prefix.rpartition("/")[0]
            return [NO_PLACE, self.place(folder + "/")] if folder else [NO_PLACE]
        found = []
        for value in word.values:
            glob = word.pattern and value.startswith("/") and is_glob(value)
            paths, complete = expand(value, self._entries, removes=removes) if glob else ([value], True)
            found += [self.place(path, follows=follows, removes=removes) for path in paths]
            found += [] if complete or (reads and paths) else [NO_PLACE]
        return found

    def downloaded(self, word: Word) -> bool:
        """Whether a word may name a file that this call has downloaded or decoded a moment ago."""
        return bool(self.downloads) and any(
            self.place(value).path in self.downloads for value in word.values if value
        )

    def place(self, path: str, *, follows: bool = True, removes: bool = False) -> Place:
        """The place of one path; a relative one is meant where the call begins. ``removes``: what is below it
        goes with it, so a folder is as protected as what is in it."""
        if path and not path.startswith("/"):
            path = f"{self._cwd}/{path}"
        if not path or len(path) > LONGEST or "\0" in path:
            return Place(path, "", "unknown")
        plain = "/" + "/".join(_lexical(path))
        if plain in NOWHERE or plain.startswith("/dev/fd/"):
            return Place(path, plain, "nowhere")
        parts = self._resolved(path, follows)
        if parts is None:
            return Place(path, "", "unknown")
        resolved = "/" + "/".join(parts)
        found = marks(parts, at_home="/" + "/".join(parts[:-1]) == self.home)
        if self.home and within(self.home, resolved):
            found |= {"private"}
        for folder in self._protected:
            if within(resolved, folder) or (removes and within(folder, resolved)):
                found |= {"guard"}
        return Place(path, resolved, self._zone(parts), found)

    def link(self, path: Word, target: Word) -> list[Place]:
        """Remember a link that is being made; the places it leads to. Where there is another link already,
        nobody can tell which of the two will be there."""
        made = [place.path for place in self.places(path, follows=False) if place.path]
        text = target.text or _UNTOLD
        self._made |= {each: text if self._link(each) in (None, text) else _UNTOLD for each in made}
        return [self.place(each + "/") for each in made]

    def made(self, effect: Write) -> None:
        """Remember what a change leaves behind that later paths of the same call may lead through: copied
        links, the unknown content of an archive, new folders."""
        if effect.copies is None:
            if effect.how == "create":
                self._folders |= {place.path for place in self.places(effect.path)}
            return
        targets = [place.path for place in self.places(effect.path, follows=False) if place.path]
        if not effect.copies.values:
            self._unpacked |= {each + "/" if each != "/" else each for each in targets}
        for source in self.places(effect.copies, follows=False) if effect.copies.values else ():
            found, complete = self._links(source.path)
            for below, target in found:
                self._made |= {each + below: target for each in targets if self._link(each + below) is None}
            if not complete:
                self._unpacked |= {each + "/" for each in targets}

    def _links(self, path: str) -> tuple[list[tuple[str, str]], bool]:
        """The symbolic links at and below a path, by what comes behind it, and whether these are all: only so
        many places are looked at."""
        found: list[tuple[str, str]] = []
        ahead, seen = [""] if path else [], 0
        while ahead and seen < _MOST_COPIES:
            below = ahead.pop()
            seen += 1
            if (target := self._link(path + below)) is not None:
                found.append((below, target))
            else:
                ahead += [f"{below}/{name}" for name, _ in self._observer.entries(path + below)]
        return found, not ahead

    def _unsettled(self, path: str) -> bool:
        """Whether a folder may be a link that an archive has just brought: it was not there before."""
        return (
            any(path.startswith(folder) for folder in self._unpacked)
            and path not in self._folders
            and not self._observer.folder(path)
        )

    def is_all(self, place: Place) -> bool:
        """Whether a place is the glob for all that lies in the worktree."""
        return self.ground is not None and place.path == f"{self.ground}/*"

    def is_link(self, place: Place) -> bool:
        """Whether there is a symbolic link at a place itself."""
        return bool(place.path) and self._link(place.path) is not None

    def _folder(self, path: str | None) -> str | None:
        parts = self._resolved(path, True) if path and path.startswith("/") else None
        return "/" + "/".join(parts) if parts else None

    def _resolved(self, path: str, follows: bool) -> tuple[str, ...] | None:
        """The components of a path after all links, as the kernel walks it; None when nobody can tell."""
        ahead = [part for part in path.split("/") if part not in ("", ".")][::-1]
        follows = follows or path.endswith(("/", "/."))
        done: list[str] = []
        links = 0
        while ahead:
            part = ahead.pop()
            if part == "..":
                done = done[:-1]
                continue
            if len(done) >= 2 and done[0] == "proc" and part in _FLEETING:
                return None
            if len(done) >= 2 and done[0] == "proc" and part == "root":
                done = []
                continue
            done.append(part)
            if (not ahead and not follows) or done[0] == "proc":
                continue
            target = self._link("/" + "/".join(done))
            if target is None:
                if ahead and self._unpacked and self._unsettled("/" + "/".join(done)):
                    return None
                continue
            links += 1
            if links > _MOST_LINKS or len(target) > LONGEST or target == _UNTOLD:
                return None
            done = [] if target.startswith("/") else done[:-1]
            ahead += [each for each in target.split("/") if each not in ("", ".")][::-1]
        return tuple(done)

    def _link(self, path: str) -> str | None:
        return self._made[path] if path in self._made else self._observer.link(path)

    def _zone(self, parts: tuple[str, ...]) -> Zone:
        path = "/" + "/".join(parts)
        if path == self.ground:
            return "ground"
        if self._is_root(path, parts):
            return "root"
        if self.ground and within(path, self.ground):
            return "inside"
        if any(parts[: len(each)] == each for each in TEMPORARY):
            return "temporary"
        if self.home and within(path, self.home):
            return "home"
        if parts[0] == "dev":
            return "device"
        return "system" if parts[0] in SYSTEM else "outside"

    def _is_root(self, path: str, parts: tuple[str, ...]) -> bool:
        """Whether what an agent stands on lies below: its worktree, a home, the system."""
        if len(parts) < 2 and parts[:1] not in TEMPORARY:
            return True
        if len(parts) == 2 and parts[0] in HOMES:
            return True
        return any(kept is not None and within(kept, path) for kept in (self.ground, self.home))

    def _entries(self, folder: str) -> Iterable[Entry]:
        """What lies in a folder, with the links that were made there a moment ago."""
        parts = self._resolved(folder, True)
        if parts is None:
            return []
        resolved = "/" + "/".join(parts)
        made = [
            (name, True)
            for where, _, name in (path.rpartition("/") for path in self._made)
            if where == resolved
        ]
        return [*made, *self._observer.entries(resolved)]


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it, component by component."""
    return path == folder or folder == "/" or path.startswith(folder + "/")


def _lexical(path: str) -> list[str]:
    done: list[str] = []
    for part in path.split("/"):
        if part == "..":
            done = done[:-1]
        elif part not in ("", "."):
            done.append(part)
    return done
