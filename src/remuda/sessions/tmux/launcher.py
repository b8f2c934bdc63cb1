"""Becomes the program of a pane.

Run as ``python -I -S launcher.py FILE``, where FILE is private and holds what no argument may show and no
shell may touch: the folder, the number of arguments, the arguments, and the whole environment, with NUL
between them.
The file is removed before the program starts. Only cheap modules are imported.
"""

import os
import signal
import sys


def packed(cwd: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> bytes:
    """What :func:`main` reads."""
    pairs = [name + b"=" + value for name, value in env.items()]
    return b"\0".join([cwd, str(len(argv)).encode(), *argv, *pairs])


def main(path: str) -> int:
    """Read, remove, become; a number is the exit code of having failed."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - pathlib would double the start time
            cwd, count, *rest = stream.read().split(b"\0")
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return 126  # the session was stopped before it had begun
    argv, pairs = rest[: int(count)], rest[int(count) :]
    env = dict(pair.split(b"=", 1) for pair in pairs)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"remuda: cannot start {os.fsdecode(argv[0])}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
