"""git, gh and glab."""

from __future__ import annotations

import pytest
from tests.unit.guard_calls import effects, told

from remuda.guard.model import Git, Word, literal


@pytest.mark.parametrize(
    "command",
    [
        "git status -sb",
        "git log --oneline -5",
        "git diff --stat HEAD~1 -- src",
        "git branch -a --contains HEAD",
        "git branch --list 'x/*'",
        "git tag",
        "git stash list",
        "git stash show -p",
        "git remote -v",
        "git worktree list",
        "git reflog",
        "git clean -n",
        "git config --get user.name",
        "git config user.name",
        "git symbolic-ref HEAD",
        "git --no-pager show",
        "git -c color.ui=false log",
        "git -c core.pager=cat log",
        "git ls-remote origin",
        "git submodule status",
        "git add -n .",
        "git commit --dry-run",
        "git hash-object -t blob --stdin",
    ],
)
def test_what_only_shows_is_a_read(command: str) -> None:
    assert told(command) == {"git read"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push", {"git push"}),
        ("git push origin HEAD:main", {"git push main"}),
        ("git push --force", {"git push!"}),
        ("git push --force-with-lease", {"git push"}),
        ("git push origin +main", {"git push! main"}),
        ("git push origin :main", {"git push! main"}),
        ("git push --delete origin x", {"git push! x"}),
        ("git push --mirror", {"git push!"}),
        ("git push --frobnicate", {"unknown", "git push"}),
        ("git push http://h/r x", {"git push x", "send h file"}),
        ("git -C d push", {"git push"}),
        ("git -c a=b push", {"git push"}),
        ("git -c alias.p=push p", {"git push"}),
        ("git -c 'alias.p=!rm x' p", {"git execute", "delete x"}),
        ("GIT PUSH", {"git push"}),
        ("git send-pack r x", {"git push"}),
        ("git subtree push --prefix=a r x", {"git push"}),
        ("git lfs push r x", {"git push"}),
        ("git svn dcommit", {"git push"}),
        ("git fetch", {"git fetch"}),
        ("git fetch origin main:main", {"git fetch main"}),
        ("git pull", {"git fetch", "git merge"}),
        ("git clone http://h/r", {"get h", "git clone", "create r"}),
        ("git clone 'ext::sh -c x' d", {"git execute", "git clone", "create d"}),
        ("git remote add a b", {"git remote"}),
        ("git credential fill", {"system credential"}),
        ("git submodule foreach 'rm x'", {"delete x"}),
    ],
)
def test_what_reaches_other_repositories(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git checkout main", {"git branch"}),
        ("git checkout -b x", {"git branch x"}),
        ("git checkout -bx", {"git branch x"}),
        ("git checkout -B x", {"git branch! x"}),
        ("git checkout -f", {"git discard"}),
        ("git checkout .", {"git discard"}),
        ("git checkout app.py", {"git discard"}),
        ("git checkout v1.2", {"git branch"}),
        ("git checkout -- app", {"git discard"}),
        ("git checkout HEAD app", {"git discard"}),
        ("git checkout main --", {"git branch"}),
        ("git switch x", {"git branch"}),
        ("git switch -c x", {"git branch x"}),
        ("git switch -f x", {"git discard", "git branch"}),
        ("git restore --staged a", {"git index"}),
        ("git restore a", {"git discard"}),
        ("git restore -S -W a", {"git discard"}),
        ("git reset", {"git index"}),
        ("git reset --soft HEAD~1", {"git index"}),
        ("git reset -q --hard", {"git discard"}),
        ("git reset --har", {"git discard"}),
        ("git reset \u2010\u2010hard", {"unknown", "git index"}),
        ("git clean -fd", {"git discard!"}),
        ("git branch x", {"git branch x"}),
        ("git branch -d x", {"git branch x"}),
        ("git branch -D x", {"git discard x"}),
        ("git branch -M a b", {"git branch! a b"}),
        ("git tag v1", {"git tag v1"}),
        ("git tag -d v1", {"git tag! v1"}),
        ("git stash", {"git stash"}),
        ("git stash drop", {"git discard"}),
        ("git add .", {"git index"}),
        ("git commit -m 'git push'", {"git commit"}),
        ("git rm -r a", {"git index", "delete-tree a"}),
        ("git rm --cached a", {"git index"}),
        ("git mv a b", {"git index", "rename a", "create b"}),
        ("git rebase -x 'rm a' b", {"git merge", "delete a"}),
        ("git bisect run rm a", {"git branch", "delete a"}),
        ("git apply x.diff", {"read x.diff", "edit ."}),
        ("git apply --check x.diff", {"read x.diff"}),
        ("git worktree add p -b x", {"git worktree", "create p", "git branch x"}),
        ("git worktree remove -f p", {"git worktree!", "delete-tree! p"}),
        ("git reflog expire --all", {"git discard"}),
        ("git gc --prune=now", {"git discard"}),
        ("git update-ref refs/heads/x y", {"git discard refs/heads/x"}),
        ("git filter-branch --tree-filter 'rm a' HEAD", {"git rewrite", "delete a"}),
        ("git diff --output=o", {"truncate o", "git read"}),
        ("git archive -o o HEAD", {"truncate o", "git read"}),
        ("git format-patch -o d HEAD~1", {"git read", "create d"}),
        ("git diff --no-index a /b", {"git read", "read a", "read /b"}),
        ("git grep -O x", {"git execute", "git read"}),
        ("git config user.name x", {"git config"}),
        ("git config core.hooksPath x", {"git execute", "git config"}),
        ("git config alias.x '!rm a'", {"git execute", "git config"}),
        ("git -c core.sshCommand=x ls-remote", {"git execute", "git read"}),
        ("git --exec-path=x status", {"git execute", "git read"}),
        ("git frobnicate", {"execute unknown"}),
        ("git push --help", set()),
    ],
)
def test_what_changes_the_repository_at_hand(command: str, expected: set[str]) -> None:
    assert told(command) == expected


