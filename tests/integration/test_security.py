"""What others on the machine can reach, and where prompts and secrets end up: only where they belong."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.estate import Estate, estate, settle
from tests.integration.repositories import DOES, repository
from tests.support import SHELL, Site

PROMPT = "canary-prompt-5e1f0c"
SECRET = "canary-secret-77aa3b"
URL = f"postgresql://remuda:{SECRET}@127.0.0.1:9/remuda"
KEPT_PROMPTS = ("state/dispatch.db", "state/remuda.db")
"""Prompts are kept in the databases alone: that of tasks and messages, that of sessions."""

READS = """
import sys
for path in sys.argv[1:]:
    try:
        open(path, "rb").close()
    except OSError:
        continue
    print(path)
"""
CALLS = """
import socket, sys
http = b"POST /v1/which HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n{}"
said = (http, b'{"order":"status"}\\n')
for path in sys.argv[1:]:
    for text in said:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(socket.AF_UNIX, kind) as caller:
                    caller.settimeout(3)
                    caller.connect(path)
                    print("connected", path)
                    caller.sendall(text)
                    if kind == socket.SOCK_STREAM and caller.recv(100):
                        print("answered", path)
            except OSError:
                continue
"""


ATTACHES = """
import subprocess, sys
ended = subprocess.run([sys.argv[1], "-S", sys.argv[2], "list-sessions"], capture_output=True, text=True)
print(ended.stdout, ended.stderr)
"""


@pytest.fixture(scope="module")
def lived_in() -> Iterator[Estate]:
    """An estate in which everything was done, and much still goes on."""
    with estate() as made:
        settle(made, PROMPT, SECRET)
        yield made


def made_by_us(estate: Estate) -> list[Path]:
    """All below the home, but what is in the worktrees of agents, which are closed themselves."""
    trees = estate.home / "data-worktrees"
    inside = {path for tree in trees.glob("*/*") for path in tree.rglob("*")}
    return [estate.home, *(path for path in estate.home.rglob("*") if path not in inside)]


def named(estate: Estate, path: Path) -> str:
    return str(path.relative_to(estate.home))


def holding(estate: Estate, text: str) -> set[str]:
    """The files that hold a text."""
    found = set()
    for path in estate.home.rglob("*"):
        try:
            if path.is_file() and text.encode() in path.read_bytes():
                found.add(named(estate, path))
        except FileNotFoundError:
            continue
    return found


class TestOthers:
    def test_everything_is_its_owners_alone(self, lived_in: Estate) -> None:
        found = {path: path.lstat() for path in made_by_us(lived_in) if not path.is_symlink()}
        open_to_others = [
            f"{stat.S_IMODE(seen.st_mode):o} {named(lived_in, path)}"
            for path, seen in found.items()
            if seen.st_mode & 0o077 or seen.st_uid != os.geteuid()
        ]
        assert open_to_others == []
        assert len(lived_in.sockets()) >= 4, "the resident process, a keeper, a worker, tmux"
        names = {named(lived_in, path) for path in found}
        assert {
            *("config/secrets.toml", "config/trusted.json", "state/remuda.db", "state/dispatch.db"),
            *("state/guard.jsonl", "state/unattended.jsonl", "runtime/serve.sock", "data-worktrees"),
        } <= names

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
    def test_another_user_reads_nothing_and_reaches_nobody(self, lived_in: Estate) -> None:
        control = lived_in.as_other(READS, "/etc/passwd", str(lived_in.site.bin / "claude"))
        assert len(control.stdout.splitlines()) == 2, "somebody else gets as far as the home"
        paths = [str(path) for path in lived_in.home.rglob("*")]
        assert lived_in.as_other(READS, *paths).stdout == ""
        assert lived_in.as_other(CALLS, *map(str, lived_in.sockets())).stdout == ""

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
    def test_where_folders_stand_open_files_and_sockets_do_not(self, lived_in: Estate) -> None:
        with opened(lived_in.home, folders=0o755):
            paths = [str(path) for path in lived_in.home.rglob("*") if not path.is_dir()]
            outside = [path for path in paths if "/data-worktrees/" not in path]
            assert lived_in.as_other(READS, *outside).stdout == ""
            assert lived_in.as_other(CALLS, *map(str, lived_in.sockets())).stdout == ""

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
    def test_where_even_sockets_stand_open_nobody_else_is_answered(self, lived_in: Estate) -> None:
        with opened(lived_in.home, folders=0o755, sockets=0o666):
            tmux = lived_in.home / "runtime" / "tmux.sock"
            others = [str(path) for path in lived_in.sockets() if path != tmux]
            told = lived_in.as_other(CALLS, *others).stdout
            attached = lived_in.as_other(ATTACHES, str(shutil.which("tmux")), str(tmux)).stdout
        assert attached.strip() == "access not allowed"
        assert "connected" in told, "somebody else gets as far as the socket"
        assert "answered" not in told


class opened:  # noqa: N801 - reads as a statement
    """Folders and sockets stand open for a while."""

    def __init__(self, home: Path, folders: int, sockets: int | None = None) -> None:
        found = [home, *home.rglob("*")]
        self._modes = {path: folders for path in found if path.is_dir() and not path.is_symlink()}
        self._modes |= {path: sockets for path in found if sockets and path.is_socket()}
        self._before = {path: stat.S_IMODE(path.lstat().st_mode) for path in self._modes}

    def __enter__(self) -> None:
        for path, mode in self._modes.items():
            path.chmod(mode)

    def __exit__(self, *_: object) -> None:
        for path, mode in reversed(self._before.items()):
            path.chmod(mode)


class TestCanaries:
    def test_a_secret_is_in_the_secrets_file_alone(self, lived_in: Estate) -> None:
        assert holding(lived_in, SECRET) == {"config/secrets.toml"}

    def test_prompts_are_in_the_databases_alone(self, lived_in: Estate) -> None:
        found = holding(lived_in, PROMPT)
        assert found
        assert [name for name in found if not name.startswith(KEPT_PROMPTS)] == []

    def test_neither_is_said_or_on_a_command_line_or_in_an_environment(self, lived_in: Estate) -> None:
        assert not [said for said in lived_in.said if PROMPT in said or SECRET in said]
        running = lived_in.site.processes()
        assert len(running) > 4
        own = 0
        for pid in running:
            command, variables = (Path(f"/proc/{pid}/{part}").read_bytes() for part in ("cmdline", "environ"))
            assert PROMPT.encode() not in command + variables
            assert SECRET.encode() not in command
            agent = b"remuda.rehearsal.agent" in command
            assert agent or SECRET.encode() not in variables, command
            own += agent and SECRET.encode() in variables
        assert own == 2, "the agents of both sessions have their key, and nobody else"


class TestLeaks:
    """Runs, tasks and messages with a password in the database's address and keys in the environment, also
    where they fail."""

    @pytest.mark.parametrize(
        "arguments",
        [
            ("task", "submit", "--agent", "rehearsal", PROMPT),
            ("task", "list", "--json"),
            ("task", "get", "01J00000000000000000000000"),
            ("worker", "--once"),
            ("worker", "--status", "--json"),
            ("agents", "--json"),
            ("send", "rehearsal", "--mode", "peer-only", PROMPT),
            ("peer", "list"),
            ("run", "--agent", "limited", PROMPT),
            ("doctor", "--json"),
        ],
    )
    @pytest.mark.parametrize("configured", [True, False])
    def test_a_database_that_does_not_answer(
        self, site: Site, arguments: tuple[str, ...], configured: bool
    ) -> None:
        text = '[agents.limited]\nruntime = "rehearsal"\nlimits.rate = "30/m"\n'
        if configured:
            text = f'database_url = "{URL}"\n{text}'
        (site.home / "config").mkdir(parents=True, mode=0o700)
        (site.home / "config" / "config.toml").write_text(text)
        ended = site.remuda("-v", *arguments, **({} if configured else {"REMUDA_DATABASE_URL": URL}))
        assert SECRET not in ended.stdout + ended.stderr
        assert PROMPT not in ended.stdout + ended.stderr
        for path in site.home.rglob("*"):
            if path.is_file() and path.name != "config.toml":
                assert SECRET.encode() not in path.read_bytes(), path

    def test_the_configuration_is_shown_without_its_password(self, site: Site) -> None:
        (site.home / "config").mkdir(parents=True)
        (site.home / "config" / "config.toml").write_text(f'database_url = "{URL}"\n')
        for arguments in (("list",), ("list", "--json"), ("get", "database_url")):
            ended = site.remuda("config", *arguments)
            assert ended.code == 0
            assert SECRET not in ended.stdout + ended.stderr
            assert "127.0.0.1:9/remuda" in ended.stdout

    def test_no_agent_sees_what_is_not_its_own(self, site: Site) -> None:
        repository(site.cwd)
        site.program("claude", DOES)
        strays = {
            "REMUDA_DATABASE_URL": "",
            "OPENAI_API_KEY": SECRET,
            "MY_PASSWORD": SECRET,
            "GITHUB_TOKEN": SECRET,
        }
        for more in ((), ("--isolated",)):
            ended = site.remuda("run", "--agent", "claude", *more, "--json", "-", stdin=b"env", **strays)
            assert ended.code == 0, ended.stderr
            assert "HOME=" in str(ended.result["text"])
            assert SECRET not in ended.stdout

    @pytest.mark.parametrize("program", [f"{SHELL}exit 3\n", "no program\n", None])
    def test_a_failing_run_repeats_no_prompt(self, site: Site, program: str | None) -> None:
        if program:
            site.program("claude", program)
        ended = site.remuda("-v", "run", "--agent", "claude", "-", stdin=PROMPT.encode())
        assert ended.code != 0
        assert PROMPT not in ended.stdout + ended.stderr
        for path in site.home.rglob("*"):
            assert not path.is_file() or PROMPT.encode() not in path.read_bytes(), path

    def test_a_malformed_secrets_file_is_not_quoted(self, site: Site) -> None:
        (site.home / "config").mkdir(parents=True, mode=0o700)
        file = site.home / "config" / "secrets.toml"
        file.write_text(f"[scopes.global]\nANTHROPIC_API_KEY = {SECRET}\n")
        file.chmod(0o600)
        site.program("claude", DOES)
        for arguments in (("secrets", "list"), ("run", "--agent", "claude", "true"), ("agents",)):
            ended = site.remuda("-v", *arguments)
            assert SECRET not in ended.stdout + ended.stderr
        assert site.remuda("run", "--agent", "claude", "true").code != 0
