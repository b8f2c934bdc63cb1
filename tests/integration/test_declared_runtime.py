"""Runtimes of the user's own, from the outside: declared in a file, or registered by a package."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support import SHELL, Site

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def folder(site: Site) -> Path:
    """The configuration folder with the tutorial's file, and its program on the PATH."""
    folder = site.home / "config/runtimes"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLES / "runtimes/echo.toml", folder)
    shutil.copy(EXAMPLES / "runtimes/echo-agent", site.bin)
    return folder


@pytest.fixture
def package(site: Site) -> dict[str, str]:
    """The example package, as an installer would leave it."""
    place = site.folder / "packages"
    shutil.copytree(EXAMPLES / "plugin/src", place)
    info = place / "remuda_parrot-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: remuda-parrot\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[remuda.runtimes]\nparrot = remuda_parrot:RUNTIME\n")
    return {"PYTHONPATH": str(place)}


def test_a_declared_runtime_runs(site: Site, folder: Path) -> None:
    ended = site.remuda("run", "--agent", "echo", "--model", "tiny", "--json", "-", stdin=b"hello")
    assert ended.code == 0
    assert ended.result["text"] == "You said 5 characters to tiny."
    assert [event["seq"] for event in ended.events] == [1, 2]
    long = site.remuda("run", "--agent", "echo", "--json", "-", stdin=b"x" * 200_000)
    assert long.result["text"] == "You said 200000 characters to none."


def test_its_failures_and_bounds_are_like_everybodys(site: Site, folder: Path) -> None:
    failed = site.remuda("run", "--agent", "echo", "--json", "fail")
    assert (failed.code, failed.error["kind"]) == (6, "auth")
    refused = site.remuda("run", "--agent", "echo", "--permission", "bypass", "--json", "x")
    assert (refused.code, refused.error["kind"]) == (5, "refused")
    assert site.remuda("run", "--agent", "echo", "--system-prompt", "x", "y").code == 2


def test_it_is_listed_chosen_and_launched(site: Site, folder: Path) -> None:
    runtimes = site.remuda("runtimes", "--json").json
    assert runtimes["problems"] == []
    assert isinstance(runtimes["runtimes"], list)
    found = next(runtime for runtime in runtimes["runtimes"] if runtime["name"] == "echo")
    assert (found["version"], found["verified_version"]) == ("1.0.0", "unverified")
    assert found["stability"] == "experimental"
    assert "echo" in site.remuda("agents").stdout
    assert site.remuda("which").stdout == "echo\n", "the only one that is installed"
    assert site.remuda("use", "echo").code == 0
    launched = site.remuda("echo", "--version")
    assert (launched.code, launched.stdout) == (0, "echo-agent 1.0.0\n")
    doctor = site.remuda("doctor")
    assert doctor.code == 0
    assert "no version of echo has been verified" in doctor.stdout


def test_the_shell_twin_knows_it(site: Site, folder: Path) -> None:
    snippet = site.remuda("which", "--shell-snippet").stdout
    assert " echo=echo-agent" in snippet
    env = {**site.env, "PATH": f"{site.bin}:/usr/bin:/bin", "REMUDA_AGENT_BINARY": "echo"}
    program = site.write("resolve.sh", snippet)
    ended = subprocess.run(["sh", program], cwd=site.cwd, env=env, capture_output=True, text=True)
    assert ended.stdout == "echo\n", ended.stderr


def test_the_matrix_as_markdown(site: Site, folder: Path) -> None:
    lines = site.remuda("runtimes", "--markdown").stdout.splitlines()
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[:5] == ["runtime", "installed", "last verified", "stability", "prompt channels"]
    assert set(cells[5:]) == {"headless", "connection", "hooks", "sandbox", "resume", "usage", "guard"}
    echo = next(line for line in lines if line.startswith("| `echo` |"))
    assert "| 1.0.0 | unverified | experimental | stdin (documented) | documented | no |" in echo
    assert "verified on 2.1.325" in next(line for line in lines if line.startswith("| `claude` |"))
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    assert site.remuda("runtimes", "--markdown", "--json").code == 2


