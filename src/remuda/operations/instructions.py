"""The project's own instructions (AGENTS.md and its like), for programs that leave them out under guard.

A guarded run keeps the repository's settings out, and with them some CLIs lose the prose that lies beside.
That is text for the model, not settings: it is given to the model in another way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

LARGEST = 128 * 1024
"""Bytes of a file beyond which it is no instructions."""


def project_instructions(cwd: Path, names: tuple[str, ...]) -> str:
    """What the files of these names say, from the top of the repository down to the folder; in each folder
    the first one counts. A link that leads out of the repository is passed over."""
    folder = Path(os.path.realpath(cwd))
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    below = [each for each in (folder, *folder.parents) if each.is_relative_to(top)]
    return "\n\n".join(text for each in reversed(below) for text in _first(each, names, top))


def _first(folder: Path, names: tuple[str, ...], top: Path) -> Iterator[str]:
    for name in names:
        if text := _text(folder / name, top):
            yield f"Instructions of this project, from {name}:\n\n{text}"
            return


def _text(path: Path, top: Path) -> str | None:
    try:
        real = path.resolve(strict=True)
        found = real.stat()
        if not real.is_relative_to(top) or not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return None
        return real.read_bytes().decode("utf-8", "replace").replace("\0", "").strip() or None
    except (OSError, RuntimeError):
        return None
