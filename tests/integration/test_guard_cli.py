"""``remuda guard`` from the outside: answers, documents, batches, exit codes."""

from __future__ import annotations

import json

import pytest
from tests.support import Site


def test_an_allowed_command(site: Site) -> None:
    ended = site.remuda("guard", "check", "ls -la")
    assert ended.code == 0
    assert ended.stdout.startswith("allow: ")


def test_a_denied_command_says_why_and_what_to_do_instead(site: Site) -> None:
    ended = site.remuda("guard", "check", "git push --force")
    assert ended.code == 5
    first, second = ended.stdout.splitlines()
    assert first.startswith("deny: ")
    assert "(git.force)" in first
    assert second.startswith("  ")


def test_a_capability_and_its_worktree(site: Site) -> None:
    builder = ("guard", "check", "--capability", "builder", "--worktree", ".", "--json")
    assert site.remuda(*builder, "touch x").json["decision"] == "allow"
    assert site.remuda(*builder, "touch ../x").json["rule"] == "write.temporary"
    assert site.remuda(*builder, "--cwd", "sub", "touch ../x").json["decision"] == "allow"
    assert site.remuda("guard", "check", "--capability", "scout", "touch x").code == 5


def test_a_link_out_of_the_worktree_is_seen(site: Site) -> None:
    (site.cwd / "out").symlink_to("/etc")
    ended = site.remuda(
        "guard", "check", "--capability", "builder", "--worktree", ".", "touch out/x", "--json"
    )
    assert (ended.code, ended.json["decision"], ended.json["rule"]) == (5, "deny", "write.system")


def test_a_branch_of_another_agent(site: Site) -> None:
    asked = (
        "guard",
        "check",
        "--capability",
        "builder",
        "--worktree",
        ".",
        "--branch-prefix",
        "mine/",
        "--json",
    )
    assert site.remuda(*asked, "git switch -c mine/x").json["decision"] == "allow"
    assert site.remuda(*asked, "git switch -c other").json["rule"] == "git.prefix"


def test_a_native_tool(site: Site) -> None:
    given = json.dumps({"file_path": "/etc/hosts", "content": ""})
    ended = site.remuda("guard", "check", "--tool", "Write", "--input", given, "--json")
    assert (ended.code, ended.json["decision"], ended.json["rule"]) == (5, "ask", "write.system")
    effects = ended.json["effects"]
    assert isinstance(effects, list)
    (effect,) = effects
    assert (effect["effect"], effect["how"], effect["path"]["values"]) == (
        "write",
        "truncate",
        ["/etc/hosts"],
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say what to judge"),
        (("ls", "--input", "{}"), "say what to judge"),
        (("--input", "{"), "not JSON"),
        (("--capability", "king", "ls"), "king"),
        (("--batch", "ls"), "standard input"),
    ],
)
def test_a_question_that_is_none(site: Site, arguments: tuple[str, ...], told: str) -> None:
    ended = site.remuda("guard", "check", *arguments)
    assert ended.code == 2
    assert told in ended.stderr


def test_a_batch_is_answered_line_by_line(site: Site) -> None:
    context = {"capability": "scout", "worktree": "/w/one", "home": "/home/alice"}
    lines = [
        {"id": "a", "tool": "Bash", "input": {"command": "ls"}, "cwd": "/w/one", "context": context},
        {"id": "b", "command": "touch x", "cwd": "/w/one", "context": context},
        {"id": 3, "command": "git push"},
        {"id": "d", "tool": "Write", "input": {"file_path": "x"}, "context": context},
        {"id": "e", "tool": 5},
        {"id": "f", "command": "ls", "context": {"capability": "king"}},
        {"id": "g"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "no json\n\n"
    ended = site.remuda("guard", "check", "--batch", stdin=text.encode())
    assert ended.code == 0
    answers = ended.events
    assert [answer["id"] for answer in answers] == ["a", "b", 3, "d", "e", "f", "g", None]
    decisions = [answer["decision"] for answer in answers]
    assert decisions == ["allow", "deny", "allow", "deny", "deny", "deny", "deny", "deny"]
    assert [answer["rule"] for answer in answers[4:]] == [
        *("guard.input", "guard.input", "tool.malformed", "guard.input")
    ]
    assert all({"id", "decision", "rule", "reason", "effects"} <= set(answer) for answer in answers)


def test_a_batch_without_lines_has_no_answers(site: Site) -> None:
    assert site.remuda("guard", "check", "--batch").stdout == ""


def test_an_explanation_shows_the_way_to_the_verdict(site: Site) -> None:
    (site.cwd / "out").symlink_to("/etc")
    ended = site.remuda("guard", "explain", "--capability", "builder", "--worktree", ".", "echo a > out/x")
    assert ended.code == 5
    for told in (
        "shell: echo a > out/x",
        "write",
        "-> /etc/x (system)",
        "write.system: deny scout, reviewer",
        "deny: ",
    ):
        assert told in ended.stdout, ended.stdout


def test_an_explanation_is_a_document_too(site: Site) -> None:
    ended = site.remuda("guard", "explain", "--json", "rm -rf /")
    assert ended.code == 5
    document = ended.json
    assert document["sources"] == ["rm -rf /"]
    assert document["answer"]["decision"] == "deny"  # type: ignore[index]
    steps = document["steps"]
    assert isinstance(steps, list)
    assert steps[0]["places"][0]["zone"] == "root"
    assert steps[0]["rows"][0]["decisions"]["scout"] == "deny"


def test_nothing_is_run(site: Site) -> None:
    site.remuda("guard", "check", "touch made; echo x > made2")
    assert list(site.cwd.iterdir()) == []
