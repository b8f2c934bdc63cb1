"""The launcher on its own: signals, ways out, Landlock, other users; and the proxy and the hooks' relay."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sandboxes import config, connects, inside, listener, said
from tests.support import Site, carrying, eventually

import remuda
from remuda.hooks.wire import MAGIC, REQUEST, message
from remuda.sandbox import landlock
from remuda.sandbox.abilities import look
from remuda.sandbox.bwrap import Walls, arguments
from remuda.sandbox.fences import rules_of
from remuda.sandbox.hookrelay import attend_hooks
from remuda.sandbox.mounts import Mount
from remuda.sandbox.programs import parts_of
from remuda.sandbox.spec import Network, Rule, Spec, encoded
from remuda.sandbox.system import system

PACKAGE = Path(remuda.__file__).parent
LAUNCH = Path("remuda", "sandbox", "launch.py")
SYSTEM_PYTHON = "/usr/bin/python3"
SOMEBODY = 54321


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody can enter."""
    made = Path(tempfile.mkdtemp(prefix="rmd-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def walls(folder: Path, *more: Mount, network: bool = True) -> tuple[str, ...]:
    able = look(os.environ)
    assert able.bubblewrap is not None
    mounts = (*system(), Mount(str(folder), "rw"), *more)
    return (able.bubblewrap, *arguments(Walls(mounts=mounts, cwd=folder, network=network)))


def launcher(
    folder: Path, spec: Spec, command: str, python: str = sys.executable, code: Path = PACKAGE.parent
) -> list[str]:
    place = folder / "spec.json"
    place.write_bytes(encoded(spec))
    place.chmod(0o644)
    return [python, "-I", "-S", str(code / LAUNCH), str(place), "/bin/sh", "-c", command]


def run(
    folder: Path,
    spec: Spec,
    command: str,
    *prefix: str,
    python: str = sys.executable,
    code: Path = PACKAGE.parent,
    **env: str,
) -> str:
    ended = subprocess.run(
        [*prefix, *launcher(folder, spec, command, python, code)],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.stdout + ended.stderr


class TestSignals:
    @pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
    def test_it_is_asked_to_end_and_its_exit_code_arrives(self, folder: Path, engine: str) -> None:
        spec = Spec(command=walls(folder)) if engine == "bubblewrap" else Spec(rules=fence(folder))
        command = "trap 'echo bye > bye; exit 7' TERM; touch ready; while :; do sleep 0.05; done"
        process = subprocess.Popen(
            launcher(folder, spec, command), cwd=folder, env={"PATH": "/usr/bin:/bin"}, start_new_session=True
        )
        eventually((folder / "ready").exists)
        assert not (folder / "spec.json").exists()
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(30) == 7
        assert (folder / "bye").exists()

    def test_everything_falls_with_the_launcher(self, folder: Path) -> None:
        process = subprocess.Popen(
            launcher(folder, Spec(command=walls(folder)), "setsid sleep 64 & touch ready; sleep 64"),
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "MARKED": str(folder)},
        )
        eventually((folder / "ready").exists)
        process.kill()
        process.wait()
        eventually(lambda: not carrying(f"MARKED={folder}"))

    def test_nothing_is_left_behind_where_no_walls_fall_in(self, folder: Path) -> None:
        left = "setsid sh -c 'echo $$ > left; exec env -i /bin/sleep 64' & while [ ! -s left ]; do :; done"
        run(folder, Spec(rules=fence(folder)), left)
        pid = int((folder / "left").read_text())
        assert not Path(f"/proc/{pid}").exists()

    def test_a_time_that_is_over(self, folder: Path) -> None:
        text = run(
            folder, Spec(command=walls(folder), timeout=0.5), "trap '' TERM; sleep 60 & wait; sleep 60"
        )
        assert "time is over" in text

    def test_walls_that_cannot_be_built_start_nothing(self, folder: Path) -> None:
        missing = Mount("/nowhere", "ro", "/does/not/exist")
        text = run(folder, Spec(command=walls(folder, missing)), "touch ran")
        assert "bwrap: " in text
        assert not (folder / "ran").exists()


class TestAnotherUser:
    """Without any rights, as most users are; where the tests run so anyway, this is the same once more. The
    code is a copy that everybody can read: the checkout may lie in a home of root's."""

    @pytest.fixture
    def code(self, folder: Path) -> Path:
        shutil.copytree(PACKAGE, folder / "remuda", ignore=shutil.ignore_patterns("__pycache__"))
        return folder

    @pytest.fixture
    def prefix(self, folder: Path) -> tuple[str, ...]:
        if os.geteuid() != 0:
            return ()
        shutil.chown(folder, SOMEBODY, SOMEBODY)
        ids = ("--reuid", str(SOMEBODY), "--regid", str(SOMEBODY), "--clear-groups")
        return ("setpriv", *ids, "--inh-caps=-all")

    def test_walls_and_ways(self, folder: Path, code: Path, prefix: tuple[str, ...]) -> None:
        able = subprocess.run(
            [*prefix, "bwrap", "--unshare-net", "--ro-bind", "/", "/", "true"], capture_output=True, text=True
        )
        with listener() as wanted, listener() as other:
            spec = Spec(command=walls(folder, network=False), network=Network((wanted.port,)))
            tries = "; ".join(
                connects(each.port).replace(sys.executable, SYSTEM_PYTHON) for each in (wanted, other)
            )
            command = f"id -u; touch in; touch /usr/out 2>/dev/null; cat /etc/shadow 2>/dev/null; {tries}"
            text = run(folder, spec, command, *prefix, python=SYSTEM_PYTHON, code=code)
            if able.returncode != 0:
                assert "bwrap: " in text
                assert not (folder / "in").exists()
                return
            assert text.split()[-2:] == ["welcome", "ConnectionRefusedError"]
            assert (wanted.count, other.count) == (1, 0)
            assert (folder / "in").exists()


WITH_A_KEY = (
    "import ctypes, os, sys; call = ctypes.CDLL(None).syscall; call(KEYCTL, 1, None); "
    "call(ADD_KEY, b'user', b'rmd', b'treasure', 8, -3); os.execvp(sys.argv[1], sys.argv[1:])"
)
LOOKING = """import ctypes, socket
call, held = ctypes.CDLL(None).syscall, ctypes.create_string_buffer(64)
call(KEYCTL, 11, call(KEYCTL, 10, -3, b"user", b"rmd", 0), held, 64)
print("key", held.value)
try:
    socket.socket(socket.AF_UNIX).connect("\\0rmd-SOCKET")
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


class TestWhatOthersShare:
    """Keys of the session, and abstract sockets, which are no files and belong to the machine's network."""

    @pytest.mark.parametrize("engine", [None, "bubblewrap", "landlock"])
    def test_it_is_left_outside(self, folder: Path, engine: str | None) -> None:
        numbers = {"x86_64": (250, 248), "aarch64": (219, 217)}[platform.machine()]

        def spelled(text: str) -> str:
            named = text.replace("KEYCTL", str(numbers[0])).replace("ADD_KEY", str(numbers[1]))
            return named.replace("SOCKET", folder.name)

        (folder / "look.py").write_text(spelled(LOOKING))
        prefix = (SYSTEM_PYTHON, "-c", spelled(WITH_A_KEY))
        command = f"{SYSTEM_PYTHON} -I -S look.py"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"\0rmd-{folder.name}")
            server.listen()
            if engine is None:
                text = subprocess.check_output([*prefix, *command.split()], cwd=folder, text=True)
                assert text.split("\n")[:2] == ["key b'treasure'", "reached"]
                return
            spec = Spec(command=walls(folder)) if engine == "bubblewrap" else Spec(rules=fence(folder))
            text = run(folder, spec, command, *prefix)
        assert text.split("\n")[:2] == ["key b''", "PermissionError"]


def test_programs_of_a_user_come_without_the_data_beside_them(folder: Path) -> None:
    for name in ("bin", "lib", "share"):
        (folder / ".local" / name).mkdir(parents=True)
    program = folder / ".local/bin/agent"
    program.touch()
    assert {*parts_of(str(program), {})} == {folder / ".local/bin", folder / ".local/lib"}


def fence(folder: Path) -> tuple[Rule, ...]:
    return rules_of((*system(), Mount(str(folder), "rw")))


class TestLandlock:
    def test_what_it_keeps_shut(self, folder: Path) -> None:
        if landlock.version() < 6:
            pytest.fail("this kernel has no Landlock that is good enough; 'remuda sandbox check' says so")
        beside = folder.with_name(f"{folder.name}-beside")
        beside.mkdir()
        (beside / "file").write_text("treasure")
        (folder / "link").symlink_to(beside)
        path = folder / "sock"
        with socket.socket(socket.AF_UNIX) as server, subprocess.Popen(["sleep", "60"]) as bystander:
            server.bind(str(path))
            server.listen()
            code = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"
            try:
                text = run(
                    folder,
                    Spec(rules=fence(folder)),
                    f"echo x > in; cat {beside}/file link/file; (echo x > link/new) 2>/dev/null; ls /tmp; "
                    f"cat /etc/shadow; kill -0 {bystander.pid} && echo SIGNALLED; "
                    f'cat /proc/{bystander.pid}/environ > got; {SYSTEM_PYTHON} -I -S -c "{code}" 2>&1; '
                    "grep CapEff /proc/self/status; mount -t tmpfs none . && echo MOUNTED",
                )
            finally:
                bystander.kill()
        shutil.rmtree(beside)
        assert (folder / "in").read_text() == "x\n"
        assert (folder / "got").read_bytes() == b""
        assert "treasure" not in text
        assert "root:" not in text
        assert "SIGNALLED" not in text
        assert "MOUNTED" not in text
        assert "PermissionError" in text
        assert "0000000000000000" in text

    def test_no_half_of_a_pair_is_led_to_a_socket(self, folder: Path) -> None:
        """One that sends datagrams may name another receiver each time; others are bound to each other."""
        code = (
            "import socket\n"
            "for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, socket.SOCK_STREAM):\n"
            " try:\n"
            "  one, other = socket.socketpair(socket.AF_UNIX, kind)\n"
            f"  one.sendto(b'escaped', '{folder}/sock')\n"
            "  print('paired')\n"
            " except OSError as error: print(error.strerror)"
        )
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(str(folder / "sock"))
            server.setblocking(False)
            text = run(folder, Spec(rules=fence(folder)), f'{SYSTEM_PYTHON} -I -S -c "{code}"')
            with pytest.raises(BlockingIOError):
                server.recv(99)
        assert text.splitlines() == [
            *("Permission denied", "Permission denied", "paired"),
            "Transport endpoint is already connected",
        ]

    def test_a_machine_without_bubblewrap(self, site: Site) -> None:
        """Only root can take it away for a moment, in a place of its own."""
        if os.geteuid() != 0:
            return
        bwrap = shutil.which("bwrap")
        assert bwrap is not None
        take_away = f'mount --bind /dev/null {bwrap} && exec env PATH=$SITE_PATH "$@"'
        whole = ["unshare", "--mount", "sh", "-c", take_away, "sh", sys.executable, "-m", "remuda"]
        env = {**site.env, "PATH": os.environ["PATH"], "SITE_PATH": str(site.bin)}

        def remuda_without(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*whole, *arguments], cwd=site.cwd, env=env, capture_output=True, text=True, timeout=60
            )

        checked = remuda_without("sandbox", "check")
        assert checked.returncode == 5
        assert "✓ workspace: enforced by landlock" in checked.stdout
        assert "✗ offline" in checked.stdout
        (site.folder / "notes.txt").write_text("treasure")
        inside(site, "workspace", "touch in; cat ../notes.txt; touch ../out || echo refused")
        env["REHEARSAL_SCENARIO"] = str(site.folder / "scenario.yaml")
        go = ("run", "--agent", "rehearsal", "--permission", "bypass", "go", "--sandbox")
        ended = remuda_without(*go, "workspace")
        assert ended.returncode == 0, ended.stderr
        assert "refused" in ended.stdout
        assert "treasure" not in ended.stdout
        assert remuda_without(*go, "offline").returncode == 5
        subprocess.run(["git", "init", "-q", "."], cwd=site.cwd, check=True, env={"PATH": os.environ["PATH"]})
        ended = remuda_without(*go, "workspace")
        assert ended.returncode == 5
        assert "Landlock cannot keep" in ended.stderr


