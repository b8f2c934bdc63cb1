"""Starts the tmux program: which one, with which socket and environment, and what its words mean.

Neither ``core.processes`` nor its mark is used here: the server that a client starts must outlive us, and a
client ends by itself when we do, because its input does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from remuda.core.errors import RefusedError, StartError
from remuda.core.files import private_folder
from remuda.sessions.tmux import errors

TIMEOUT = 20.0
"""Seconds that a call may take; tmux answers within milliseconds."""

LONGEST_PATH = 100
"""The longest path of a socket, in bytes, that every system takes."""

LONGEST_BASE = 60
"""The longest path of a folder for temporary files that leaves room for the rest of a short path."""

_VERSION = re.compile(r"(\d+)\.(\d+)")
_OWN = ("TMUX", "TMUX_PANE", "TMUX_TMPDIR")


def version(said: str) -> tuple[int, int] | None:
    """The version in what ``tmux -V`` says; None for one that is built from the sources' newest state."""
    found = _VERSION.search(said) if "openbsd" not in said else None
    return (int(found[1]), int(found[2])) if found else None


class Client:
    """The tmux program with Remuda's own socket; it never meets the user's server or settings."""

    def __init__(self, socket: Path, environ: Mapping[str, str]) -> None:
        self.socket = socket
        self._environ = dict(environ)
        self._argv: tuple[str, ...] | None = None

    def argv(self) -> tuple[str, ...]:
        """The program and the arguments that every call begins with; at first, its version is checked."""
        if self._argv is None:
            program = shutil.which("tmux", path=self._environ.get("PATH") or os.defpath)
            if program is None:
                raise errors.missing()
            self._check(program)
            self._argv = (program, "-u", "-f", "/dev/null", "-S", str(address(self.socket)))
        return self._argv

    def environment(self) -> dict[str, str]:
        """What tmux itself gets: nothing of ours that could end up in a pane."""
        return {"PATH": self._environ.get("PATH") or os.defpath, "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8"}

    def terminal_environment(self) -> dict[str, str]:
        """What tmux gets when it takes over the user's terminal: it must know that, and of no outer tmux."""
        return {name: value for name, value in self._environ.items() if name not in _OWN}

    def run(
        self,
        words: Sequence[str],
        stdin: bytes = b"",
        *,
        session: str = "",
        pane: str = "",
        timeout: float = TIMEOUT,
    ) -> str:
        """One call, and what it printed. No word may hold anything that others must not see."""
        done = self._started((*self.argv(), *words), stdin, timeout)
        if done.returncode:
            raise errors.told(done.stderr.decode("utf-8", "replace"), session, pane)
        return done.stdout.decode("utf-8", "replace")

    def _check(self, program: str) -> None:
        done = self._started((program, "-V"), b"", TIMEOUT)
        said = done.stdout.decode("utf-8", "replace").strip().removeprefix("tmux ")
        found = version(said)
        if done.returncode or (found is not None and found < errors.OLDEST):
            raise errors.too_old(said or "of unknown version")

    def _started(
        self, argv: Sequence[str], stdin: bytes, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                argv,
                input=stdin,
                capture_output=True,
                env=self.environment(),
                cwd="/",
                start_new_session=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise errors.no_answer(timeout) from None
        except OSError as error:
            raise StartError(f"cannot start tmux: {error.strerror}") from None


def address(socket: Path) -> Path:
    """A path of the socket that is short enough: its own or, where that is too long, one through a link to
    its folder, in a folder for temporary files that is ours alone."""
    if len(os.fsencode(socket)) <= LONGEST_PATH:
        return socket
    folder = socket.parent.absolute()
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    base = Path(tempfile.gettempdir())
    if len(os.fsencode(base)) > LONGEST_BASE:
        base = Path("/tmp")  # noqa: S108 - the folder below it is made ours and checked
    link = _own_folder(base / f"remuda-{os.getuid()}") / name
    with contextlib.suppress(FileExistsError):
        link.symlink_to(folder)
    if link.readlink() != folder:
        raise RefusedError(f"{link} leads elsewhere", "Remove it and try again.")
    return link / socket.name


def _own_folder(path: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(
            f"{path} is not a private folder of yours", "Remove it, or set TMPDIR to another folder."
        )
    return path


def forget_address(socket: Path) -> None:
    """Remove the short path, if there is one."""
    short = address(socket)
    if short != socket:
        short.parent.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            short.parent.parent.rmdir()


def private_place(socket: Path) -> None:
    """Make sure that the socket's folder is ours and nobody else's."""
    folder = private_folder(socket.parent)
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise RefusedError(
            f"{folder} belongs to somebody else", "Set XDG_RUNTIME_DIR or REMUDA_HOME to a folder of yours."
        )
    if found.st_mode & 0o077:
        folder.chmod(0o700)
