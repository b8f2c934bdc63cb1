"""Where policies come from: whose files count, what they may say, what becomes of those that are wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remuda.core import config
from remuda.core.errors import ConfigError
from remuda.core.paths import folders
from remuda.guard.judge import judge
from remuda.guard.loading import Loader
from remuda.guard.model import Capability, Context, Verdict
from remuda.guard.paths import Disk
from remuda.guard.tools import ToolCall


class Place:
    """A home, a project and a folder in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / "config.toml"
        self.project = folder / "project"
        self.sub = self.project / "sub"
        self.sub.mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.loader = Loader(str(self.own), str(folder))

    def say(self, text: str, where: Path | None = None) -> None:
        file = (where or self.project) / ".remuda" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def verdict(
        self,
        command: str,
        capability: Capability = "builder",
        cwd: Path | None = None,
        worktree: Path | None = None,
    ) -> Verdict:
        cwd = cwd or self.project
        root = None if capability == "supervised" else str(worktree or self.project)
        context = Context(capability=capability, worktree=root, home=str(self.folder), agent="claude")
        policy = self.loader.load(str(cwd), context)
        if isinstance(policy, Verdict):
            return policy
        return judge(ToolCall("Bash", {"command": command}, str(cwd)), context, Disk(), policy)

    def rule(self, command: str, capability: Capability = "builder", cwd: Path | None = None) -> str:
        return self.verdict(command, capability, cwd).rule


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


PROTECT = '[guard]\nprotect = ["db"]\n'


def test_without_a_file_there_is_no_policy(place: Place) -> None:
    assert place.loader.load(str(place.sub), Context()) is None


def test_what_user_and_project_say_is_joined(place: Place) -> None:
    place.own.write_text('[guard]\nprotect = ["db"]\ngates = ["make test"]\n')
    place.say('[guard]\nprotect = ["docs"]\ngates = ["pytest"]\n')
    assert place.rule("touch db/x") == place.rule("touch docs/x") == "policy.protect"
    assert place.rule("make test", "scout") == place.rule("pytest", "scout") == "policy.allow"


def test_a_project_speaks_of_its_own_folder_from_wherever_the_agent_is(place: Place) -> None:
    place.say(PROTECT)
    for cwd in (place.project, place.sub):
        assert place.rule(f"touch {place.project}/db/x", "supervised", cwd) == "policy.protect"
    assert place.rule("touch ../db/x", "supervised", place.sub) == "policy.protect"
    assert place.rule("touch db/x", "supervised", place.sub) == "allow"


def test_the_user_speaks_of_the_worktree_or_the_checkout(place: Place) -> None:
    place.own.write_text(PROTECT)
    assert place.rule("touch db/x") == "policy.protect"
    assert place.rule("touch ../db/x", "supervised", place.sub) == "policy.protect"


def test_a_worktree_below_the_project_is_meant_too(place: Place) -> None:
    place.say(PROTECT)
    tree = place.project / "trees" / "one"
    tree.mkdir(parents=True)
    assert place.verdict("touch db/x", cwd=tree, worktree=tree).rule == "policy.protect"


def test_a_repository_within_takes_nothing_away_and_opens_nothing(place: Place) -> None:
    """An agent may clone or unpack something with a file of its own, and go there."""
    place.say(PROTECT)
    place.say('[guard]\ngates = ["pytest"]\nbranch_prefix = "x-"\nprotect = ["vendor"]\n', place.sub)
    assert place.rule(f"touch {place.project}/db/x", cwd=place.sub) == "policy.protect"
    assert place.rule("touch vendor/x", cwd=place.sub) == "policy.protect"
    assert place.rule("pytest", "scout", place.sub) == "execute.project"
    assert place.rule("git switch -c topic", cwd=place.sub) == "allow"


def test_links_in_a_pattern_are_followed_and_kept(place: Place) -> None:
    (place.project / "real").mkdir()
    (place.project / "db").symlink_to("real")
    place.say(PROTECT)
    assert place.rule("touch db/x") == "policy.protect"
    assert place.rule("touch real/x") == "policy.protect"
    assert place.rule("rm db") == "policy.protect"


def test_prefixes(place: Place) -> None:
    place.own.write_text('[guard]\nbranch_prefix = "mine/"\n')
    assert place.rule("git switch -c topic") == "git.prefix"
    assert place.rule("git switch -c mine/x") == "allow"
    place.say('[guard]\nbranch_prefix = "agents/{agent}/"\n')
    assert place.rule("git switch -c mine/x") == "git.prefix"
    assert place.rule("git switch -c agents/claude/x") == "allow"


