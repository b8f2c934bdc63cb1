"""Starts an agent behind its walls: ``PYTHON -I -S /path/to/launch.py SPEC PROGRAM [ARGUMENT…]``.

It is a file to be run by its path, and short: what is run that way is compiled every time.
"""

import sys


def main() -> None:
    """Start it, stand by, and end as it ends."""
    sys.path.append(__file__.rpartition("/remuda/sandbox/")[0])
    from remuda.sandbox.standby import run

    run(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
