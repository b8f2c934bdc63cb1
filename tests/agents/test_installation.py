"""What is installed, which version, and what drifts."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.agents.lab import REMUDA, Lab

from remuda.runtimes import registry
from remuda.runtimes.base import UNVERIFIED, Runtime

AGENTS = Path(__file__).parents[2] / "agents"
FROM_PYPI = re.compile(r"([\w-]+)(?:\[\w+\])?==(\S+)")
PACKAGES = json.loads((AGENTS / "package.json").read_text())["dependencies"] | {
    name: version for file in AGENTS.glob("*.in") for name, version in FROM_PYPI.findall(file.read_text())
}
INSTALLED = [
    runtime
    for runtime in registry.all_runtimes()
    if not runtime.built_in and runtime.verified_version != UNVERIFIED
]


def pinned(runtime: Runtime) -> str:
    """The version of the package that a runtime's instructions have you install."""
    (version,) = (version for name, version in PACKAGES.items() if name in runtime.install)
    return str(version)


PINNED = {runtime.name: pinned(runtime) for runtime in INSTALLED}


def test_every_declaration_is_verified_on_the_pinned_version() -> None:
    assert {runtime.name: runtime.verified_version for runtime in INSTALLED} == PINNED


def test_a_program_that_is_not_there(installed: Lab) -> None:
    ended = installed.run("Hello.", env={"PATH": "/usr/bin:/bin"})
    assert ended.code == 6
    assert ended.result.error is not None
    assert ended.result.error.kind == "not_installed"
    assert installed.runtime.install in ended.result.error.message


def test_the_doctor_finds_nothing_wrong(home: Lab) -> None:
    ended = home.call([str(REMUDA), "doctor", "--json"])
    report = json.loads(ended.stdout)
    runtimes = {runtime["name"]: runtime for runtime in report["runtimes"]}
    assert {name: runtime["problems"] for name, runtime in runtimes.items() if runtime["problems"]} == {}
    assert (ended.code, report["ok"], report["problems"]) == (0, True, [])
    for runtime in INSTALLED:
        state = runtimes[runtime.name]
        assert (state["installed"], state["version"]) == (True, PINNED[runtime.name])
        assert state["warnings"] == []


def test_runtimes_tells_the_versions(home: Lab) -> None:
    ended = home.call([str(REMUDA), "runtimes", "--json"])
    assert ended.code == 0, ended.stderr
    runtimes = {runtime["name"]: runtime for runtime in json.loads(ended.stdout)["runtimes"]}
    for runtime in INSTALLED:
        state = runtimes[runtime.name]
        assert state["version"] == state["verified_version"] == PINNED[runtime.name]
        assert Path(state["path"]).name == runtime.binary


def test_the_doctor_notices_a_flag_that_is_gone(home: Lab, agents_bin: Path) -> None:
    program = home.cwd / "codex"
    program.write_text(f"#!/bin/sh\n{agents_bin}/codex \"$@\" | sed 's/--json/--gone/g'\n")
    program.chmod(0o755)
    ended = home.call([str(REMUDA), "doctor", "--json"], env={"PATH": f"{home.cwd}:{home.env['PATH']}"})
    (codex,) = (r for r in json.loads(ended.stdout)["runtimes"] if r["name"] == "codex")
    assert ended.code == 1
    assert len(codex["problems"]) == 1
    assert "'codex exec --help' no longer mentions --json" in codex["problems"][0]
