"""Settings files on the disk: read once, then all of them changed or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remuda.core.errors import ConfigError
from remuda.core.files import write_atomic
from remuda.hooks.settings.change import Change
from remuda.hooks.settings.edits import Trouble


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is and as it is to be (None: not there), and what was done to it then."""

    path: Path
    before: bytes | None
    after: bytes | None
    change: Change | None


def read(path: Path, within: Path | None = None) -> bytes | None:
    """A file's content; None where there is none. In a project it has to be a file of that project: a link
    could lead into somebody's home."""
    real = path.resolve()
    if within is not None and not real.is_relative_to(within.resolve()):
        raise ConfigError(
            f"{path} leads out of the project, to {real}", "Nothing was changed; remove the symbolic link."
        )
    try:
        return real.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", "Nothing was changed.") from None


def malformed(path: Path, trouble: Trouble) -> ConfigError:
    """The error that names a file and the place in it."""
    place = f", line {trouble.line}" if trouble.line else ""
    place += f", column {trouble.column}" if trouble.column else ""
    return ConfigError(
        f"{path}{place}: {trouble.why}", "Nothing was changed; put that right, then try again."
    )


def missing_folders(paths: Iterable[Path]) -> tuple[str, ...]:
    """The folders that have to be made for these files, outermost first."""
    folders = {parent for path in paths for parent in path.resolve().parents if not parent.is_dir()}
    return tuple(sorted(map(str, folders)))


def carry_out(targets: Iterable[Target]) -> None:
    """Change all files; if one cannot be changed, those before it are put back."""
    done: list[Target] = []
    try:
        for target in targets:
            done.append(target)
            _write(target.path, target.after)
    except BaseException:
        for target in done:
            with contextlib.suppress(OSError):
                _write(target.path, target.before)
        raise


def _write(path: Path, data: bytes | None) -> None:
    if data is None:
        path.resolve().unlink(missing_ok=True)
    elif not _is(path, data):
        write_atomic(path, data)


def _is(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def remove_folders(folders: Iterable[str]) -> None:
    """Remove folders that were made, innermost first, as far as nothing is in them."""
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106 - a folder that is gone or in use stays as it is
