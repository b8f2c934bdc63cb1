"""Runs what the guard allows, in a throw-away world, and looks at what it changed.

Usage: python tools/guard_oracle.py [--seed N] [--count N] [--command TEXT]

Commands are made from a grammar, judged as a scout and as a builder, and those that are allowed are run: in
namespaces of their own for mounts, processes and network, with everything read-only but a small file system
in
memory, without rights, with limits. A scout must have changed nothing, a builder nothing outside its
worktree but
what git keeps of its own branches. Prints one JSON object. --command takes one command, which is run
whatever the
guard says.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from oracle_commands import commands

from remuda.guard.judge import judge
from remuda.guard.model import Capability, Context
from remuda.guard.paths import Disk
from remuda.guard.tools import ToolCall

_INSIDE = "--inside"
_PLACES = ("/mnt", "/media", "/srv")
_NOBODY = 65534
_SECONDS = 10
_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _NO_NEW_PRIVILEGES = 1, 32, 4096, 38
_KEPT = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}

WORLD = r"""
set -e
mkdir -p home/.ssh remote.git w tmp && cd w
echo fake > ../home/.ssh/id_rsa
git init -q --bare ../remote.git && git init -q .
mkdir src docs
printf 'a b\nb c\n' > a.txt && cp a.txt README.md && echo 'print(1)' > src/app.py && echo d > docs/d.md
echo '{"name": "p"}' > package.json && printf 'one/\ntwo/\n' > .gitignore
git add -A && git commit -qm one && echo more >> README.md && git commit -qam two
git remote add origin "$PWD/../remote.git" && git push -q origin HEAD && git tag v1
git worktree add -q -b mine/task one && git worktree add -q -b other/task two && mkdir one10
cd one
printf -- '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-a b\n+x y\n b c\n' > x.diff
ln -s .. link_root && ln -s ../README.md link_file && ln -s src inner && mkdir empty
tar cf a.tar a.txt && gzip -c a.txt > a.gz && echo 'b c' > 'b c.txt' && echo changed >> src/app.py
"""
"""The world: a repository with two worktrees, of which ``one`` is the agent's, a home, a remote."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--command")
    parser.add_argument(_INSIDE)
    options = parser.parse_args()
    if options.inside is None:
        enter(sys.argv[1:])
    base = Path(options.inside) / "oracle"
    build(Path(options.inside), base)
    found = [options.command] if options.command else commands(options.seed, options.count, str(base))
    print(json.dumps(examine(found, base, forced=bool(options.command))))


def enter(arguments: list[str]) -> None:
    """Begin again in namespaces of our own."""
    unshare = shutil.which("unshare")
    place = next((each for each in _PLACES if Path(each).is_dir()), None)
    if unshare is None or place is None:
        sys.exit(
            f"the oracle needs 'unshare' (util-linux) and one of {', '.join(_PLACES)} to mount its world on"
        )
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    spaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
    os.execv(unshare, [unshare, *spaces, *user, sys.executable, __file__, *arguments, _INSIDE, place])


def build(place: Path, base: Path) -> None:
    """A small file system in memory with the world in it, and everything else read-only."""
    _mount("tmpfs", str(place), "tmpfs", 6, "size=128m,mode=755")
    base.mkdir()
    subprocess.run(["bash", "-c", WORLD], cwd=base, env=_environment(base), check=True, capture_output=True)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        point = fields[4].replace("\\040", " ")
        if point != str(place):
            kept = sum(flag for name, flag in _KEPT.items() if name in fields[5].split(","))
            with contextlib.suppress(OSError):
                _mount("none", point, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept, "")
    for probe in ("/", "/tmp", "/var/tmp", "/home", "/root", str(Path(__file__).parent)):
        if Path(probe).is_dir() and os.access(probe, os.W_OK) and not os.statvfs(probe).f_flag & os.ST_RDONLY:
            sys.exit(f"the oracle could not make {probe} read-only, and runs nothing")
    if _drops():
        for path in [base, *base.rglob("*")]:
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def _mount(source: str, target: str, kind: str, flags: int, data: str) -> None:
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode() or None):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def _drops() -> bool:
    """Whether this is the real root, who must not run anything here."""
    return (
        len(Path("/proc/self/uid_map").read_text().split()) == 3
        and int(Path("/proc/self/uid_map").read_text().split()[2]) > 1
    )


