"""Every runtime that can be named here: built in, declared in a file of the user's, or of a package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.errors import ConfigError, NotFoundError
from remuda.runtimes import registry
from remuda.runtimes.base import Runtime

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "remuda.runtimes"
"""The entry-point group in which packages register their runtimes."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_SUFFIX = ".toml"


class Survey(msgspec.Struct, frozen=True):
    """All runtimes that can be used, and why others cannot."""

    runtimes: tuple[Runtime, ...]
    problems: tuple[str, ...]


class Herd(msgspec.Struct, frozen=True):
    """The runtimes by name. Nothing is read or imported before it is asked for.

    It is a collection of names: a built-in name is found without looking anywhere, a declared one by the name
    of its file in ``folder``, and only an unknown one makes it look into the installed packages.
    """

    folder: Path

    def __contains__(self, name: object) -> bool:
        return name in registry.names() or name in self._declared() or name in self._packaged()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*registry.names(), *self._declared(), *self._packaged()}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def get(self, name: str) -> Runtime:
        """The runtime of this name; a built-in one wins over a file, and a file over a package."""
        if name in registry.names():
            return registry.get(name)
        if path := self._declared().get(name):
            from remuda.runtimes import declared

            return declared.load(path)
        if entry := self._packaged().get(name):
            return _load(entry)
        raise NotFoundError(f"there is no runtime named {name!r}", f"Known runtimes: {', '.join(self)}.")

    def survey(self) -> Survey:
        """All runtimes. One that cannot be used is a problem to tell, never one for the others."""
        problems = [*self._unread(), *self._hidden()]
        return self._survey(self, problems)

    def own(self) -> tuple[Runtime, ...]:
        """The built-in and the declared runtimes, found without looking into the installed packages."""
        return self._survey(sorted({*registry.names(), *self._declared()}), []).runtimes

    def _survey(self, names: Iterable[str], problems: list[str]) -> Survey:
        found: list[Runtime] = []
        for name in names:
            try:
                found.append(self.get(name))
            except ConfigError as error:
                problems.append(error.message)
        return Survey(tuple(found), tuple(problems))

    def _files(self) -> list[str]:
        try:
            return sorted(path.name for path in self.folder.iterdir() if path.name.endswith(_SUFFIX))
        except OSError:
            return []

    def _declared(self) -> dict[str, Path]:
        stems = (name.removesuffix(_SUFFIX) for name in self._files())
        return {stem: self.folder / f"{stem}{_SUFFIX}" for stem in stems if _NAME.fullmatch(stem)}

    def _packaged(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points

        return {entry.name: entry for entry in entry_points(group=GROUP) if _NAME.fullmatch(entry.name)}

    def _unread(self) -> Iterator[str]:
        """Files that are not even looked at."""
        for file in self._files():
            stem = file.removesuffix(_SUFFIX)
            if not _NAME.fullmatch(stem):
                yield f"{self.folder / file}: a runtime's name has small letters, digits, - and _ only"
            elif stem in registry.names():
                yield f"{self.folder / file}: {stem} is built in; give the file another name"

    def _hidden(self) -> Iterator[str]:
        """Packages that lost their name to something stronger."""
        for name, entry in self._packaged().items():
            if name in registry.names() or name in self._declared():
                yield f"the package's runtime {name} ({entry.value}) is hidden by another of that name"


def _load(entry: EntryPoint) -> Runtime:
    """A package's runtime; its code is somebody else's, so anything can go wrong in it."""
    place = f"the runtime {entry.name} of a package ({entry.value})"
    hint = "Update or remove that package."
    try:
        runtime = entry.load()
    except Exception as error:
        raise ConfigError(f"{place} cannot be loaded: {type(error).__name__}: {error}", hint) from None
    if not isinstance(runtime, Runtime) or runtime.name != entry.name:
        raise ConfigError(f"{place} is not a Runtime of that name", hint)
    return runtime
