"""Worktrees of isolated runs where a repository, an agent or a person does what nobody expects: nothing
of the repository's own runs, and nothing of the work is lost."""

from __future__ import annotations

import shutil

import pytest
from tests.integration.repositories import (
    agent,
    collected,
    git,
    isolated,
    listed,
    on_branch,
    repository,
    tree,
    work,
)
from tests.support import Site

COMMIT = "git -c user.name=A -c user.email=a@b commit -q"


@pytest.fixture
def repo(site: Site) -> Site:
    """A site whose working folder is a repository."""
    agent(site)
    return site


class TestHostileRepositories:
    @pytest.mark.parametrize("bad", ["bad", "a=b"])
    def test_nothing_of_its_settings_runs(self, repo: Site, bad: str) -> None:
        """Hooks, filters and monitors of a repository are programs of whoever made it, or of an agent that
        worked there before."""
        ran = repo.folder / "ran"
        evil = repo.program("evil", f"#!/bin/sh\necho \"$0 $*\" >> '{ran}'\ncat\n")
        hooks = repo.cwd / ".git" / "hooks"
        for name in (
            "post-checkout",
            "pre-commit",
            "commit-msg",
            "post-index-change",
            "reference-transaction",
        ):
            (hooks / name).write_text(f"#!/bin/sh\nexec {evil} </dev/null\n")
            (hooks / name).chmod(0o755)
        for key in ("clean", "smudge", "process"):
            git(repo.cwd, "config", f"filter.{bad}.{key}", str(evil))
        for key in ("core.fsmonitor", "gpg.program", "diff.external", "core.editor", "diff.bad.textconv"):
            git(repo.cwd, "config", key, str(evil))
        for key in ("commit.gpgSign", f"filter.{bad}.required"):
            git(repo.cwd, "config", key, "true")
        (repo.cwd / ".git" / "info").mkdir(exist_ok=True)
        (repo.cwd / ".git" / "info" / "attributes").write_text(f"* filter={bad} diff=bad\n")
        ran.unlink(missing_ok=True)
        ended = isolated(repo, "echo x > y")
        assert on_branch(repo, ended, "y") == "x"
        assert listed(repo)[0]["state"] == "handed back"
        assert len(collected(repo)["removed"]) == 1
        assert not ran.exists(), ran.read_text()

    def test_a_worktree_that_points_elsewhere_does_not_mislead(self, repo: Site) -> None:
        other = repository(repo.folder / "other")
        ran = repo.folder / "ran"
        evil = repo.program("evil", f"#!/bin/sh\ntouch '{ran}'\n")
        git(other, "config", "core.fsmonitor", str(evil))
        git(other, "config", "core.worktree", str(repo.folder))
        ended = isolated(repo, f"echo x > y; echo 'gitdir: {other}/.git' > .git")
        assert on_branch(repo, ended, "y") == "x"
        assert not ran.exists()
        assert git(other, "log", "--format=%s", "--all") == "first"

    def test_a_filter_of_the_users_own_still_works(self, repo: Site) -> None:
        repo.program("upper", f"#!/bin/sh\nexec {repo.bin}/env -i /usr/bin/tr a-z A-Z\n")
        (repo.folder / ".gitconfig").write_text(f'[filter "up"]\n\tclean = {repo.bin}/upper\n')
        (repo.cwd / ".gitattributes").write_text("*.up filter=up\n")
        git(repo.cwd, "add", ".")
        git(repo.cwd, "commit", "--quiet", "-m", "attributes")
        ended = isolated(repo, "echo loud > a.up")
        assert on_branch(repo, ended, "a.up") == "LOUD"

    def test_nothing_of_a_repository_within_runs(self, repo: Site) -> None:
        """Its files are looked at by its own filters, as soon as anybody asks whether it is dirty."""
        ran = repo.folder / "ran"
        evil = repo.program("evil", f"#!/bin/sh\ntouch '{ran}'\nexec /bin/cat\n")
        make = f"git init -q own; cd own; echo x > f; git add .; {COMMIT} -m own; git config filter.bad.clean"
        arm = "mkdir -p .git/info; echo '* filter=bad' > .git/info/attributes; sleep 1; echo y > f; rm -f"
        ended = isolated(
            repo, f"{make} {evil}; git -C .. add .; {arm} '{ran}'; cd ..; {COMMIT} -m link; echo 1 > beside"
        )
        assert on_branch(repo, ended, "beside") == "1"
        assert listed(repo)[0]["state"] == "left"
        assert len(collected(repo)["kept"]) == 1
        assert not ran.exists()
        assert (tree(ended) / "own" / "f").read_text() == "y\n"

    def test_nothing_is_fetched(self, repo: Site) -> None:
        """A repository that says it is a partial clone names the program that fetches the rest."""
        ran = repo.folder / "ran"
        evil = repo.program("evil", f"#!/bin/sh\ntouch '{ran}'\nexit 1\n")
        blob = git(repo.cwd, "rev-parse", "HEAD:kept.txt")
        (repo.cwd / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        settings = {"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin"}
        remote = {"promisor": "true", "url": str(repo.folder), "uploadpack": str(evil)}
        for key, value in {**settings, **{f"remote.origin.{key}": remote[key] for key in remote}}.items():
            git(repo.cwd, "config", key, value)
        ended = isolated(repo, "true")
        assert (ended.code, listed(repo)) == (2, [])
        assert not ran.exists()


class TestNothingIsLost:
    def test_a_commit_that_a_person_left_on_no_branch(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        git(tree(ended), "checkout", "--quiet", "--detach")
        (tree(ended) / "later").write_text("mine\n")
        git(tree(ended), "add", ".")
        git(tree(ended), "commit", "--quiet", "-m", "later")
        assert len(collected(repo)["removed"]) == 1
        assert on_branch(repo, ended, "later") == "mine"

    def test_a_branch_whose_base_is_no_more(self, repo: Site) -> None:
        """Both sides have rewritten the commit that the run began with, and Git has forgotten it."""
        ended = isolated(repo, f"echo x > y; git add .; {COMMIT} --amend -m theirs")
        git(repo.cwd, "commit", "--quiet", "--amend", "-m", "mine")
        git(repo.cwd, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        git(repo.cwd, "gc", "--quiet", "--prune=now")
        assert listed(repo)[0]["state"] == "handed back"
        assert [each["branch"] for each in collected(repo)["removed"]] == [work(ended)["branch"]]
        assert on_branch(repo, ended, "y") == "x"

    def test_what_git_cannot_look_at_any_more_is_not_called_clean(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y; rm -rf $(git rev-parse --git-dir)")
        (found,) = listed(repo)
        assert (found["state"], found["dirty"]) == ("left", True)
        assert len(collected(repo)["kept"]) == 1
        assert (tree(ended) / "y").read_text() == "x\n"

    def test_a_submodule_that_goes_on_or_goes_away(self, repo: Site) -> None:
        inner = repository(repo.folder / "inner")
        for name in ("on", "away"):
            git(repo.cwd, "submodule", "--quiet", "add", str(inner), name)
        git(repo.cwd, "commit", "--quiet", "-m", "modules")
        clone = f"rmdir on away; git clone -q {inner} on; cd on; echo 1 > new; git add .; {COMMIT} -m new"
        ended = isolated(repo, clone)
        assert git(repo.cwd, "rev-parse", f"{work(ended)['branch']}:on") == git(
            tree(ended) / "on", "rev-parse", "HEAD"
        )
        assert "away" not in git(repo.cwd, "ls-tree", "--name-only", str(work(ended)["branch"])).split()
        shutil.rmtree(tree(ended) / "on")
        assert len(collected(repo)["removed"]) == 1