def test_a_changed_file_counts_at_once_and_one_that_stays_is_read_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.own.write_text(PROTECT)
    assert place.rule("touch db/x") == "policy.protect"
    with monkeypatch.context() as patch:
        patch.setattr(config, "read_guard", None)
        assert place.rule("touch db/x") == place.rule("touch ../db/x", cwd=place.sub) == "policy.protect"
    place.own.write_text('[guard]\nprotect = ["else"]\n')
    os.utime(place.own, ns=(1, 1))
    assert place.rule("touch db/x") == "allow"


MALFORMED = [
    ("[guard\n", 1),
    ("[guard]\nprotect = [\n  'a',\n", 3),
    ("[guard]\ngates = 'x'\n", 2),
    ("[guard]\n\n\nprotct = ['x']\n", 4),
    ("agent = 'claude'\n\n[gaurd]\nprotect = ['x']\n", 3),
    ("[[guard.rules]]\ndecision = 'deny'\n\n[[guard.rules]]\ndecision = 'never'\n", 5),
    ("[[guard.rules]]\ndecision = 'deny'\n[[guard.rules]]\ndecision = 'deny'\npath = [\n 'a',\n 3]\n", 7),
    ("[guard]\nrules = [\n  {decision = 'deny'},\n  {decision = 'deny', colour = 'red'},\n]\n", 4),
    ("[[guard.rules]]\ndecision = 'deny'\nargv = '\"'\n", 3),
    ("[guard]\nprotect = [\n  'a',\n  '../b',\n]\n", 4),
    ("[run]\ntimeout = 'soon'\n", 2),
    ("x = '''\n[guard]\n'''\n[guard]\nprotect = 1\n", 1),
    ("agent = '''\n[guard]\n'''\n[guard]\nprotect = 1\n", 5),
]


@pytest.mark.parametrize(("text", "line"), MALFORMED)
@pytest.mark.parametrize("own", [True, False])
def test_what_cannot_be_read_denies_everything_and_says_where(
    place: Place, text: str, line: int, own: bool
) -> None:
    file = place.own if own else place.project / ".remuda" / "config.toml"
    if own:
        place.own.write_text(text)
    else:
        place.say(text)
    verdict = place.verdict("ls", "supervised")
    assert (verdict.decision, verdict.rule) == ("deny", "guard.policy")
    assert verdict.reason.endswith(f"{file}, line {line}")
    (place.folder / "remuda").mkdir()
    if own:
        place.own.rename(place.folder / "remuda" / "config.toml")
    with pytest.raises(ConfigError):
        config.load(folders({"XDG_CONFIG_HOME": str(place.folder), "HOME": "/x"}), place.project)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[[guard.rules]]\ndecision = 'ask'\npath = 'y'\n"
            "[[guard.rules]]\ndecision = 'allow'\npath = 'x'\n",
            4,
        ),
        ("[guard]\npush = ['origin main']\n", 2),
        ("[guard]\n\nnetwork = ['*']\n", 3),
        ("[environment]\npass = ['X']\n", 1),
    ],
)
def test_a_project_opens_nothing(place: Place, text: str, line: int) -> None:
    place.own.write_text(text)
    assert place.rule("ls") == "allow"
    place.own.unlink()
    place.say(text)
    assert place.verdict("ls").reason.endswith(f"config.toml, line {line}")


def test_nothing_of_the_file_is_told(place: Place) -> None:
    place.say("[guard]\nhunter2 = 'hunter2'\n")
    assert "hunter2" not in place.verdict("ls").reason
    place.say("[guard]\nprotect = ['hunter2\n")
    assert "hunter2" not in place.verdict("ls").reason


def test_what_is_no_file_denies(place: Place) -> None:
    place.own.mkdir()
    assert place.rule("ls") == "guard.policy"
    place.own.rmdir()
    os.mkfifo(place.own)
    assert place.rule("ls") == "guard.policy"


def test_bytes_that_are_no_text_and_files_without_end_deny(place: Place) -> None:
    place.own.write_bytes(b"agent = 'x'\n# \xff\n")
    assert place.verdict("ls").reason.endswith("line 2")
    place.own.write_text("# x\n" * (config.LARGEST // 4 + 1))
    assert place.rule("ls") == "guard.policy"
    place.own.write_text("x = " + "[" * 5000)
    assert place.rule("ls") == "guard.policy"


def test_the_configuration_in_force_has_the_lists_of_both(place: Place) -> None:
    (place.folder / "remuda").mkdir()
    (place.folder / "remuda" / "config.toml").write_text('[guard]\nprotect = ["a"]\nbranch_prefix = "x/"\n')
    place.say('[guard]\nprotect = ["b"]\nbranch_prefix = "y/"\n[[guard.rules]]\ndecision = "ask"\n')
    loaded = config.load(folders({"XDG_CONFIG_HOME": str(place.folder), "HOME": "/x"}), place.project)
    assert loaded.guard.protect == ("a", "b")
    assert loaded.guard.branch_prefix == "y/"
    assert len(loaded.guard.rules) == 1
