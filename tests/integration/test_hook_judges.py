"""Several judges of one call, as real programs beside the guard."""

from __future__ import annotations

import json
import time

import pytest
from tests.support import SHELL, Ended, Site, eventually

PAYLOADS = {
    "silent": "",
    "empty": "echo '{}'",
    "allow": """echo '{"permissionDecision": "allow", "message": "fine"}'""",
    "nested": """echo '{"hookSpecificOutput": {"permissionDecision": "allow", "reason": "fine"}}'""",
    "deny": """echo '{"permissionDecision": "deny", "permissionDecisionReason": "not today"}'""",
    "ask": """echo '{"permissionDecision": "ask", "message": "sure?"}'""",
    "block": """echo '{"block": true, "message": "blocked"}'""",
    "older": """echo '{"decision": "block", "reason": "older form"}'""",
    "two": "echo 'go away' >&2; exit 2",
    "failing": "exit 1",
    "garbage": "echo '{'",
    "odd": """echo '{"permissionDecision": "perhaps"}'""",
    "killed": "kill -9 $$",
    "late": "sleep 60 & sleep 60",
    "reading": """read -r line; case $line in *git*) exit 2;; *) echo '{}';; esac""",
}


def ask(
    site: Site, command: str, *judges: str, precedence: str = "strictest", dialect: str = "copilot"
) -> Ended:
    paths = [str(site.program(name, SHELL + PAYLOADS[name] + "\n")) for name in judges]
    folder = site.home / "config"
    folder.mkdir(parents=True, exist_ok=True)
    lines = f"[hooks]\njudges = {json.dumps(paths)}\nprecedence = {json.dumps(precedence)}\n"
    (folder / "config.toml").write_text(lines)
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": command}})
    return site.remuda("hook", "pre-tool-use", payload, "--dialect", dialect)


@pytest.mark.parametrize(
    ("judge", "code", "told"),
    [
        ("silent", 0, ""),
        ("empty", 0, ""),
        ("deny", 2, "not today (hook.judge)"),
        ("block", 2, "blocked (hook.judge)"),
        ("older", 2, "older form (hook.judge)"),
        ("two", 2, "go away (hook.judge)"),
        ("failing", 2, "failed (hook.judge)"),
        ("garbage", 2, "failed (hook.judge)"),
        ("odd", 2, "failed (hook.judge)"),
        ("killed", 2, "failed (hook.judge)"),
        ("reading", 0, ""),
    ],
)
def test_what_a_judge_says_of_an_allowed_call(site: Site, judge: str, code: int, told: str) -> None:
    given = ask(site, "ls", judge)
    assert (given.code, told in given.stderr) == (code, True)
    if code:
        assert given.json["permissionDecision"] == "deny"
    else:
        assert given.stdout == "{}\n"


def test_an_ask_is_put_to_a_person_where_one_may_be(site: Site) -> None:
    asked = ask(site, "ls", "ask")
    assert (asked.code, asked.json["permissionDecision"], asked.stderr) == (0, "ask", "")
    alone = ask(site, "ls", "ask", dialect="codex")
    assert (alone.code, "a person would have to agree: sure? (hook.judge)" in alone.stderr) == (2, True)


@pytest.mark.parametrize("judge", ["allow", "nested"])
def test_an_explicit_allow_is_passed_on_by_the_documented_precedence(site: Site, judge: str) -> None:
    granted = ask(site, "ls", judge, precedence="documented")
    assert (granted.code, granted.json["permissionDecision"]) == (0, "allow")
    claude = ask(site, "ls", judge, precedence="documented", dialect="claude").json["hookSpecificOutput"]
    assert isinstance(claude, dict)
    assert (claude["hookEventName"], claude["permissionDecision"]) == ("PreToolUse", "allow")
    silent = ask(site, "ls", judge)
    assert (silent.code, silent.stdout) == (0, "{}\n")
    for precedence in ("documented", "strictest"):
        denied = ask(site, "git push --force", judge, precedence=precedence)
        assert (denied.code, "git.force" in denied.stderr) == (2, True)


@pytest.mark.parametrize(
    ("judges", "documented", "strictest"),
    [
        (("allow", "deny"), "allow", "deny"),
        (("deny", "allow"), "deny", "deny"),
        (("allow", "ask"), "allow", "ask"),
        (("allow", "block"), "allow", "deny"),
        (("block", "allow"), "allow", "deny"),
        (("silent", "empty"), None, None),
        (("silent", "allow"), "allow", None),
        (("silent", "block"), "deny", "deny"),
    ],
)
def test_the_precedence_of_several(
    site: Site, judges: tuple[str, ...], documented: str | None, strictest: str | None
) -> None:
    for precedence, decision in (("documented", documented), ("strictest", strictest)):
        given = ask(site, "ls", *judges, precedence=precedence)
        assert given.json.get("permissionDecision") == decision
        assert given.code == (2 if decision == "deny" else 0)


def test_a_judge_that_is_late_denies_and_is_ended(site: Site) -> None:
    started = time.monotonic()
    given = ask(site, "ls", "late")
    assert (given.code, "was late (hook.judge)" in given.stderr) == (2, True)
    assert time.monotonic() - started < 30
    eventually(lambda: not site.processes())


def test_judges_read_the_payload_and_are_put_on_record(site: Site) -> None:
    assert ask(site, "git status", "reading").code == 2
    records = site.remuda("guard", "log", "--json").json["records"]
    assert isinstance(records, list)
    assert [(each["decision"], each["rule"]) for each in records] == [("deny", "hook.judge")]


def test_a_project_cannot_name_a_judge(site: Site) -> None:
    judge = site.program("judge", f"{SHELL}touch {site.folder}/ran\n")
    site.write(".remuda/config.toml", f'[hooks]\njudges = ["{judge}"]\n')
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}})
    given = site.remuda("hook", "pre-tool-use", payload)
    assert (given.code, ".remuda/config.toml" in given.stderr) == (2, True)
    assert not (site.folder / "ran").exists()


def test_a_judge_that_is_not_there_denies(site: Site) -> None:
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text('[hooks]\njudges = ["/nowhere/judge"]\n')
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}})
    given = site.remuda("hook", "pre-tool-use", payload)
    assert (given.code, "the judge /nowhere/judge failed" in given.stderr) == (2, True)
