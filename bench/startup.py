"""How long a command takes to answer: Remuda, its peers, and the bare interpreter as the floor."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import peers
from measure import Command, Timings, always, interleaved

FLOOR = "python -I -S -c pass"
ROUNDS = 40
REMUDA = (("--version",), ("--help",), ("which", "--json"))


def measure(node_folder: Path) -> Timings:
    """Time every command in an empty home; ``node_folder`` holds the Node that npm peers run on."""
    with tempfile.TemporaryDirectory(prefix="remuda-bench-") as name:
        home = Path(name)
        env = {"PATH": f"{node_folder}{os.pathsep}{os.environ['PATH']}", "HOME": name}
        commands = {FLOOR: Command((sys.executable, "-I", "-S", "-c", "pass"), env, home)}
        remuda = str(Path(sys.executable).with_name("remuda"))
        for arguments in REMUDA:
            commands[f"remuda {' '.join(arguments)}"] = Command((remuda, *arguments), env, home)
        for peer in peers.pinned():
            if program := peers.installed(peer):
                commands[peer.title] = Command((str(program), *peer.command[1:]), env, home)
        return interleaved({title: always(command) for title, command in commands.items()}, ROUNDS)