def test_a_bad_file_troubles_nobody_else(site: Site, folder: Path) -> None:
    bad = folder / "bad.toml"
    bad.write_text('name = "bad"\ntitel = "x"\n')
    fine = site.remuda("run", "--agent", "rehearsal", "hello")
    assert fine.code == 0
    assert "bad" not in fine.stderr
    used = site.remuda("run", "--agent", "bad", "hello")
    assert used.code == 2
    assert str(bad) in used.stderr
    listed = site.remuda("runtimes")
    assert listed.code == 0
    assert str(bad) in listed.stderr
    assert "unusable" in site.remuda("agents").stdout
    doctor = site.remuda("doctor")
    assert doctor.code == 1
    assert str(bad) in doctor.stdout
    assert site.remuda("doctor", REMUDA_AGENT_BINARY="bad").code == 1
    assert site.remuda("which", "--shell-snippet").code == 0


def test_a_project_cannot_declare_a_runtime(site: Site, folder: Path) -> None:
    site.write(".remuda/runtimes/evil.toml", (folder / "echo.toml").read_text().replace("echo", "evil"))
    assert site.remuda("run", "--agent", "evil", "hello").code == 4
    assert "evil" not in site.remuda("agents").stdout


def test_a_verb_is_never_hidden(site: Site, folder: Path) -> None:
    (folder / "which.toml").write_text((folder / "echo.toml").read_text().replace('"echo"', '"which"'))
    assert site.remuda("which", REMUDA_AGENT_BINARY="echo").stdout == "echo\n"
    assert site.remuda("launch", "which", "--version").stdout == "echo-agent 1.0.0\n"


def test_a_package_registers_a_runtime(site: Site, folder: Path, package: dict[str, str]) -> None:
    ended = site.remuda("run", "--agent", "parrot", "--json", "hello", **package)
    assert ended.result["text"] == "You said 5 characters to small-grey."
    assert site.remuda("parrot", "--version", **package).stdout == "echo-agent 1.0.0\n"
    listed = site.remuda("agents", "--json", **package).json["agents"]
    assert isinstance(listed, list)
    assert {"echo", "parrot"} <= {agent["name"] for agent in listed}
    assert site.remuda("run", "--agent", "parrot", "hello").code == 4


def test_a_broken_package_is_told(site: Site, folder: Path, package: dict[str, str]) -> None:
    module = Path(package["PYTHONPATH"]) / "remuda_parrot/__init__.py"
    for code, told in (("raise OSError('gone')", "OSError: gone"), ("RUNTIME = 1", "not a Runtime")):
        module.write_text(code)
        assert told in site.remuda("doctor", **package).stdout
        assert site.remuda("run", "--agent", "parrot", "hello", **package).code == 2
    assert site.remuda("run", "--agent", "echo", "hello", **package).code == 0


def test_what_a_file_hides_is_told(site: Site, folder: Path, package: dict[str, str]) -> None:
    (folder / "parrot.toml").write_text((folder / "echo.toml").read_text().replace('"echo"', '"parrot"'))
    assert "hidden" in site.remuda("runtimes", **package).stderr
    ended = site.remuda("run", "--agent", "parrot", "--json", "hello", **package)
    assert ended.result["text"] == "You said 5 characters to none."


def test_its_markers_do_not_reach_its_own_session(site: Site, folder: Path) -> None:
    site.program("echo-agent", f'{SHELL}echo "marker: $ECHO_NESTED key: $ECHO_KEY"\n')
    file = folder / "echo.toml"
    lines = 'nested_markers = ["ECHO_NESTED"]\nenvironment = ["ECHO_*"]\n'
    file.write_text(lines + file.read_text())
    ended = site.remuda("run", "--agent", "echo", "--json", "x", ECHO_NESTED="1", ECHO_KEY="2")
    assert ended.result["text"] == "marker:  key: 2"
