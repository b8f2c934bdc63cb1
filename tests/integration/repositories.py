"""What the tests of isolated runs share: an agent that does as it is told, and real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import cast

from tests.support import PYTHON, Ended, Site

DOES = f"""{PYTHON}
import json, os, subprocess, sys
env = {{**os.environ, "PATH": os.environ["PATH"] + ":/usr/bin:/bin"}}
done = subprocess.run(["/bin/sh", "-c", sys.stdin.read()], env=env, capture_output=True, text=True)
print(json.dumps({{"type": "system", "subtype": "init", "session_id": "s"}}))
text = done.stdout + done.stderr
print(json.dumps({{"type": "result", "subtype": "success", "session_id": "s", "result": text}}))
"""
"""Takes its prompt for a shell script, and answers with what that printed."""

WHO = ("-c", "user.name=Me", "-c", "user.email=me@example.org")


def git(folder: Path, *arguments: str) -> str:
    """Run git, which has to succeed; what it prints."""
    done = subprocess.run(
        ["git", *WHO, "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return os.fsdecode(done.stdout).removesuffix("\n")


def repository(folder: Path, *, bare: bool = False) -> Path:
    """A repository with two files in one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "kept.txt").write_text("one\ntwo\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.txt").write_text("deep\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    if not bare:
        return folder
    git(folder.parent, "clone", "--quiet", "--bare", str(folder), f"{folder.name}.git")
    return folder.with_name(f"{folder.name}.git")


def agent(site: Site) -> None:
    """Let a site's Claude Code be the agent that does as it is told, and its folder a repository."""
    site.program("claude", DOES)
    repository(site.cwd)


RUN = ("run", "--agent", "claude", "--permission", "bypass", "--isolated", "--json")


def isolated(site: Site, script: str, *more: str) -> Ended:
    return site.remuda(*RUN, *more, "-", stdin=script.encode())


def work(ended: Ended) -> dict[str, object]:
    assert ended.code == 0, ended.stderr
    return cast(dict[str, object], ended.result["work"])


def tree(ended: Ended) -> Path:
    return Path(str(work(ended)["path"]))


def listed(site: Site) -> list[dict[str, object]]:
    return cast(list[dict[str, object]], site.remuda("worktree", "list", "--json").json["worktrees"])


def collected(site: Site, *more: str) -> dict[str, list[dict[str, object]]]:
    answer = site.remuda("worktree", "gc", "--json", *more).json
    return cast(dict[str, list[dict[str, object]]], answer)


def on_branch(site: Site, ended: Ended, name: str) -> str:
    return git(site.cwd, "show", f"{work(ended)['branch']}:{name}")
