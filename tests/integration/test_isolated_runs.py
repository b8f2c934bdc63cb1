"""``remuda run --isolated``: a worktree and a branch of its own, and nothing of the work is ever lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import cast

import pytest
import yaml
from tests.integration.repositories import (
    RUN,
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
from tests.support import Site, eventually, finish


@pytest.fixture
def repo(site: Site) -> Site:
    """A site whose working folder is a repository."""
    agent(site)
    return site


class TestHandingBack:
    def test_what_is_left_uncommitted_is_on_the_branch(self, repo: Site) -> None:
        ended = isolated(repo, "echo three >> kept.txt; echo new > 'a new'; rm sub/deep.txt; pwd")
        done = work(ended)
        assert {name: done[name] for name in ("commits", "files", "insertions", "deletions")} == {
            "commits": 1,
            "files": 3,
            "insertions": 2,
            "deletions": 1,
        }
        assert done["base"] == git(repo.cwd, "rev-parse", "HEAD")
        assert str(done["branch"]).startswith("remuda/claude/")
        assert on_branch(repo, ended, "a new") == "new"
        assert ended.result["text"] == f"{done['path']}\n"
        assert git(repo.cwd, "log", "-1", "--format=%an %cn", str(done["branch"])) == "Remuda Remuda"
        assert git(repo.cwd, "status", "--porcelain") == ""
        assert git(tree(ended), "status", "--porcelain") == ""
        assert not (repo.cwd / "a new").exists()

    def test_commits_of_the_agent_are_counted_with_what_it_left(self, repo: Site) -> None:
        commit = "git -c user.name=A -c user.email=a@b commit -qam mine"
        ended = isolated(repo, f"echo three >> kept.txt; {commit}; echo four >> kept.txt")
        assert work(ended)["commits"] == 2
        assert on_branch(repo, ended, "kept.txt") == "one\ntwo\nthree\nfour"

    def test_a_run_that_changes_nothing_has_no_commit(self, repo: Site) -> None:
        ended = isolated(repo, "true")
        assert (work(ended)["commits"], work(ended)["files"]) == (0, 0)
        assert [each["state"] for each in listed(repo)] == ["clean"]

    def test_a_run_that_is_not_isolated_has_no_work(self, repo: Site) -> None:
        ended = repo.remuda("run", "--agent", "claude", "--json", "-", stdin=b"true")
        assert ended.result.get("work") is None
        assert not (repo.home / "data-worktrees").exists()

    @pytest.mark.parametrize(
        "elsewhere",
        ["git checkout -q --detach", "git checkout -q -b other", "git symbolic-ref HEAD refs/heads/unborn"],
    )
    def test_an_agent_that_went_elsewhere_loses_nothing(self, repo: Site, elsewhere: str) -> None:
        commit = "git -c user.name=A -c user.email=a@b commit -qm"
        ended = isolated(
            repo,
            f"echo 1 > first; git add .; {commit} first; {elsewhere}; echo 2 > second; git add .;"
            f" {commit} second; echo 3 > third",
        )
        assert [on_branch(repo, ended, name) for name in ("first", "second", "third")] == ["1", "2", "3"]
        assert git(tree(ended), "symbolic-ref", "HEAD") == f"refs/heads/{work(ended)['branch']}"
        assert git(tree(ended), "status", "--porcelain") == ""

    def test_histories_that_parted_are_both_on_the_branch(self, repo: Site) -> None:
        commit = "git -c user.name=A -c user.email=a@b commit -qm"
        ended = isolated(
            repo, f"echo 1 > a; git add .; {commit} left; git checkout -q --detach HEAD~1; echo 2 > b;"
            f" git add .; {commit} right"
        )  # fmt: skip
        log = git(repo.cwd, "log", "--format=%s", str(work(ended)["branch"])).splitlines()
        assert {"left", "right"} <= set(log)
        assert on_branch(repo, ended, "b") == "2"

    @pytest.mark.parametrize("flag", ["assume-unchanged", "skip-worktree"])
    def test_files_that_git_was_told_to_pass_over_are_on_the_branch(self, repo: Site, flag: str) -> None:
        ended = isolated(repo, f"git update-index --{flag} kept.txt; echo changed > kept.txt")
        assert on_branch(repo, ended, "kept.txt") == "changed"

    def test_a_conflict_and_a_stale_lock_are_no_obstacle(self, repo: Site) -> None:
        commit = "git -c user.name=A -c user.email=a@b commit -qam"
        ended = isolated(
            repo,
            f"git checkout -q -b side; echo side > kept.txt; {commit} side; git checkout -q -; echo mine >"
            f" kept.txt; {commit} mine; git -c user.name=A -c user.email=a@b merge side;"
            " touch $(git rev-parse --git-dir)/index.lock",
        )
        assert "<<<<<<<" in on_branch(repo, ended, "kept.txt")

    def test_odd_names_survive(self, repo: Site) -> None:
        ended = isolated(
            repo, "echo 1 > 'two\nlines'; echo 2 > '-dash'; echo 3 > 'ü \"q\"'; ln -s /nowhere link"
        )
        assert work(ended)["files"] == 4
        assert on_branch(repo, ended, "two\nlines") == "1"

    def test_a_failing_agent_hands_back_too(self, repo: Site) -> None:
        repo.program("claude", "#!/bin/sh\necho half > half; exit 7\n")
        ended = isolated(repo, "x")
        assert ended.code != 0
        done = cast(dict[str, object], ended.result["work"])
        assert git(repo.cwd, "show", f"{done['branch']}:half") == "half"


class TestPlaces:
    def test_the_same_folder_below_the_root(self, repo: Site) -> None:
        ended = repo.remuda(*RUN, "--cwd", str(repo.cwd / "sub"), "-", stdin=b"pwd; ls")
        assert ended.result["text"] == f"{tree(ended)}/sub\ndeep.txt\n"

    def test_a_folder_that_no_commit_has(self, repo: Site) -> None:
        (repo.cwd / "empty" / "in").mkdir(parents=True)
        ended = repo.remuda(*RUN, "--cwd", str(repo.cwd / "empty" / "in"), "-", stdin=b"pwd")
        assert ended.result["text"] == f"{tree(ended)}/empty/in\n"

    @pytest.mark.parametrize("name", ["with space", "two\nlines", "-dash", "ünïcode"])
    def test_a_repository_with_an_odd_name(self, repo: Site, name: str) -> None:
        folder = repository(repo.folder / name)
        ended = repo.remuda(*RUN, "--cwd", str(folder), "-", stdin=b"echo x > y")
        assert work(ended)["files"] == 1
        assert listed(repo)[0]["repository"] == str(folder)
        assert [each["branch"] for each in collected(repo)["removed"]] == [work(ended)["branch"]]

    def test_a_detached_head(self, repo: Site) -> None:
        git(repo.cwd, "checkout", "--quiet", "--detach")
        assert work(isolated(repo, "echo x > y"))["commits"] == 1

    def test_a_bare_repository(self, repo: Site) -> None:
        bare = repository(repo.folder / "from", bare=True)
        ended = repo.remuda(*RUN, "--cwd", str(bare), "-", stdin=b"ls; echo x > y")
        assert ended.result["text"] == "kept.txt\nsub\n"
        assert git(bare, "show", f"{work(ended)['branch']}:y") == "x"

    def test_a_worktree_of_the_users_own(self, repo: Site) -> None:
        git(repo.cwd, "worktree", "add", "--quiet", "-b", "mine", str(repo.folder / "mine"))
        (repo.folder / "mine" / "only").write_text("here\n")
        git(repo.folder / "mine", "add", ".")
        git(repo.folder / "mine", "commit", "--quiet", "-m", "second")
        ended = repo.remuda(*RUN, "--cwd", str(repo.folder / "mine"), "-", stdin=b"cat only")
        assert ended.result["text"] == "here\n"

    def test_a_sparse_checkout_stays_one(self, repo: Site) -> None:
        git(repo.cwd, "sparse-checkout", "set", "sub")
        (repo.cwd / "sub" / "deep.txt").write_text("changed\n")
        ended = isolated(repo, "ls; mkdir outside; echo x > outside/file")
        assert on_branch(repo, ended, "outside/file") == "x"
        assert on_branch(repo, ended, "kept.txt") == "one\ntwo"
        assert work(ended)["files"] == 1

    def test_submodules_stay_as_they_are_recorded(self, repo: Site) -> None:
        inner = repository(repo.folder / "inner")
        git(repo.cwd, "submodule", "--quiet", "add", str(inner), "module")
        git(repo.cwd, "commit", "--quiet", "-m", "module")
        before = git(repo.cwd, "rev-parse", "HEAD:module")
        ended = isolated(repo, "echo x > y")
        assert work(ended)["files"] == 1
        assert git(repo.cwd, "rev-parse", f"{work(ended)['branch']}:module") == before
        assert len(collected(repo)["removed"]) == 1

    @pytest.mark.parametrize("kind", ["none", "unborn", "git folder"])
    def test_what_is_no_repository_is_refused(self, repo: Site, kind: str) -> None:
        folder = repo.folder / "elsewhere"
        folder.mkdir()
        if kind == "unborn":
            git(folder, "init", "--quiet")
        where = repo.cwd / ".git" / "objects" if kind == "git folder" else folder
        ended = repo.remuda(*RUN, "--cwd", str(where), "-", stdin=b"true")
        assert ended.code == 2, ended.stderr
        assert listed(repo) == []

    def test_a_branch_in_the_way_is_told(self, repo: Site) -> None:
        git(repo.cwd, "branch", "remuda")
        ended = isolated(repo, "true")
        assert ended.code == 2
        assert "remuda" in ended.stderr
        assert git(repo.cwd, "worktree", "list").count("\n") == 0

    def test_uncommitted_changes_are_told_and_left_alone(self, repo: Site) -> None:
        (repo.cwd / "kept.txt").write_text("mine\n")
        ended = isolated(repo, "cat kept.txt")
        assert "uncommitted changes" in ended.stderr
        assert ended.result["text"] == "one\ntwo\n"
        assert (repo.cwd / "kept.txt").read_text() == "mine\n"

    def test_a_worktree_of_ones_own_and_a_named_one_are_too_many(self, repo: Site) -> None:
        ended = isolated(repo, "true", "--worktree", str(repo.cwd))
        assert ended.code == 2


class TestAgain:
    def test_a_session_goes_on_in_its_worktree(self, repo: Site) -> None:
        first = isolated(repo, "echo 1 > a")
        session = str(first.events[-1]["session"])
        again = repo.remuda(
            "run", "--session", session, "--permission", "bypass", "--json", "-", stdin=b"ls; echo 2 > b"
        )
        assert again.result["text"] == "a\nkept.txt\nsub\n"
        assert (work(again)["branch"], work(again)["commits"]) == (work(first)["branch"], 2)
        assert len(listed(repo)) == 1

    def test_one_that_is_gone_is_told(self, repo: Site) -> None:
        first = isolated(repo, "echo 1 > a")
        assert len(collected(repo)["removed"]) == 1
        again = isolated(repo, "ls", "--session", str(first.events[-1]["session"]))
        assert again.code in (2, 4)
        assert "is not a folder" in again.stderr or "gone" in again.stderr

    def test_many_at_once_in_one_repository(self, repo: Site) -> None:
        script = b"echo mine > $$; git add .; git -c user.name=A -c user.email=a@b commit -qm one; echo x > y"
        started = [repo.start(*RUN, "-", stdin=subprocess.PIPE) for _ in range(5)]
        for process in started:
            assert process.stdin is not None
            process.stdin.write(script)
            process.stdin.close()
            process.stdin = None
        ended = [finish(process, 100) for process in started]
        assert [work(each)["commits"] for each in ended] == [2] * 5
        assert len({work(each)["branch"] for each in ended}) == 5
        assert len(listed(repo)) == 5
        assert git(repo.cwd, "fsck", "--no-dangling") == ""

    def test_a_guarded_run_may_write_in_its_own_worktree_and_not_beside_it(self, repo: Site) -> None:
        outside = repo.cwd / "outside.txt"
        steps = [
            {"tool": "Write", "input": {"file_path": name, "content": "x"}}
            for name in ("in.txt", str(outside))
        ]
        commit = "git add . && git -c user.name=A -c user.email=a@b commit -qm mine"
        steps.append({"tool": "Bash", "input": {"command": commit}})
        rules = [{"steps": [*steps, {"text": "done"}]}]
        scenario = repo.folder / "scenario.yaml"
        scenario.write_text(yaml.safe_dump({"name": "test", "rules": rules}))
        ended = repo.remuda(
            *("run", "--agent", "rehearsal", "--isolated", "--capability", "builder", "--cwd", "sub"),
            *("--json", "go"),
            REHEARSAL_SCENARIO=str(scenario),
        )
        assert on_branch(repo, ended, "sub/in.txt") == "x"
        assert ended.result["refused"] == ["Write"]
        assert not outside.exists()

    def test_each_agent_of_a_chain_is_held_in_its_own_way(self, repo: Site) -> None:
        """One that asks is held to the worktree, one whose tools are taken away to the folder it works in."""
        file = repo.home / "config" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text('[agents.a]\nruntime = "rehearsal"\nfailover_to = ["aider"]\n')
        scenario = repo.folder / "scenario.yaml"
        scenario.write_text("name: busy\nrules: [{steps: [{status: 429, message: Rate limit reached.}]}]\n")
        repo.program("aider", "#!/bin/sh\nexit 1\n")
        ended = repo.remuda(
            *("run", "--agent", "a", "--isolated", "--capability", "scout", "--unproven", "--cwd", "sub"),
            *("--json", "go"),
            REHEARSAL_SCENARIO=str(scenario),
        )
        assert (ended.events[-1]["agent"], ended.error["kind"]) == ("aider", "start_failed")


class TestKilled:
    def test_what_was_left_is_shown_and_brought_home_by_gc(self, repo: Site) -> None:
        process = repo.start(*RUN, "echo half > half; echo $$ > pid; sleep 60")
        eventually(lambda: any(repo.home.glob("data-worktrees/*/*/pid")))
        (found,) = listed(repo)
        assert (found["state"], found["dirty"]) == ("running", True)
        assert [each["reason"] for each in collected(repo)["kept"]] == ["a run works in it"]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        eventually(lambda: not repo.processes())
        (found,) = listed(repo)
        assert (found["state"], found["dirty"], found["agent"]) == ("left", True, "claude")
        assert collected(repo, "--dry-run")["removed"][0]["branch"] == found["branch"]
        assert Path(str(found["path"])).is_dir()
        assert collected(repo, "--older-than", "1")["removed"] == []
        assert collected(repo)["removed"][0]["branch"] == found["branch"]
        assert git(repo.cwd, "show", f"{found['branch']}:half") == "half"
        assert not Path(str(found["path"])).exists()
        assert listed(repo) == []

    def test_an_interrupted_run_hands_back(self, repo: Site) -> None:
        process = repo.start(*RUN, "echo half > half; sleep 60")
        eventually(lambda: any(repo.home.glob("data-worktrees/*/*/half")))
        os.kill(process.pid, signal.SIGINT)
        finish(process)
        (found,) = listed(repo)
        assert (found["state"], found["dirty"], found["commits"]) == ("handed back", False, 1)


class TestCollecting:
    def test_a_branch_without_a_commit_goes_and_another_stays(self, repo: Site) -> None:
        idle, busy = isolated(repo, "true"), isolated(repo, "echo x > y")
        gone = {each["session"]: each["branch"] for each in collected(repo)["removed"]}
        assert gone == {idle.events[-1]["session"]: None, busy.events[-1]["session"]: work(busy)["branch"]}
        assert (
            git(repo.cwd, "branch", "--list", "remuda/*", "--format=%(refname:short)") == work(busy)["branch"]
        )
        assert git(repo.cwd, "worktree", "list").count("\n") == 0

    def test_what_a_person_changed_afterwards_is_committed_first(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        (tree(ended) / "later").write_text("mine\n")
        assert listed(repo)[0]["dirty"] is True
        assert len(collected(repo)["removed"]) == 1
        assert on_branch(repo, ended, "later") == "mine"

    def test_where_somebody_works_nothing_is_removed(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        with subprocess.Popen(["sleep", "60"], cwd=tree(ended)) as process:
            (kept,) = collected(repo)["kept"]
            process.kill()
        assert str(process.pid) in str(kept["reason"])

    @pytest.mark.parametrize("committed", [True, False])
    def test_a_repository_within_keeps_it(self, repo: Site, committed: bool) -> None:
        commit = "git -c user.name=A -c user.email=a@b commit -qm own; " if committed else ""
        ended = isolated(
            repo, f"mkdir own; cd own; git init -q; echo x > y; git add .; {commit} cd ..; echo 1 > beside"
        )
        assert on_branch(repo, ended, "beside") == "1"
        assert "not all" in ended.stderr
        (kept,) = collected(repo)["kept"]
        assert kept["reason"]
        assert (tree(ended) / "own" / "y").exists()
        assert listed(repo)[0]["state"] == "left"

    def test_commits_that_cannot_get_onto_the_branch_keep_it(self, repo: Site) -> None:
        """Nothing is uncommitted in it, and nothing but its HEAD leads to them."""
        lock = "$(git rev-parse --git-common-dir)/$(git symbolic-ref HEAD).lock"
        commit = "git -c user.name=A -c user.email=a@b commit -qm own"
        ended = isolated(repo, f"touch {lock}; git checkout -q --detach; echo x > y; git add .; {commit}")
        assert listed(repo)[0]["dirty"] is False
        (kept,) = collected(repo)["kept"]
        assert "lock" in str(kept["reason"])
        next(repo.cwd.glob(".git/refs/heads/remuda/*/*.lock")).unlink()
        assert len(collected(repo)["removed"]) == 1
        assert on_branch(repo, ended, "y") == "x"

    def test_one_that_is_locked_stays(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        git(repo.cwd, "worktree", "lock", str(tree(ended)))
        assert len(collected(repo)["kept"]) == 1
        assert tree(ended).is_dir()

    def test_one_that_was_never_finished_is_cleared_away(self, repo: Site) -> None:
        """As a kill leaves it between the record and the worktree, or in the middle of making that."""
        ended = isolated(repo, "true")
        git(repo.cwd, "worktree", "remove", str(tree(ended)))
        (record,) = (repo.home / "state" / "worktrees").glob("*.json")
        record.write_text(json.dumps({**json.loads(record.read_text()), "handed_back_at": None}))
        assert listed(repo)[0]["state"] == "gone"
        assert [each["branch"] for each in collected(repo)["removed"]] == [None]
        assert git(repo.cwd, "branch", "--list", "remuda/*") == ""

    def test_work_of_a_session_is_not_written_over(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        for path in (repo.home / "state" / "worktrees").glob("*.json"):
            path.unlink()
        again = isolated(repo, "true", "--cwd", str(repo.cwd), "--session", str(ended.events[-1]["session"]))
        assert again.code == 2
        assert on_branch(repo, ended, "y") == "x"
        assert tree(ended).is_dir()

    def test_one_that_was_removed_by_hand_is_forgotten(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        git(repo.cwd, "worktree", "remove", str(tree(ended)))
        assert listed(repo)[0]["state"] == "gone"
        assert len(collected(repo)["removed"]) == 1
        assert (listed(repo), on_branch(repo, ended, "y")) == ([], "x")

    def test_a_repository_that_is_gone_is_told(self, repo: Site) -> None:
        ended = isolated(repo, "echo x > y")
        (repo.cwd / ".git").rename(repo.cwd / "git-away")
        assert len(listed(repo)) == 1
        assert len(collected(repo)["kept"]) == 1
        assert tree(ended).is_dir()

    def test_nothing_of_ours_lies_in_a_worktree(self, repo: Site) -> None:
        ended = isolated(
            repo,
            "ls -a",
        )
        assert ended.result["text"] == ".\n..\n.git\nkept.txt\nsub\n"
        record = next((repo.home / "state" / "worktrees").glob("*.json"))
        assert json.loads(record.read_text())["agent"] == "claude"
        assert time.time() - record.stat().st_mtime < 600
