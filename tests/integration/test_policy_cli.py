"""A policy of one's own from the outside: the guard's verbs, batches, hooks, and other verbs beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import Ended, Site

PROJECT = ".remuda/config.toml"
BUILDER = ("--capability", "builder", "--worktree", ".")
SCOUT = ("--capability", "scout", "--worktree", ".")


def own(site: Site, text: str) -> Path:
    file = site.home / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def check(site: Site, *arguments: str) -> Ended:
    return site.remuda("guard", "check", "--json", *arguments)


def hook(site: Site, command: str, **env: str) -> Ended:
    done = subprocess.run(
        [sys.executable, "-I", "-m", "remuda.hooks", "pre-tool-use"],
        cwd=site.cwd,
        env={**site.env, **env},
        input=json.dumps({"tool_name": "Bash", "tool_input": {"command": command}}).encode(),
        capture_output=True,
        timeout=30,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_user_and_project_are_joined(site: Site) -> None:
    own(site, '[guard]\ngates = ["make test"]\n')
    site.write(PROJECT, '[guard]\nprotect = ["db"]\ngates = ["pytest"]\n')
    assert check(site, *SCOUT, "make test -j4").json["decision"] == "allow"
    assert check(site, *SCOUT, "pytest").json["rule"] == "policy.allow"
    assert check(site, *SCOUT, "make deploy").code == 5
    assert check(site, *BUILDER, "rm -rf db").json["rule"] == "policy.protect"


def test_a_draft_takes_the_place_of_the_own_file(site: Site) -> None:
    own(site, "[guard]\nprotect = ['a']\n")
    draft = site.write("draft.toml", "[guard]\nprotect = ['b']\n")
    for arguments in (("--policy", str(draft)), ("--policy", "draft.toml")):
        assert check(site, *BUILDER, *arguments, "touch b").json["rule"] == "policy.protect"
        assert check(site, *BUILDER, *arguments, "touch a").json["decision"] == "allow"
    assert check(site, *BUILDER, "touch a").json["rule"] == "policy.protect"
    assert site.remuda("guard", "check", "--policy", "none.toml", "ls").code == 2
    draft.write_text("[guard]\nprotect = 1\n")
    broken = check(site, "--policy", "draft.toml", "ls").json
    assert (broken["decision"], broken["rule"]) == ("deny", "guard.policy")


def test_explain_names_the_file_and_the_line(site: Site) -> None:
    file = own(
        site,
        "[guard]\nprotect = [\n  'a',\n  'b',\n]\n\n[[guard.rules]]\ndecision = 'allow'\npath = '/tmp/s'\n",
    )
    text = site.remuda("guard", "explain", *BUILDER, "touch b").stdout
    assert f"by {file}: guard.protect[1], line 4" in text
    lifted = site.remuda("guard", "explain", *BUILDER, "--json", "touch /tmp/s").json
    steps = lifted["steps"]
    assert isinstance(steps, list)
    (row,) = steps[0]["lifted"]
    assert (row["rule"], row["file"], row["line"]) == ("write.temporary", f"{file}: guard.rules[0]", 7)
    own(site, "[[guard.rules]]\ndecision = 'deny'\nprogram = 'docker'\n")
    assert "the call itself: policy.deny   by" in site.remuda("guard", "explain", "docker ps").stdout


def test_a_batch_has_the_policy_of_each_folder(site: Site) -> None:
    for name in ("one", "two", "broken"):
        (site.cwd / name / "sub").mkdir(parents=True)
    site.write(f"one/{PROJECT}", "[guard]\nprotect = ['x']\n")
    broken = site.write(f"broken/{PROJECT}", "[guard]\nprotect = 1\n")
    cases = [
        {"id": name, "command": command, "cwd": str(site.cwd / name), "context": context}
        for name, command in (
            ("one", "touch x"),
            ("two", "touch x"),
            ("broken", "ls"),
            ("one/sub", "touch ../x"),
        )
        for context in ({"capability": "supervised"},)
    ]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    ended = site.remuda("guard", "check", "--batch", stdin=lines.encode())
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer["rule"] for answer in answers] == [
        "policy.protect",
        "allow",
        "guard.policy",
        "policy.protect",
    ]
    assert f"{broken}, line 2" in answers[2]["reason"]


@pytest.mark.parametrize("where", ["own", "project"])
def test_a_policy_that_cannot_be_read(site: Site, where: str) -> None:
    text = "[guard]\n\nhunter2 = ['x']\n"
    file = own(site, text) if where == "own" else site.write(PROJECT, text)
    for verb in ("check", "explain"):
        ended = site.remuda("guard", verb, "ls")
        assert ended.code == 5
        assert f"{file}, line 3 (guard.policy)" in ended.stdout
        assert "hunter2" not in ended.stdout + ended.stderr
    answer = hook(site, "ls")
    assert answer.code == 2
    assert f"{file}, line 3 (guard.policy)" in answer.stderr
    for verb in (("which",), ("run", "--agent", "rehearsal", "--capability", "scout", "hi")):
        other = site.remuda(*verb)
        assert other.code == 2
        assert str(file) in other.stderr
    assert site.remuda("guard", "log", "--rule", "guard.policy").stdout.count("guard.policy") == 1


def test_hooks_obey(site: Site) -> None:
    own(
        site,
        "[guard]\ngates = ['pytest']\n"
        "[[guard.rules]]\ndecision = 'deny'\nargv = 'docker compose up'\nreason = 'no'\n",
    )
    assert hook(site, "docker compose ps").code == 0
    denied = hook(site, "docker -D compose up")
    assert (denied.code, "no (policy.deny)" in denied.stderr) == (2, True)
    scout = {"REMUDA_CAPABILITY": "scout", "REMUDA_WORKTREE": str(site.cwd)}
    assert hook(site, "pytest -q", **scout).code == 0
    assert hook(site, "pytest -q > x", **scout).code == 2
    assert hook(site, "make", **scout).code == 2


def test_an_agent_cannot_change_the_policy(site: Site) -> None:
    own(site, "[[guard.rules]]\ndecision = 'allow'\npath = ['/**', '~/**', '.remuda/**']\n")
    for path in (PROJECT, ".remuda"):
        assert check(site, *BUILDER, f"rm -rf {path}").json["rule"] == "write.guard"
    assert check(site, *BUILDER, "touch ~/.config/remuda/config.toml").json["rule"] == "write.guard"
    assert check(site, *BUILDER, "REMUDA_HOME=/tmp/x ls").json["rule"] == "environment.guard"


def test_configuration_verbs_know_the_keys(site: Site) -> None:
    assert site.remuda("config", "set", "guard.protect", '["db"]').code == 0
    assert site.remuda("config", "set", "guard.gates", '["pytest"]', "--project").code == 0
    assert site.remuda("config", "set", "guard.push", '["origin main"]', "--project").code == 2
    assert site.remuda("config", "get", "guard.protect").stdout.strip() == '["db"]'
    assert check(site, *BUILDER, "touch db").json["rule"] == "policy.protect"


def test_without_a_file_a_hook_loads_nothing_for_it(site: Site) -> None:
    code = (
        "import sys, os\nfrom remuda.hooks.program import Request, respond\n"
        "respond(Request('pre-tool-use'), lambda: sys.argv[1].encode(), os.environ)\n"
        "print(' '.join(sys.modules))\n"
    )
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}})
    policy = {
        "tomllib",
        "remuda.core.config",
        "remuda.guard.own",
        "remuda.guard.compiling",
        "remuda.guard.rules",
    }

    def loaded() -> set[str]:
        argv = [sys.executable, "-c", code, payload]
        return set(
            subprocess.run(argv, cwd=site.cwd, env=site.env, capture_output=True, text=True).stdout.split()
        )

    assert "remuda.guard.judge" in loaded()
    assert not loaded() & policy
    own(site, "[guard]\nprotect = ['db']\n")
    assert policy <= loaded()


def test_a_file_that_nobody_may_read_denies(site: Site) -> None:
    file = own(site, "[guard]\n")
    file.chmod(0)
    if os.geteuid():
        assert check(site, "ls").json["rule"] == "guard.policy"
    file.unlink()
    file.mkdir()
    assert check(site, "ls").json["rule"] == "guard.policy"
