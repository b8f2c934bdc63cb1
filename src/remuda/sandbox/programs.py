"""What a program consists of on disk: its folder, what it links to, the interpreter that runs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

_DEEPEST = 4
"""How many interpreters of interpreters are followed."""

_TOOLCHAINS = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOROOT", "RUSTUP_HOME")
"""Variables that name a folder of tools."""


def toolchains(environ: Mapping[str, str]) -> Iterator[Path]:
    """The folders in which tools are looked for."""
    for place in environ.get("PATH", "").split(os.pathsep):
        if place.startswith("/"):
            yield _collection(Path(place))
    for name in _TOOLCHAINS:
        if environ.get(name, "").startswith("/"):
            yield Path(environ[name])


def parts_of(program: str, environ: Mapping[str, str], deep: int = 0) -> Iterator[Path]:
    """The folders that a program needs to be started."""
    path = Path(program)
    if not path.is_absolute():
        found = shutil.which(program, path=environ.get("PATH", ""))
        if found is None:
            return
        path = Path(found)
    for each in _chain(path):
        yield from _home_of(each)
    if deep < _DEEPEST and (interpreter := _interpreter(path)):
        yield from parts_of(interpreter, environ, deep + 1)


def _chain(path: Path) -> Iterator[Path]:
    """A path and what it leads to, link by link."""
    for _ in range(16):
        yield path
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    yield path.resolve()


def _collection(folder: Path) -> Path:
    """A folder of programs, or of the packages that it links to."""
    return folder.parent if folder.parent.name == "node_modules" else folder


def _home_of(path: Path) -> Iterator[Path]:
    """The package that a program's file belongs to: everything that it may load from beside it."""
    names = path.parts
    if "node_modules" in names:
        yield Path(*names[: names.index("node_modules") + 1])
        return
    prefix = path.parent.parent
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        yield prefix
        yield from _base_of(settings)
    elif path.parent.name == "bin" and (prefix / "lib").is_dir():
        own = prefix.name == ".local"  # of a user: beside the programs, the data of all of them
        yield from (path.parent, prefix / "lib") if own else (prefix,)
    else:
        yield path.parent


def _base_of(settings: Path) -> Iterator[Path]:
    """The Python that a virtual environment was made from."""
    for line in settings.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip().startswith("/"):
            yield Path(value.strip()).resolve().parent


def _interpreter(path: Path) -> str | None:
    """What the first line of a script says that runs it."""
    try:
        with path.open("rb") as stream:
            line = stream.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    words = os.fsdecode(line[2:].strip()).split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None
