"""What shows that an agent CLI has a login: names of variables, and files that are there, never their
content."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core.environment import allowed

ANY_KEY = (
    *("*KEY*", "*TOKEN*", "*SECRET*", "*CREDENTIAL*", "*_BASE", "*BASE_URL*", "*_HOST", "*_ENDPOINT*"),
    *("*PROFILE*", "*_PROJECT*"),
)
"""Variables that may lead a program for many vendors of models to one of them."""

OTHERS = (".claude/.credentials.json", ".codex/auth.json", ".aws", ".config/gcloud")
"""Logins of other programs, which such a program may use."""


class Logins(msgspec.Struct, frozen=True, kw_only=True):
    """Any one of these may be a login, so that only a program without all of them has none. ``variables`` are
    names, with ``*`` as in file names. ``home`` is the program's own folder below the user's, where its
    variable for that is not set; the ``files`` lie below it, and those ``elsewhere`` below the user's."""

    variables: tuple[str, ...]
    home: str
    files: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    def seen(self, environ: Mapping[str, str], home_variable: str | None) -> bool:
        """Whether there is one, by this environment."""
        if any(allowed(environ, self.variables).values()):
            return True
        user = Path(environ.get("HOME") or "/")
        own = environ.get(home_variable or "") or user / self.home
        return any(Path(own, name).exists() for name in self.files) or any(
            (user / name).exists() for name in self.elsewhere
        )
