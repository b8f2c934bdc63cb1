"""The record of what Remuda has added to the settings of agent CLIs: a private file for each installation."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from remuda.core.errors import ConfigError
from remuda.core.files import private_folder, write_atomic
from remuda.hooks.settings.change import Change


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One installation: for which runtime and scope, when, what was done to which files, and which folders
    were made for them, outermost first."""

    runtime: str
    scope: str
    installed_at: str
    changes: tuple[Change, ...]
    folders: tuple[str, ...] = ()


def _encode(value: object) -> str:
    return str(value)


def _decode(kind: type, value: object) -> object:
    return Path(str(value)) if kind is Path else value


class Ledger(msgspec.Struct, frozen=True):
    """The records below a folder. An installation is known by its runtime, its scope and its files."""

    folder: Path

    def _file(self, runtime: str, scope: str, paths: Iterable[Path]) -> Path:
        files = "\0".join(sorted({str(path) for path in paths}))
        return self.folder / f"{runtime}-{scope}-{sha256(files.encode()).hexdigest()[:12]}.json"

    def load(self, runtime: str, scope: str, paths: Iterable[Path]) -> Record | None:
        """The record of an installation, if there is one."""
        path = self._file(runtime, scope, paths)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record, dec_hook=_decode)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            hint = "Move the file away; then only entries that are found by themselves are removed."
            raise ConfigError(f"{path}: {error}", hint) from None

    def store(self, record: Record, paths: Iterable[Path]) -> None:
        """Keep a record, instead of an earlier one of the same installation."""
        path = self._file(record.runtime, record.scope, paths)
        write_atomic(path, msgspec.json.format(msgspec.json.encode(record, enc_hook=_encode), indent=1))

    def forget(self, runtime: str, scope: str, paths: Iterable[Path]) -> None:
        """Drop a record, and the folder with the last one."""
        self._file(runtime, scope, paths).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def others(self, runtime: str, scope: str, paths: Iterable[Path]) -> bool:
        """Whether the runtime has an installation besides this one."""
        own = self._file(runtime, scope, paths)
        return any(path != own for path in self.folder.glob(f"{runtime}-*.json"))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process changes settings at a time."""
        handle = os.open(private_folder(self.folder.parent), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
