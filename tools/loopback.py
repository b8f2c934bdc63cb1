"""Runs a command in a network namespace that has a loopback interface and nothing else.

Usage: python tools/loopback.py COMMAND [ARGUMENT…]
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import sys

_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41
_INSIDE = "--inside"


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP_RUNNING))


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == [_INSIDE]:
        bring_up_loopback()
        os.execvp(arguments[1], arguments[1:])
    unshare = shutil.which("unshare")
    if unshare is None:
        sys.exit("tools/loopback.py needs 'unshare' (util-linux): agent CLIs never run with a network here")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    os.execv(unshare, [unshare, "--net", *user, sys.executable, __file__, _INSIDE, *arguments])


if __name__ == "__main__":
    main()
