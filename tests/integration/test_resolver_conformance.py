"""The Python resolver and its shell twin give the same answer, in every situation and on any input."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.resolver_cases import CASES
from tests.integration.resolver_inputs import documents, variables
from tests.integration.resolver_site import NAMES, PLACE, Case, Site

from remuda.core import config
from remuda.core.paths import folders
from remuda.dispatch.resolve import DEFAULT, Inputs, Resolution, resolve
from remuda.dispatch.shell_twin import shell_snippet

BINARIES = {name: name for name in NAMES if name != "rehearsal"}
UTILITIES = ("awk", "date", "find", "grep", "id", "ls", "od", "tr", "wc")
SHELLS = {
    "dash": ("dash", ()),
    "bash": ("bash", ("--posix",)),
    "busybox": ("busybox", ("sh",)),
    "gawk": ("dash", ()),
    "original-awk": ("dash", ()),
}
PRESENT = [name for name, (program, _) in SHELLS.items() if shutil.which(name) and shutil.which(program)]


def quiet(message: str, **fields: object) -> None:
    """A place for warnings that nobody reads."""


@dataclass(frozen=True)
class Shell:
    """A shell with a PATH of nothing but the utilities that the program may use."""

    argv: tuple[str, ...]
    utilities: Path
    program: Path

    def run(self, site: Site) -> subprocess.CompletedProcess[str]:
        environ = {**site.environ, "PATH": f"{self.utilities}:{site.environ['PATH']}"}
        return self.call(self.program, cwd=site.cwd, environ=environ)

    def script(self, text: str) -> list[str]:
        """Source the program, run a script, and give its lines."""
        environ = {"PATH": str(self.utilities), "HOME": "/nonexistent"}
        sourced = f". {shlex.quote(str(self.program))}\n{text}"
        return self.call("-c", sourced, cwd=Path("/"), environ=environ).stdout.splitlines()

    def call(
        self, *arguments: str | Path, cwd: Path, environ: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.argv, *arguments],
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
        )


def make_shell(name: str, folder: Path) -> Shell:
    """A shell by its name in SHELLS; busybox brings its own utilities, an awk replaces the system's."""
    program, options = SHELLS[name]
    utilities = folder / name
    utilities.mkdir()
    for utility in UTILITIES:
        own = name == "busybox" or (utility == "awk" and name.endswith("awk"))
        target = shutil.which(name if own else utility)
        assert target is not None
        (utilities / utility).symlink_to(target)
    path = utilities / "resolve.sh"
    path.write_text(shell_snippet(NAMES, BINARIES, DEFAULT))
    found = shutil.which(program)
    assert found is not None
    return Shell((found, *options), utilities, path)


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shell]:
    assert PRESENT, "no shell to test with"
    folder = tmp_path_factory.mktemp("shells")
    return {name: make_shell(name, folder) for name in PRESENT}


def python_answer(site: Site) -> Resolution:
    """What Python finds, fed as the command line feeds it."""
    places = folders(site.environ)
    inputs = Inputs(
        cwd=site.cwd,
        environ=site.environ,
        names=NAMES,
        installed=lambda: [n for n in NAMES if shutil.which(BINARIES.get(n, n), path=site.environ["PATH"])],
        sticky=places.sticky_file,
        config_agent=config.load(places, site.cwd.resolve()).agent,
    )
    return resolve(inputs, warn=quiet)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_both_find_the_expected_agent(
    case: Case, tmp_path: Path, shells: dict[str, Shell], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    case.build(site)
    monkeypatch.chdir(site.cwd)
    monkeypatch.setenv("HOME", str(site.home))
    answer = python_answer(site)
    assert (answer.agent, answer.source) == (case.agent, case.source)
    for name, shell in shells.items():
        done = shell.run(site)
        assert (name, done.stdout, done.returncode) == (name, f"{case.agent}\n", 0), done.stderr


def test_the_table_is_large_and_its_ids_unique() -> None:
    assert len(CASES) >= 80
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", PRESENT)
class TestTheShellProgram:
    SECRET = "sk-do-not-show"

    def test_warns_about_each_refused_source_without_its_value(
        self, name: str, tmp_path: Path, shells: dict[str, Shell]
    ) -> None:
        site = Site(tmp_path)
        site.environ |= {"REMUDA_AGENT_BINARY": self.SECRET, "AMPLIHACK_AGENT_BINARY": self.SECRET}
        site.context({"launcher": self.SECRET})
        site.context("{", site.go(site.repo / "a"))
        site.sticky(self.SECRET.encode())
        site.config(f'agent = "{self.SECRET}"\n')
        done = shells[name].run(site)
        assert done.stdout == "copilot\n"
        assert self.SECRET not in done.stderr
        assert len(done.stderr.splitlines()) == 6
        assert "bad_json" in done.stderr

    def test_takes_a_folder_and_leaves_its_caller_alone(
        self, name: str, tmp_path: Path, shells: dict[str, Shell]
    ) -> None:
        site = Site(tmp_path)
        site.context({"launcher": "claude"})
        lines = shells[name].script(
            f"set -eu; agent=mine; IFS=x; cd {tmp_path}; CDPATH={tmp_path}\n"
            'remuda_active_agent work/repo; IFS=" "; echo "$agent $CDPATH"; pwd; echo $-'
        )
        assert lines[:3] == ["claude", f"mine {tmp_path}", str(tmp_path)]
        assert {"e", "u"} <= set(lines[3])
        assert "f" not in lines[3]

    def test_survives_a_folder_that_is_gone(self, name: str, shells: dict[str, Shell]) -> None:
        assert shells[name].script("remuda_active_agent /nonexistent/folder") == ["copilot"]

    @settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(values=st.lists(variables, min_size=10, max_size=10))
    def test_agrees_on_any_variable(self, name: str, shells: dict[str, Shell], values: list[str]) -> None:
        calls = [f"REMUDA_AGENT_BINARY={shlex.quote(value)}; remuda_active_agent /" for value in values]
        answers = shells[name].script("export REMUDA_AGENT_BINARY\n" + "\n".join(calls))
        assert answers == [agent_at(Path("/"), {"REMUDA_AGENT_BINARY": value}) for value in values]

    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(contents=st.lists(documents, min_size=10, max_size=10))
    def test_agrees_on_any_file(self, name: str, shells: dict[str, Shell], contents: list[bytes]) -> None:
        with tempfile.TemporaryDirectory() as root:
            sites = [Path(root, str(number)) for number in range(len(contents))]
            for folder, content in zip(sites, contents, strict=True):
                (folder / ".git").mkdir(parents=True)
                (folder / PLACE).parent.mkdir(parents=True)
                (folder / PLACE).write_bytes(content)
            answers = shells[name].script("\n".join(f"remuda_active_agent {folder}" for folder in sites))
            assert answers == [agent_at(folder, {}) for folder in sites]


def agent_at(folder: Path, environ: dict[str, str]) -> str:
    """Python's answer with nothing but a folder and variables."""
    sticky = Path("/nonexistent/active_agent")
    inputs = Inputs(cwd=folder, environ=environ, names=NAMES, installed=list, sticky=sticky)
    return resolve(inputs, warn=quiet).agent