def _environment(base: Path) -> dict[str, str]:
    names = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    return {
        "HOME": str(base / "home"),
        "TMPDIR": str(base / "tmp"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **names,
    }


def examine(found: list[str], base: Path, *, forced: bool) -> dict[str, object]:
    """Judge and run commands; what was changed that should not have been."""
    pristine = base.parent / "pristine"
    subprocess.run(["cp", "-a", str(base), str(pristine)], check=True)
    runs: dict[str, int] = {}
    wrong: list[dict[str, object]] = []
    capabilities: tuple[Capability, ...] = ("scout", "builder")
    for capability in capabilities:
        runs[capability] = 0
        for command in found:
            if not forced and not _allowed(command, capability, base):
                continue
            runs[capability] += 1
            before = snapshot(base)
            run(command, base)
            after = snapshot(base)
            changed = sorted(
                path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
            )
            bad = [path for path in changed if capability == "scout" or not _own(path)]
            if bad:
                wrong.append({"capability": capability, "command": command, "changed": bad[:10]})
            if changed:
                shutil.rmtree(base)
                subprocess.run(["cp", "-a", str(pristine), str(base)], check=True)
    return {"commands": len(found), "allowed": runs, "wrong": wrong}


def _allowed(command: str, capability: Capability, base: Path) -> bool:
    where = Context(
        capability=capability,
        worktree=str(base / "w/one"),
        project_root=str(base / "w"),
        home=str(base / "home"),
        branch_prefix="mine/",
    )
    call = ToolCall("Bash", {"command": command}, str(base / "w/one"))
    return judge(call, where, Disk()).decision == "allow"


def _own(path: str) -> bool:
    """Whether a builder may have changed a path: its worktree, and what git keeps of its branches."""
    store = ("objects", "worktrees/one", "refs/heads/mine", "logs/refs/heads/mine")
    inside = path.startswith("w/one/") and not path.startswith("w/one/.git")
    return inside or path == "w/.git" or any(path.startswith(f"w/.git/{each}") for each in store)


def snapshot(base: Path) -> dict[str, str]:
    """Everything there is: names, kinds, modes, contents, where links lead, when files were changed, and what
    git's refs and indexes say, however they are stored."""
    found = _refs(base)
    for folder, names, files in os.walk(base):
        for name in [*names, *files]:
            path = Path(folder, name)
            told = str(path.relative_to(base))
            if not told.startswith(_STORED_ANYHOW):
                found[told] = _described(path, timed=not told.startswith(("w/.git/", "remote.git/")))
    return found


_STORED_ANYHOW = (
    "w/.git/refs",
    "w/.git/packed-refs",
    "w/.git/info/refs",
    "remote.git/refs",
    "remote.git/packed-refs",
)


def _described(path: Path, *, timed: bool) -> str:
    status = path.lstat()
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if not path.is_file():
        return f"{status.st_mode:o}"
    content = path.read_bytes()
    if path.name == "index" and ".git" in path.parts:
        content = _index(path, content)
    digest = hashlib.sha256(content).hexdigest()
    return f"{status.st_mode:o} {digest} {status.st_nlink}" + (f" {status.st_mtime_ns}" if timed else "")


_indexes: dict[bytes, bytes] = {}


def _index(path: Path, content: bytes) -> bytes:
    """What is staged: the rest of an index is what git remembers of the files' times."""
    if content not in _indexes:
        environment = {"PATH": "/usr/bin:/bin", "GIT_INDEX_FILE": str(path), "GIT_CONFIG_NOSYSTEM": "1"}
        argv = [
            "git",
            "-c",
            "safe.directory=*",
            f"--git-dir={path.parents[2] if 'worktrees' in path.parts else path.parent}",
        ]
        shown = subprocess.run(
            [*argv, "ls-files", "--stage"], env=environment, capture_output=True, check=True
        )
        _indexes[content] = shown.stdout
    return _indexes[content]


def _refs(base: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for store in ("w/.git", "remote.git"):
        argv = ["git", "-c", "safe.directory=*", f"--git-dir={base / store}", "for-each-ref"]
        environment = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
        shown = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
        for line in shown.splitlines():
            value, _, name = line.partition("\t")
            found[f"{store}/{name}"] = value
    return found


def run(command: str, base: Path) -> None:
    """Run a command without rights, within limits, and end whatever it leaves behind."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["bash", "-c", command],
            cwd=base / "w/one",
            env=_environment(base),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            preexec_fn=_confine,
            start_new_session=True,
        )
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass


def _confine() -> None:
    for limit, value in (
        (resource.RLIMIT_CPU, _SECONDS),
        (resource.RLIMIT_FSIZE, 1 << 24),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    if _drops():
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


if __name__ == "__main__":
    if os.getpid() != 1 and _INSIDE in sys.argv:
        sys.exit("the oracle runs commands only in a process namespace of its own")
    main()
