"""A PostgreSQL server of the tests' own: in a folder of its own, on a unix socket, and gone when they are."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import psycopg
import pytest
from psycopg import sql

from remuda.core.ids import ulid
from remuda.core.postgres import PostgresDatabase
from remuda.core.processes import Command, started
from remuda.core.sql import Database
from remuda.core.sqlite import SqliteDatabase

Mode = Literal["fast", "immediate"]
"""How a server is ended: *fast* ends its clients' connections, *immediate* is like a crash."""

_FINDER = Path(__file__).parents[1] / "tools" / "postgres.py"
_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": "200", "timezone": "UTC"}
_AS_USER = (
    "import os, sys; user, group, log = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]\n"
    "if os.getuid() == 0: os.setgroups([]); os.setgid(group); os.setuid(user)\n"
    "handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)\n"
    "os.dup2(handle, 1); os.dup2(handle, 2); os.execv(sys.argv[4], sys.argv[4:])"
)


class Server:
    """A server with a user ``remuda``, who needs no password; root has it run as another user."""

    def __init__(self, folder: Path) -> None:
        found = subprocess.run([sys.executable, _FINDER], stdout=subprocess.PIPE, text=True, check=True)
        self._programs, self.folder = Path(found.stdout.strip()), folder
        self._user = _somebody()
        self._running = contextlib.ExitStack()
        os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        options = ("--auth=trust", "--username=remuda", "--encoding=UTF8", "--locale=C", "--no-sync")
        self._popen = self._start("initdb", "--pgdata", str(folder / "data"), *options)
        assert self._popen.wait(120) == 0, self.log()
        self._running.close()

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        ids = (str(self._user.pw_uid), str(self._user.pw_gid))
        launcher = (sys.executable, "-I", "-S", "-c", _AS_USER, *ids, str(self.folder / "log"))
        argv = (*launcher, str(self._programs / program), *arguments)
        env = {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self.folder)}
        return self._running.enter_context(started(Command(argv=argv, env=env, cwd=self.folder))).popen

    def log(self) -> str:
        """What it has said so far."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        places = ("-D", str(self.folder / "data"), "-k", str(self.folder))
        self._popen = self._start("postgres", *places, *settings)
        end = time.monotonic() + 120
        while not self._ready():
            assert self._popen.poll() is None, self.log()
            assert time.monotonic() < end, self.log()
            time.sleep(0.02)

    def _ready(self) -> bool:
        try:
            with psycopg.connect(self.url("postgres"), connect_timeout=5):
                return True
        except psycopg.Error:
            return False

    def stop(self, mode: Mode = "fast") -> None:
        """End it, and wait until it has ended."""
        self._popen.send_signal(_SIGNALS[mode])
        self._popen.wait(60)
        self._running.close()

    def restart(self, mode: Mode = "fast") -> None:
        """End it and start it again, at the same address and with what was committed."""
        self.stop(mode)
        self.start()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """It neither answers nor breaks a connection while the block lasts."""
        family = [self._popen.pid]
        for pid in family:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(pid, signal.SIGSTOP)
                family += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        try:
            yield
        finally:
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def url(self, database: str) -> str:
        """What names one of its databases."""
        return f"postgresql://remuda@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a new database, which is gone afterwards."""
        name = f"test_{ulid().lower()}"
        self._do("CREATE DATABASE {}", name)
        try:
            yield self.url(name)
        finally:
            self._do("DROP DATABASE {} WITH (FORCE)", name)

    def _do(self, statement: str, name: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


def _somebody() -> pwd.struct_passwd:
    """Who the server runs as: it refuses to be root."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server, one for each process that runs tests; a test may restart it."""
    folder = Path(tempfile.mkdtemp(prefix="remuda-pg-", dir="/tmp"))
    try:
        server = Server(folder)
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class SharedStore:
    """A fresh shared database, of either kind, as processes of a test are told of it."""

    def __init__(self, path: Path, server: Server | None, url: str | None) -> None:
        self.path, self.server, self.url = path, server, url

    @property
    def environ(self) -> Mapping[str, str]:
        """What processes need in their environment to use it; SQLite lies where REMUDA_HOME says."""
        return {"REMUDA_DATABASE_URL": self.url} if self.url else {}

    def open(self) -> Database:
        """Another handle on it; whoever opens it closes it."""
        return PostgresDatabase(self.url) if self.url else SqliteDatabase(self.path)


@pytest.fixture(params=["sqlite", "postgres"])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedStore]:
    """A fresh shared database: once on SQLite (below ``site``'s state folder), once on PostgreSQL."""
    path = tmp_path / "site" / "remuda" / "state" / "dispatch.db"
    if request.param == "sqlite":
        yield SharedStore(path, None, None)
        return
    server: Server = request.getfixturevalue("postgres")
    with server.fresh() as url:
        yield SharedStore(path, server, url)


@pytest.fixture
def shared_database(shared_store: SharedStore) -> Iterator[Database]:
    """A handle on a fresh shared database, once of each kind."""
    database = shared_store.open()
    yield database
    database.close()
