"""Starts a worker that is there for as long as there is work, detached from whoever needs it."""

from __future__ import annotations

import os
import subprocess
import sys

from remuda.core.environment import ORIGIN, without
from remuda.core.files import PRIVATE, private_folder
from remuda.core.reaper import MARK
from remuda.dispatch.origin import parsed
from remuda.operations.world import World
from remuda.runtimes import registry

ON_DEMAND = "--on-demand"
"""The option that makes it end when there is nothing left to do, and be there only once."""

LOG = "worker.log"
"""What those that are started like this have to say on standard error."""

_LARGEST_LOG = 1 << 20

_ASIDE = "import os, sys\nos.fork() or os.execv(sys.argv[1], sys.argv[1:])"
"""Starts a program and ends, so that it is nobody's child: who called us may live for long."""


def start(world: World) -> None:
    """Start one, unless it is there already: that is for itself to find out. It has a session of its own, no
    handle and no mark of ours, and no trace of an agent that we may be called by: other tasks will be its own
    as well. What it has to complain of is in a file."""
    place = private_folder(world.folders.state)
    log = os.open(place / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    try:
        if os.fstat(log).st_size > _LARGEST_LOG:
            os.truncate(log, 0)
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ASIDE, sys.executable, "-m", "remuda", "worker", ON_DEMAND],
            cwd=place,
            env=without(world.environ, (MARK, *_traces(world))),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            check=True,
        )
    finally:
        os.close(log)


def _traces(world: World) -> list[str]:
    """What agents leave in the environment of what they start, and what we gave to those of our own that we
    are called by: whose account it is, and for which task."""
    found = [marker for runtime in registry.all_runtimes() for marker in runtime.nested_markers]
    if ORIGIN not in world.environ:
        return found
    for link in parsed(world.environ[ORIGIN]):
        if link.agent in world.config.agents:
            runtime = world.herd.get(world.config.agents[link.agent].runtime)
            found += [*runtime.key_names, *filter(None, [runtime.home_variable])]
    return [*found, ORIGIN, "REMUDA_AGENT_BINARY", "REMUDA_TASK"]
