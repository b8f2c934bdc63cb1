"""Git behind walls: commits work, and nothing is left in a repository that would be run outside."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.sandboxes import RUN, inside, said, scenario
from tests.support import Site, eventually, finish


def git(folder: Path, *arguments: str) -> str:
    env = {**os.environ, "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null"}
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    return ran.stdout


class TestRepositories:
    def test_a_commit_in_a_linked_worktree(self, site: Site) -> None:
        main = site.folder / "main"
        main.mkdir()
        git(main, "init", "-b", "main")
        (main / "file").write_text("1")
        git(main, "add", ".")
        git(main, "commit", "-m", "first")
        tree = site.folder / "tree"
        git(main, "worktree", "add", "-b", "work", str(tree))
        before = (main / ".git/index").read_bytes()
        author = "GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e"
        hooks = main / ".git/hooks"
        hooks.mkdir(exist_ok=True)
        text = said(
            inside(
                site,
                "workspace",
                f"echo 2 > file; {author} git commit -q -a -m second && git log --oneline; "
                f"for f in {hooks}/post-commit {main}/.git/config {main}/file {main}/.git/HEAD; do "
                "(echo x >> $f) 2>/dev/null && echo BROKE $f; done; "
                f"mv {main}/.git {main}/.git2 2>/dev/null && echo BROKE git",
                *("--cwd", str(tree)),
            )
        )
        assert "second" in text
        assert "BROKE" not in text
        assert "second" in git(main, "log", "--oneline", "work")
        assert (main / ".git/index").read_bytes() == before
        assert not list(hooks.glob("post-commit"))

    def test_a_folder_of_a_repository_sees_the_rest_of_it(self, site: Site) -> None:
        repository = site.folder / "repo"
        (repository / "part").mkdir(parents=True)
        git(repository, "init", "-b", "main")
        (repository / "top.txt").write_text("top")
        git(repository, "add", ".")
        git(repository, "commit", "-m", "first")
        shutil.rmtree(repository / ".git/hooks", ignore_errors=True)
        text = said(
            inside(
                site,
                "workspace",
                "git status --porcelain; cat ../top.txt; "
                "(echo x > ../top.txt) 2>/dev/null || echo ' refused'; "
                "(echo x > ../.git/hooks/pre-commit) 2>/dev/null && echo BROKE; true",
                *("--cwd", str(repository / "part")),
            )
        )
        assert text.split() == ["top", "refused"]

    @pytest.mark.parametrize("linked", [False, True])
    def test_git_is_led_to_no_other_settings(self, site: Site, linked: bool) -> None:
        """Every file by which Git outside would take its hooks and settings from a place that an agent can
        write to, in the work tree's own Git folder and in those of others."""
        main, tree = site.folder / "main", site.folder / "tree"
        main.mkdir()
        git(main, "init", "-b", "main")
        git(main, "commit", "--allow-empty", "-m", "first")
        git(main, "config", "extensions.worktreeConfig", "true")
        git(main, "worktree", "add", "-b", "work", str(tree))
        own = main / ".git/worktrees/tree"
        shutil.rmtree(main / ".git/hooks", ignore_errors=True)
        names = ("config", "config.worktree", "commondir", "hooks/pre-commit")
        tries = [main / ".git" / name for name in names] + [own / name for name in names[1:3]]
        link = site.folder / "link"
        link.symlink_to(tree if linked else main)
        tries += [link / ".git" if linked else link / ".git/config", tree / ".git"]
        text = said(
            inside(
                site,
                "workspace",
                "; ".join(f"(echo x > {path}) 2>/dev/null && echo BROKE {path}" for path in tries)
                + "; mv .git old 2>/dev/null && echo BROKE .git; git status --short 2>&1; echo tried",
                *("--cwd", str(link)),
            )
        )
        assert text.split() == ["tried"]
        for folder in (main, tree):
            assert git(folder, "status", "--porcelain") == ""

    def test_hooks_that_are_a_link_could_be_replaced(self, site: Site) -> None:
        git(site.cwd, "init", "-b", "main")
        shutil.rmtree(site.cwd / ".git/hooks", ignore_errors=True)
        (site.cwd / ".git/hooks").symlink_to("../mine")
        (site.cwd / "mine").mkdir()
        ended = inside(site, "workspace", "touch ran")
        assert (ended.code, (site.cwd / "ran").exists()) == (5, False)

    @pytest.mark.parametrize("linked", [False, True])
    def test_one_that_is_kept_elsewhere_stays_what_it_is(self, site: Site, linked: bool) -> None:
        elsewhere = site.folder / "elsewhere.git"
        git(site.cwd, "init", "-b", "main", "--separate-git-dir", str(elsewhere))
        if linked:
            (site.cwd / ".git").unlink()
            (site.cwd / ".git").symlink_to(elsewhere)
        ended = inside(site, "workspace", "rm -rf .git; git init -q; git config core.fsmonitor x; echo tried")
        assert ended.code == (5 if linked else 0)
        assert "fsmonitor" not in git(site.cwd, "config", "--list")
        assert (site.cwd / ".git").is_symlink() is linked

    def test_what_somebody_outside_replaces_ends_the_sandbox(self, site: Site) -> None:
        """What is mounted on a file goes with it: the new one is not held, so nobody stays inside."""
        git(site.cwd, "init", "-b", "main")
        hold = (
            "touch ready; while ! (echo '[core] fsmonitor = x' >> .git/config) 2>/dev/null; do sleep 1; done"
        )
        told = scenario(site, f"sleep 0.5; {hold}; touch BROKE; sleep 60")
        process = site.start(*RUN, "--sandbox", "workspace", "go", REHEARSAL_SCENARIO=told)
        eventually((site.cwd / "ready").exists)
        git(site.cwd, "config", "user.name", "x")
        ended = finish(process, 60)
        assert ended.code != 0
        assert "replaced from outside" in ended.stdout + ended.stderr
        assert not (site.cwd / "BROKE").exists()

    def test_others_may_work_in_the_main_checkout(self, site: Site) -> None:
        main, tree = site.folder / "main", site.folder / "tree"
        main.mkdir()
        git(main, "init", "-b", "main")
        git(main, "commit", "--allow-empty", "-m", "first")
        git(main, "worktree", "add", "-b", "work", str(tree))
        told = scenario(
            site, "touch ready; while [ ! -e done ]; do sleep 0.1; done; sleep 6; echo still here"
        )
        process = site.start(
            *RUN, "--sandbox", "workspace", "--cwd", str(tree), "go", REHEARSAL_SCENARIO=told
        )
        eventually((tree / "ready").exists)
        (main / "file").write_text("1")
        git(main, "add", "file")
        git(main, "commit", "-m", "second")
        git(main, "switch", "-c", "other")
        (tree / "done").touch()
        assert "still here" in said(finish(process, 60))

    def test_a_git_file_that_lies_opens_nothing(self, site: Site) -> None:
        other = site.folder / "other"
        other.mkdir()
        git(other, "init", "-b", "main")
        site.write(".git", f"gitdir: {other / '.git'}\n")
        text = said(inside(site, "workspace", f"cat {other}/.git/config; echo tried"))
        assert "core" not in text
        assert "tried" in text
