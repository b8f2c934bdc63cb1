"""Makes sure that there is a bubblewrap that builds sandboxes, with the system's own packages.

Usage: python tools/bubblewrap.py     install it if it is missing; exit 1 when it cannot be made to work
"""

from __future__ import annotations

import os
import sys

from packages import install

from remuda.sandbox.abilities import look


def main() -> int:
    if look(os.environ).bubblewrap is None:
        print("Installing bubblewrap …", file=sys.stderr)
        install("bubblewrap")
    able = look(os.environ)
    if able.bubblewrap and not able.fault:
        return 0
    reason = able.fault or "'bwrap' is not there"
    print(f"The tests need bubblewrap; install it and try again ({reason}).", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
