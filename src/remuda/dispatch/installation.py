"""Where a runtime's program is, and which version it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.config import Config
from remuda.core.environment import BASE, allowed
from remuda.core.files import write_atomic
from remuda.runtimes.base import Runtime
from remuda.runtimes.failures import old_node

if TYPE_CHECKING:
    from remuda.core.children import Answer

VERSION_TIMEOUT = 20.0
CACHE = "versions.json"


class Version(msgspec.Struct, frozen=True):
    """A program's version, and what is wrong with it or kept it from being told."""

    number: str | None
    trouble: str = ""


class Installation(msgspec.Struct, frozen=True):
    """A program as it was found: the command that starts it."""

    program: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.program[0]


def find(runtime: Runtime, environ: Mapping[str, str], config: Config) -> Installation | None:
    """Look for a runtime's program, or for the one that the configuration names instead."""
    settings = config.runtimes.get(runtime.name)
    binary = settings.binary if settings and settings.binary else runtime.binary
    program = runtime.locate(str(Path(binary).expanduser()), environ)
    return Installation(program) if program else None


def absence(runtime: Runtime, environ: Mapping[str, str]) -> str:
    """Why a runtime's program was not found."""
    return runtime.absence(environ) or f"{runtime.binary} is not on PATH"


def probe_environment(runtime: Runtime, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for questions such as ``--version``: no secrets, no self-update."""
    home = (runtime.home_variable,) if runtime.home_variable else ()
    return {**allowed(environ, (*BASE, *home, "COPILOT_CACHE_HOME")), **runtime.quiet}


def fingerprint(path: str) -> str:
    """Changes when the program does."""
    real = Path(path).resolve()
    stat = real.stat()
    return f"{real}:{stat.st_mtime_ns}:{stat.st_size}"


def known_version(runtime: Runtime, installation: Installation, cache_folder: Path) -> str | None:
    """The installed version, if it has been asked for since the program last changed."""
    if runtime.built_in:
        return runtime.verified_version
    return _read_cache(cache_folder / CACHE).get(fingerprint(installation.path))


async def version(
    runtime: Runtime, installation: Installation, environ: Mapping[str, str], cache_folder: Path
) -> Version:
    """The installed version; remembered until the program changes."""
    if known := known_version(runtime, installation, cache_folder):
        return Version(known, _outdated(runtime, known))
    from remuda.core.children import ask
    from remuda.core.processes import Command

    command = Command(
        argv=(*installation.program, *runtime.version_arguments),
        env=probe_environment(runtime, environ),
        cwd=Path("/"),
    )
    answer = await ask(command, VERSION_TIMEOUT)
    found = re.search(runtime.version_pattern, answer.stdout) if answer and answer.returncode == 0 else None
    if found is None:
        asked = " ".join((runtime.binary, *runtime.version_arguments))
        return Version(None, f"'{asked}' gives no version{because(runtime, answer)}")
    cache, number = cache_folder / CACHE, found.group()
    entry = {fingerprint(installation.path): number}
    write_atomic(cache, msgspec.json.encode({**_read_cache(cache), **entry}))
    return Version(number, _outdated(runtime, number))


def because(runtime: Runtime, answer: Answer | None) -> str:
    """The end of a sentence on a program that failed: the reason, where that is known."""
    reason = old_node(answer.stderr, runtime.node) if answer and runtime.node else None
    return f": {reason}" if reason else ""


def _outdated(runtime: Runtime, number: str) -> str:
    """That a version is older than what Remuda works with, if it is."""
    if version_tuple(number) >= version_tuple(runtime.minimum_version):
        return ""
    return f"version {number} is older than {runtime.minimum_version}: update with '{runtime.install}'"


def _read_cache(cache: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(cache.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def version_tuple(version: str) -> tuple[int, ...]:
    """A version's numbers, for comparing."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
