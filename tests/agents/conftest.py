"""Fixtures for the suite that every runtime passes. No agent CLI ever runs with a network here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.agents.lab import DONE, RESIDENT, Lab, script
from tests.agents.network import objection
from tests.agents.processes import Process, carrying, wait_until

from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes import registry
from remuda.runtimes.base import Runtime


def takes_argv(runtime: Runtime) -> bool:
    return any(channel.mode == "argv" for channel in runtime.channels)


MakeLab = Callable[[Runtime], Lab]

ROOT = Path(__file__).parents[2]
BASE = Path("/var/tmp")
"""Not the folder for temporary files: Codex's sandbox does not work below that."""


@pytest.fixture(scope="session", autouse=True)
def no_network() -> None:
    """Agent CLIs must not reach anybody."""
    if reason := objection():
        pytest.exit(reason, returncode=4)


@pytest.fixture(scope="session")
def agents_bin(no_network: None) -> Path:
    """The folder of the pinned agent CLIs."""
    answer = subprocess.run(
        [sys.executable, ROOT / "tools" / "agents.py", "--path"], capture_output=True, text=True
    )
    if answer.returncode != 0:
        pytest.exit("the agent CLIs are not installed: run 'make agents'", returncode=4)
    return Path(answer.stdout.strip())


@pytest.fixture(scope="session")
def path(agents_bin: Path) -> str:
    """The PATH of every lab: the agents, the bare system, and stand-ins for agents that are nowhere else."""
    return f"{agents_bin}:/usr/bin:/bin:{ROOT / 'tests' / 'standins'}"


@pytest.fixture(scope="session")
def copilot_cache(agents_bin: Path, path: str) -> Iterator[Path]:
    """Copilot unpacks itself into its cache on its first start; once a test session is enough."""
    folder = Path(tempfile.mkdtemp(prefix="remuda-copilot-", dir=BASE))
    environ = {"PATH": path, "HOME": str(folder), "COPILOT_CACHE_HOME": str(folder)}
    subprocess.run([agents_bin / "copilot", "--version"], env=environ, check=True, capture_output=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder for one test."""
    name = Path(tempfile.mkdtemp(prefix="remuda-lab-", dir=BASE))
    yield name
    shutil.rmtree(name, ignore_errors=True)


def _left(folder: Path) -> list[Process]:
    """What runs in a lab's folder, but for the process that answers hooks, which ends by itself."""
    return [process for process in carrying(str(folder)) if RESIDENT not in process.argv]


@pytest.fixture
def nothing_left(folder: Path) -> Iterator[None]:
    """No process of a session may outlive its test, however the test ends."""
    yield
    wait_until(lambda: not _left(folder), 60)
    left = _left(folder)
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert not left


@pytest.fixture
def server() -> Iterator[RehearsalServer]:
    """A scripted model that answers in one sentence."""
    with RehearsalServer(script(DONE), record_bodies=True) as running:
        yield running


@pytest.fixture
def make_lab(folder: Path, server: RehearsalServer, path: str, copilot_cache: Path) -> Iterator[MakeLab]:
    """Sets up a clean home for a runtime. Whatever a test does, no process may be left behind."""
    labs: list[Lab] = []

    def make(runtime: Runtime) -> Lab:
        lab = Lab(runtime, folder, server, path)
        lab.env["COPILOT_CACHE_HOME"] = str(copilot_cache)
        labs.append(lab)
        return lab

    yield make
    wait_until(lambda: not any(lab.processes() for lab in labs), 60)
    left = [process for lab in labs for process in lab.processes()]
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert not left


@pytest.fixture(params=registry.names())
def lab(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A clean home for each runtime in turn."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=[runtime.name for runtime in registry.all_runtimes() if not runtime.built_in])
def installed(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… for each that is a program of its own."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=[runtime.name for runtime in registry.all_runtimes() if runtime.conduct.shell])
def shell_lab(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… for each whose model is offered a shell."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=[runtime.name for runtime in registry.all_runtimes() if not runtime.conduct.shell])
def edit_lab(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… for each that acts on nothing but its model's words."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=[runtime.name for runtime in registry.all_runtimes() if takes_argv(runtime)])
def argv_lab(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… for each that takes a prompt on its command line."""
    return make_lab(registry.get(request.param))


@pytest.fixture
def claude(make_lab: MakeLab) -> Lab:
    """… for tests that need any real program; this one starts quickly."""
    return make_lab(registry.get("claude"))


@pytest.fixture
def home(make_lab: MakeLab) -> Lab:
    """… for tests that are about no runtime in particular."""
    return make_lab(registry.get("rehearsal"))
