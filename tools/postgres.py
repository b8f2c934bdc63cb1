"""Makes sure that there is a PostgreSQL whose server tests can start, with the system's own packages.

Usage: python tools/postgres.py     install it if it is missing, and print the folder of its programs;
                                    exit 1 when that cannot be done
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from packages import install

NAMES = {"dnf": "postgresql-server", "zypper": "postgresql-server", "brew": "postgresql@17"}

PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/libexec/postgresql*",
    "/usr/lib/postgresql*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
"""Where systems put a server's programs that are not on the PATH."""


def programs() -> Path | None:
    """The folder with ``initdb`` and ``postgres``, the newest where there are several."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else []
    for place in PLACES:
        found += sorted(Path("/").glob(place.lstrip("/")), key=_version, reverse=True)
    return next((each for each in found if (each / "initdb").exists() and (each / "postgres").exists()), None)


def _version(folder: Path) -> int:
    return int("0" + "".join(letter for letter in str(folder) if letter.isdigit()))


def main() -> int:
    if programs() is None:
        print("Installing PostgreSQL …", file=sys.stderr)
        install("postgresql", NAMES)
    found = programs()
    if found is None:
        print("The tests need PostgreSQL's initdb and postgres; install them and try again.", file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