def test_paths_and_the_repository_follow_the_folder_that_git_is_sent_to() -> None:
    found = effects(["git", "-C", "a", "-C", "b", "rm", "x"])
    assert {"a/b"} == {effect.repository.text for effect in found if isinstance(effect, Git)}
    assert "delete a/b/x" in told("git -C a -C b rm x")
    (effect,) = effects(["git", "--git-dir=/r/.git", "push"])
    assert isinstance(effect, Git)
    assert effect.repository == literal("/r")


@pytest.mark.parametrize(
    ("variable", "value", "runs"),
    [
        ("GIT_SSH_COMMAND", "touch x", True),
        ("GIT_PAGER", "cat", False),
        ("GIT_PAGER", "cat; touch x", True),
        ("GIT_EDITOR", "true", False),
        ("GIT_CONFIG_KEY_0", "core.pager", True),
        ("LANG", "C", False),
    ],
)
def test_variables_that_make_git_run_programs(variable: str, value: str, runs: bool) -> None:
    assert ("git execute" in told("git log", environment={variable: value})) is runs


def test_a_verb_that_cannot_be_told_is_not_known() -> None:
    assert [type(effect).__name__ for effect in effects(["git", Word(())])] == ["Unknown"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("gh pr view 1", {"query github.com"}),
        ("gh -R o/r issue list", {"query github.com"}),
        ("gh pr create --title x", {"git remote"}),
        ("gh repo delete o/r", {"git remote!"}),
        ("gh auth token", {"system credential"}),
        ("gh auth status", set()),
        ("gh auth status --show-token", {"system credential"}),
        ("gh gist create a", {"read a", "send github.com file", "git remote"}),
        ("gh pr checkout 1", {"get github.com", "git fetch", "git branch"}),
        ("gh release download -D d", {"get github.com", "create d"}),
        ("gh extension install o/x", {"system package"}),
        ("gh api repos/o/r", {"query github.com"}),
        ("gh api repos/o/r -f a=b", {"git remote"}),
        ("gh api -X DELETE repos/o/r", {"git remote!"}),
        ("gh api graphql -f query='query { a }'", {"query github.com"}),
        ("gh api graphql -f query='mutation { a }'", {"git remote"}),
        ("gh frobnicate", {"unknown"}),
        ("glab mr merge 1", {"git remote"}),
        ("hub push", {"git push"}),
    ],
)
def test_programs_of_hosting_services(command: str, expected: set[str]) -> None:
    assert told(command) == expected
