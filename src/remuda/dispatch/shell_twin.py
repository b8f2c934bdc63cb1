"""The resolver for places where no Python is: a POSIX shell program that gives the same answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_PROGRAM = re.compile(r"[A-Za-z0-9._+/-]+")


def shell_snippet(names: Collection[str], binaries: Mapping[str, str], default: str) -> str:
    """The program ``resolve.sh`` for these agents; ``binaries`` are those whose presence can be looked up.

    Run as a file it prints the active agent's name; sourced it defines ``remuda_active_agent [DIR]``.
    """
    for name in (*names, *binaries, default):
        _require(_NAME, name)
    for program in binaries.values():
        _require(_PROGRAM, program)
    folder = Path(__file__).parent
    values = {
        "@names@": " ".join(names),
        "@programs@": " ".join(f"{name}={program}" for name, program in binaries.items()),
        "@default@": default,
        "@parser@": folder.joinpath("launcher_context.awk").read_text("utf-8"),
    }
    template = folder.joinpath("resolve.sh").read_text("utf-8")
    return re.sub(r"@[a-z]+@", lambda match: values[match[0]], template)


def is_plain(program: str) -> bool:
    """Whether a program's name can stand in a shell program."""
    return bool(_PROGRAM.fullmatch(program))


def _require(pattern: re.Pattern[str], text: str) -> None:
    """Only plain words are put into a shell program."""
    if not pattern.fullmatch(text):
        raise ValueError("a name or program has characters that cannot stand in a shell program")
