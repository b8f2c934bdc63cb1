"""The first step inside a sandbox that has a terminal: ``PYTHON -I -S /path/to/inside.py PROGRAM […]``.

The agent gets a process group of its own in the foreground, so that keys that send signals reach it and not
the walls around it.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Take the terminal and become the program."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.tcsetpgrp(0, os.getpgrp())
    for number in (signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - a shell has no business here


if __name__ == "__main__":
    main()
