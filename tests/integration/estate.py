"""A machine on which everything that Remuda does has been done, and most of it is still going on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.repositories import DOES, repository
from tests.integration.residents import listening
from tests.integration.sessions import Stable, shell
from tests.support import Ended, eventually, finish

from remuda.core.files import write_new
from remuda.rehearsal.scenario import Rule, Scenario, Step
from remuda.rehearsal.server import RehearsalServer

OTHER = 65534
"""A user who is nobody here."""

CONFIG = """
[agents.office]
runtime = "claude"
secrets = "office"
[agents.rehearsed]
runtime = "rehearsal"
secrets = "office"
"""


class Estate:
    """A stable that others can reach, were it not for the modes of what is in it."""

    def __init__(self, folder: Path, server: RehearsalServer) -> None:
        self.stable = Stable(folder, server)
        self.site = self.stable.site
        self.home = self.site.home
        self.said: list[str] = []
        self._running: list[subprocess.Popen[bytes]] = []

    def does(self, *arguments: str, stdin: bytes = b"", fails: bool = False, **env: str) -> Ended:
        """Call ``remuda``, and remember whatever it says."""
        ended = self.site.remuda(*arguments, stdin=stdin, **env)
        self.said.append(ended.stdout + ended.stderr)
        assert fails or ended.code == 0, (arguments, ended.stdout, ended.stderr)
        return ended

    def goes_on(self, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        """Start ``remuda`` and let it run."""
        self._running.append(self.site.start(*arguments, **env))
        return self._running[-1]

    def sockets(self) -> list[Path]:
        """Every socket below the home."""
        return [path for path in self.home.rglob("*") if path.is_socket()]

    def as_other(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program as another user."""
        python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
        assert python is not None
        as_nobody = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
        return subprocess.run(
            [*as_nobody, python, "-I", "-S", "-c", program, *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
        )

    def end(self) -> None:
        """End what is still going on: those who wait for tasks first, who would have workers replaced."""
        for process in self._running:
            process.terminate()
            finish(process)
        self.site.remuda("worker", "--stop")
        for name in ("one", "two"):
            self.site.remuda("session", "stop", name)
        self.site.remuda("serve", "--stop")
        self.stable.end()


@contextmanager
def estate() -> Iterator[Estate]:
    """An estate below a folder that everybody may enter, where no umask helps."""
    before = os.umask(0)
    folder = Path(tempfile.mkdtemp(prefix="estate-"))
    folder.chmod(0o755)
    try:
        with RehearsalServer(Scenario("test", (Rule((Step(text="All done."),)),))) as server:
            made = Estate(folder, server)
            try:
                yield made
            finally:
                made.end()
                eventually(lambda: not made.site.processes())
    finally:
        os.umask(before)
        shutil.rmtree(folder, ignore_errors=True)


def settle(made: Estate, prompt: str, secret: str) -> None:
    """Do all there is to do with this prompt and this secret; sessions, a task and a worker go on."""
    site, does = made.site, made.does
    made.home.mkdir(mode=0o700)
    (made.home / "config").mkdir(mode=0o700)
    write_new(made.home / "config" / "config.toml", CONFIG.encode())
    site.program("claude", DOES)
    repository(site.cwd)
    made.stable.play(("slowly", (shell("sleep 300"),)))
    for key in ("ANTHROPIC_API_KEY", "REHEARSAL_API_KEY"):
        does("secrets", "set", key, "--scope", "office", stdin=secret.encode())
    does("trust", "add")
    site.env["REMUDA_HOOK_ENGINE"] = "auto"
    made.goes_on("serve", "--keep")
    eventually(lambda: listening(site))
    bypass = ("--permission", "bypass", "--unattended")
    does("run", "--agent", "rehearsal", *bypass, "-", stdin=prompt.encode())
    does("run", "--agent", "rehearsal", "--capability", "builder", "-", stdin=prompt.encode())
    script = f"echo done # {prompt}"
    does("run", "--agent", "office", "--isolated", *bypass, "-", stdin=script.encode(), REMUDA_ENDPOINT="")
    for name, mode in (("one", "connection"), ("two", "tmux")):
        does("session", "start", name, "--agent", "rehearsed", "--mode", mode, REMUDA_ENDPOINT="")
    does("session", "send", "one", "-", stdin=prompt.encode())
    does("send", "rehearsal", "--mode", "peer-only", "-", stdin=prompt.encode(), fails=True)
    does("peer", "list", "--json")
    task = json.loads(
        does("task", "submit", "--json", "--agent", "rehearsal", "-", stdin=prompt.encode()).stdout
    )
    does("task", "wait", task["id"])
    does("task", "submit", "--agent", "rehearsal", "--permission", "bypass", "-", stdin=b"slowly")
    payload = {"tool_name": "Bash", "tool_input": {"command": "git push --force"}, "cwd": str(site.cwd)}
    does("hook", "pre-tool-use", stdin=json.dumps(payload).encode(), fails=True)
    does("usage", "--json")
    does("agents", "--json")
    does("worktree", "list", "--json")