class TestHooks:
    def test_only_what_hooks_say_gets_through(self, folder: Path) -> None:
        place, resident = folder / "hooks.sock", folder / "serve.sock"
        heard: list[bytes] = []
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(resident))
            server.listen()

            def serve() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        peer, _ = server.accept()
                        with peer:
                            heard.append(peer.recv(4096))
                            peer.sendall(b"verdict")

            threading.Thread(target=serve, daemon=True).start()
            attend_hooks(str(place), str(resident))
            assert place.stat().st_mode & 0o077 == 0
            answers = []
            for words in (b"POST /v1/run HTTP/1.1\r\n\r\n", message(*[b"question"] * REQUEST)):
                with socket.socket(socket.AF_UNIX) as peer:
                    peer.settimeout(10)
                    peer.connect(str(place))
                    peer.sendall(words)
                    with contextlib.suppress(ConnectionResetError):
                        answers.append(peer.recv(4096))
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
        assert answers[-1] == b"verdict"
        assert b"verdict" not in answers[:-1]
        assert len(heard) == 1
        assert heard[0].startswith(MAGIC)

    def test_the_resident_process_cannot_be_reached_otherwise(self, serving: Site) -> None:
        path = serving.home / "runtime" / "serve.sock"
        assert path.exists()
        text = said(inside(serving, "workspace", f"ls {path} 2>&1; echo tried"))
        assert "No such file" in text
        config(serving, "[sandboxes.x]\npaths = [{ path = '~/remuda/runtime', mode = 'rw' }]\n")
        assert inside(serving, "x", "true").code == 5

    def test_a_hook_inside_is_answered_and_put_on_record_outside(self, serving: Site, folder: Path) -> None:
        runtime = serving.home / "runtime"
        shown = [Path(remuda.__file__).parents[1], *parts_of(sys.executable, os.environ)]
        mounts = (
            *(Mount(str(each), "ro", str(each.resolve())) for each in shown),
            Mount(str(runtime / "serve.sock"), "rw", str(folder / "hooks.sock")),
        )
        spec = Spec(
            command=walls(folder, *mounts),
            hooks=(str(folder / "hooks.sock"), str(runtime / "serve.sock")),
        )
        payload = '{"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}'
        client = Path(remuda.__file__).parent / "hooks" / "client.py"
        command = f"echo '{payload}' | {sys.executable} -I -S {client} pre-tool-use"
        text = run(folder, spec, command, REMUDA_HOME=str(serving.home))
        assert '"permissionDecision":"deny"' in text.replace(" ", "")
        record = "".join(path.read_text() for path in (serving.home / "state").rglob("*.jsonl"))
        assert '"rule":"remove.root"' in record

    def test_it_is_found_inside_where_hooks_look_for_it(self, site: Site, folder: Path) -> None:
        """As most users have it: it is in a folder for sockets, which is not there inside."""
        for name in ("REMUDA_HOME", "REMUDA_HOOK_ENGINE"):
            del site.env[name]
        sockets = folder / "sockets"
        sockets.mkdir(mode=0o700)
        site.env["XDG_RUNTIME_DIR"] = str(sockets)
        client = Path(remuda.__file__).parent / "hooks" / "client.py"
        site.program("python3", f"#!/bin/sh\nexec {sys.executable} -I -S {client} pre-tool-use < asked\n")
        site.write("asked", '{"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}')
        steps = [{"tool": "shell", "input": {"command": "python3 ask.py"}}, {"text": "{tool_result}"}]
        told = site.folder / "scenario.yaml"
        told.write_text(json.dumps({"name": "t", "rules": [{"steps": steps}]}))
        resident = site.start("serve")
        try:
            eventually((sockets / "remuda" / "serve.sock").exists)
            asked = ("run", "--agent", "rehearsal", "--capability", "builder", "--sandbox", "workspace", "go")
            ended = site.remuda(*asked, REHEARSAL_SCENARIO=str(told))
        finally:
            resident.terminate()
            resident.communicate()
        assert "remove.root" in ended.stdout, ended.stderr
        assert '"rule":"remove.root"' in (site.folder / ".local/state/remuda/guard.jsonl").read_text()

    def test_what_is_asked_inside_names_no_program_outside(self, serving: Site, folder: Path) -> None:
        """Whose settings count, and so which other judges are started, is not for the agent to say."""
        runtime, evil = serving.home / "runtime", folder / "evil"
        (evil / "config").mkdir(parents=True)
        judge = evil / "judge"
        judge.write_text(f"#!/bin/sh\ntouch {serving.folder}/outside\n")
        judge.chmod(0o755)
        (evil / "config/config.toml").write_text(f"[hooks]\njudges = ['{judge}']\n")
        client = Path(remuda.__file__).parent / "hooks" / "client.py"
        payload = b'{"tool_name": "Bash", "tool_input": {"command": "ls"}}'
        said_by = (str(client), "pre-tool-use", "claude", "claude", str(folder), f"REMUDA_HOME={evil}")
        (folder / "asked").write_bytes(message(*(each.encode() for each in said_by), payload))
        dial = (
            "import socket; s = socket.socket(socket.AF_UNIX); "
            f"s.connect('{folder}/hooks.sock'); s.sendall(open('asked', 'rb').read()); print(s.recv(999))"
        )
        spec = Spec(command=walls(folder), hooks=(str(folder / "hooks.sock"), str(runtime / "serve.sock")))
        text = run(folder, spec, f'{SYSTEM_PYTHON} -I -S -c "{dial}"', REMUDA_HOME=str(serving.home))
        assert "RMD1" in text
        assert not (serving.folder / "outside").exists()
