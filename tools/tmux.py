"""Makes sure that there is a tmux that sessions can use, with the system's own packages.

Usage: python tools/tmux.py     install it if it is missing or too old; exit 1 when that cannot be done
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from packages import install

from remuda.sessions.tmux.client import version
from remuda.sessions.tmux.errors import OLDEST


def usable() -> bool:
    """Whether there is a tmux that is new enough."""
    program = shutil.which("tmux")
    if program is None:
        return False
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    found = version(said.stdout)
    return said.returncode == 0 and (found is None or found >= OLDEST)


def main() -> int:
    if not usable():
        print("Installing tmux …", file=sys.stderr)
        install("tmux")
    if usable():
        return 0
    print(f"The tests need tmux {OLDEST[0]}.{OLDEST[1]} or newer; install it and try again.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
