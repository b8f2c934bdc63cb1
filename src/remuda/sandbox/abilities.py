"""Looks at what this machine can do to keep an agent in."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from remuda.sandbox import bwrap, cgroups, landlock
from remuda.sandbox.engine import CONTROLLERS, Abilities

_PATIENCE = 10.0
_TRIAL = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--die-with-parent"),
    *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
)
_PLACES = "/usr/local/bin:/usr/bin:/bin"
"""Where nobody but an administrator puts a program; the walls are not taken from a project's folder."""


def look(environ: Mapping[str, str]) -> Abilities:
    """What can be done here. Bubblewrap is tried, for there are many ways to forbid it."""
    if not sys.platform.startswith("linux"):
        return Abilities(fault="there are no walls but on Linux")
    program = shutil.which("bwrap", path=_PLACES) or shutil.which("bwrap", path=environ.get("PATH", ""))
    masked = program is not None and os.geteuid() == 0 and not _fault(program, *bwrap.MASK)
    return Abilities(
        bubblewrap=program,
        fault=_fault(program) if program and not masked else "",
        setuid=bool(program and os.geteuid() != 0 and Path(program).stat().st_mode & stat.S_ISUID),
        landlock=landlock.version(),
        groups=_groups(),
        masked=masked,
    )


def _fault(program: str, *options: str) -> str:
    """Why bubblewrap builds no walls here; empty where it does."""
    try:
        tried = subprocess.run(
            [program, *options, *_TRIAL, "--", program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
            env={},
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"'bwrap' cannot be run ({type(error).__name__})"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.strip().splitlines()
    return said[-1][:200] if said else f"'bwrap' ends with exit code {tried.returncode}"


def _groups() -> dict[str, cgroups.Hierarchy]:
    try:
        mounts, own = (Path("/proc/self", name).read_text() for name in ("mountinfo", "cgroup"))
    except OSError:
        return {}
    found = cgroups.hierarchies(mounts, own)
    return {
        name: place
        for name, place in found.items()
        if name in CONTROLLERS.values() and cgroups.usable(name, place)
    }
