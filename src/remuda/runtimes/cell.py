"""What an agent CLI needs inside a sandbox: the part of the runtime contract that a wall is built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec


class Place(msgspec.Struct, frozen=True):
    """A folder or file of a program's own: ``below`` the folder that a variable names, or else below the
    ``usual`` one in the user's home, if there is one. ``*`` in it stands for all that there are. ``blank``
    is what a file that must be there begins with."""

    usual: str | None
    variable: str | None = None
    below: str = ""
    kind: Literal["folder", "file"] = "folder"
    blank: str | None = None

    def at(self, environ: Mapping[str, str]) -> Path | None:
        """Where it is for this environment; None where that names no absolute path."""
        home = environ.get("HOME", "")
        named = environ.get(self.variable, "") if self.variable else ""
        if named == "~" or named.startswith("~/"):
            named = f"{home}{named[1:]}"
        if not named and self.usual is not None and home:
            named = f"{home}/{self.usual}"
        return Path(named, self.below) if named.startswith("/") else None


def works_inside(_command: tuple[str, ...]) -> str | None:
    """Whatever the program is started as, it does its work itself."""
    return None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What must be there for a program to work behind walls; of the user's home it finds nothing else.

    ``state`` is what it writes, ``reads`` what it finds and may not change: its settings name programs that
    run without walls the next time. Of a ``private`` folder it has an empty one, gone afterwards: outside, it
    holds ways to processes without walls. One place may lie within another; the innermost counts. A folder
    that is missing is made, and so is a file with a ``blank``; another file is there if it is there outside.
    ``env`` is set inside, and so is ``trusting`` in a terminal whose user consents to trust: it has the
    program trust its folder for this once, for it could not write that down. ``hosts`` are what it talks to
    where no endpoint is given, by the vendor's word; a leading dot stands for a host and all below it.
    ``objection`` says which command would have its work done by somebody outside of the walls; it is refused.
    ``verified``: the runtime's verified version was seen to work inside.
    """

    state: tuple[Place, ...] = ()
    reads: tuple[Place, ...] = ()
    private: tuple[Place, ...] = ()
    env: Mapping[str, str] = {}
    trusting: Mapping[str, str] = {}
    hosts: tuple[str, ...] = ()
    objection: Callable[[tuple[str, ...]], str | None] = works_inside
    verified: bool = False
    notes: tuple[str, ...] = ()
