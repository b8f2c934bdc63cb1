"""The main job in one minute: a prompt, an agent, its events, a tool call, the result, the guard.

Run by ``make demo``. It needs no account, no server and no Node: the agent is the built-in rehearsal agent,
and the model is scripted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

REMUDA = str(Path(sys.executable).with_name("remuda"))


def show(*arguments: str, cwd: str, env: dict[str, str]) -> None:
    """Print a command as one would type it, and run it."""
    typed = " ".join(f'"{argument}"' if " " in argument else argument for argument in arguments)
    print(f"\n$ remuda {typed}", flush=True)
    subprocess.run([REMUDA, *arguments], cwd=cwd, env=env, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="remuda-demo-") as home:
        work = Path(home, "work")
        work.mkdir()
        env = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "REMUDA_HOME": str(Path(home, "remuda")),
            "TERM": os.environ.get("TERM", "dumb"),
            "REHEARSAL_SCENARIO": "demo",
        }
        ask = ("run", "--agent", "rehearsal", "--permission", "bypass")
        show(*ask, "write a greeting into a file", cwd=str(work), env=env)
        print(f"\nThe agent wrote: {Path(work, 'hello.txt').read_text()!r}")
        show(*ask, "--json", "the same again, for a program", cwd=str(work), env=env)
        Path(work, "hello.txt").unlink()
        guarded = ("run", "--agent", "rehearsal", "--capability", "scout", "--permission", "bypass")
        show(*guarded, "the same, by one who may only look", cwd=str(work), env=env)
        print(f"\nA scout writes nothing: hello.txt is there: {Path(work, 'hello.txt').exists()}")
        show("guard", "log", cwd=str(work), env=env)
        show("agents", cwd=str(work), env=env)
        print("\nThat was the built-in rehearsal agent. Next: remuda doctor, then remuda run with your own.")


if __name__ == "__main__":
    main()
