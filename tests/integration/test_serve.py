"""The resident process as it lives: one of it, started, asked, idle, ended, killed."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.residents import FORBIDDEN, HARMLESS, ask, listening, pid_of, place, program, status
from tests.support import PATIENCE, Site, alive, eventually, finish

from remuda.hooks import client, starting


def test_its_life(site: Site) -> None:
    before = status(site)
    assert (before["running"], before["pid"]) == (False, None)
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    found = status(site)
    assert (found["running"], found["pid"], found["keep"]) == (True, process.pid, True)
    assert found["socket"] == str(place(site) / "serve.sock")
    assert stat.S_IMODE(place(site).stat().st_mode) == 0o700
    assert stat.S_IMODE((place(site) / "serve.sock").stat().st_mode) == 0o600
    assert (ask(site, HARMLESS).code, ask(site, FORBIDDEN).code) == (0, 2)
    stopped = site.remuda("serve", "--stop")
    assert (stopped.code, alive(process.pid)) == (0, False)
    assert finish(process).code == 0
    assert not (place(site) / "serve.sock").exists()
    assert status(site)["running"] is False
    assert site.remuda("serve", "--stop").code == 0


def test_there_is_one_at_most(serving: Site) -> None:
    second = serving.remuda("serve")
    assert (second.code, f"process {pid_of(serving)}" in second.stderr) == (1, True)


def test_of_ten_that_start_at_once_one_stays(site: Site) -> None:
    crowd = [subprocess.Popen(starting.COMMAND, env=site.env, cwd=site.cwd) for _ in range(10)]
    eventually(lambda: listening(site) and sum(each.poll() is None for each in crowd) == 1)
    (left,) = [each for each in crowd if each.poll() is None]
    assert pid_of(site) == left.pid
    assert ask(site, FORBIDDEN).code == 2
    site.remuda("serve", "--stop")
    assert {each.wait(timeout=PATIENCE) for each in crowd} == {0}


def test_it_ends_when_it_has_nothing_to_do(site: Site) -> None:
    process = site.start("serve", "--idle", "0.5")
    assert finish(process).code == 0
    assert not (place(site) / "serve.sock").exists()
    (site.home / "config").mkdir()
    (site.home / "config" / "config.toml").write_text("[serve]\nidle = 0.3\n")
    assert finish(site.start("serve")).code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(site: Site, number: signal.Signals) -> None:
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    process.send_signal(number)
    assert finish(process).code == 0
    assert not (place(site) / "serve.sock").exists()


def test_what_a_killed_one_leaves_behind_is_repaired(site: Site) -> None:
    for _ in range(3):
        process = site.start("serve", "--keep")
        eventually(lambda: listening(site))
        process.kill()
        process.wait()
        assert (place(site) / "serve.sock").exists()
        assert status(site)["running"] is False
        finish(process)
    (place(site) / "serve.sock").unlink()
    (place(site) / "serve.sock").write_text("not a socket")
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    assert ask(site, FORBIDDEN).code == 2
    assert site.remuda("serve", "--stop").code == 0
    finish(process)


def test_one_that_hangs_is_ended_all_the_same(site: Site) -> None:
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    process.send_signal(signal.SIGSTOP)
    assert ask(site, FORBIDDEN).code == 2
    assert ask(site, HARMLESS).code == 0
    assert site.remuda("serve", "--stop").code == 0
    assert process.wait(timeout=PATIENCE) == -signal.SIGKILL
    finish(process)


def test_it_leaves_when_its_socket_is_taken_away(site: Site) -> None:
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    (place(site) / "serve.sock").unlink()
    assert finish(process).code == 0


def test_a_path_that_is_too_long_is_reached_all_the_same(site: Site) -> None:
    home = {"REMUDA_HOME": str(site.folder / ("x" * 60) / ("y" * 60))}
    process = site.start("serve", "--keep", **home)
    try:
        eventually(lambda: Path(home["REMUDA_HOME"], "runtime", "serve.sock").exists())
        assert "too long" in str(status(site, **home)["note"])
        answered = Path(home["REMUDA_HOME"], "state", "guard.jsonl")
        assert ask(site, FORBIDDEN, **home).code == 2
        assert answered.exists()
        assert status(site, **home)["running"] is True
    finally:
        assert site.remuda("serve", "--stop", **home).code == 0
    assert finish(process).code == 0


def test_a_folder_that_others_may_enter_is_closed(site: Site) -> None:
    place(site).mkdir(parents=True)
    place(site).chmod(0o777)
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    assert stat.S_IMODE(place(site).stat().st_mode) == 0o700
    site.remuda("serve", "--stop")
    finish(process)


def test_a_hook_that_misses_it_starts_it(quiet: Site) -> None:
    started = time.monotonic()
    assert ask(quiet, FORBIDDEN, "--runtime", "codex").code == 2
    assert time.monotonic() - started < 30
    eventually(lambda: listening(quiet))
    pid = pid_of(quiet)
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PYTHONWARNINGS" not in environ
    assert os.getsid(pid) == pid
    assert {str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in range(3)} == {"/dev/null"}
    assert Path(f"/proc/{pid}/cwd").resolve() == Path("/")
    assert ask(quiet, HARMLESS).code == 0
    assert pid_of(quiet) == pid


def test_it_inherits_nothing_that_somebody_waits_for(quiet: Site) -> None:
    reading, writing = os.pipe()
    subprocess.run(
        [*program(), "stop", "{}"],
        env=quiet.env,
        cwd=quiet.cwd,
        pass_fds=[writing],
        stdout=writing,
        check=True,
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        assert stream.read() == b"{}\n"


@pytest.mark.parametrize("way", ["engine", "config"])
def test_who_wants_none_gets_none(site: Site, way: str) -> None:
    (site.home / "config").mkdir(parents=True)
    if way == "config":
        (site.home / "config" / "config.toml").write_text("[guard]\nresident = false\n")
    engine = "python" if way == "engine" else "auto"
    for _ in range(2):
        assert ask(site, FORBIDDEN, REMUDA_HOOK_ENGINE=engine).code == 2
    time.sleep(0.3)
    assert not place(site).exists()
    assert not site.processes()


def test_it_ends_when_its_code_is_replaced(site: Site) -> None:
    library = site.folder / "lib"
    package = Path(shutil.copytree(Path(client.__file__).parents[1], library / "remuda"))
    path = f"import sys; sys.path.insert(0, {str(library)!r})"
    argv = [sys.executable, "-I", "-c", f"{path}; from remuda.hooks.resident import main; main()"]
    process = subprocess.Popen(argv, env=site.env, cwd=site.cwd)
    eventually(lambda: listening(site))
    table = package / "guard" / "table.py"
    table.write_text(table.read_text() + "\n# newer\n")
    assert process.wait(timeout=PATIENCE) == 0
    assert not (place(site) / "serve.sock").exists()
