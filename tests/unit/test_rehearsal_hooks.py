"""What a hook's end means to the rehearsal agent, and which hooks a settings file selects."""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.rehearsal.agent.hooks import Event, Verdict, combine, judge
from remuda.rehearsal.agent.process import Ended
from remuda.rehearsal.agent.settings import Group, read_settings
from remuda.rehearsal.agent.tools import permission, spec

DENY = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}'
ALLOW = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'


@pytest.mark.parametrize(
    ("ended", "decision"),
    [
        (Ended(0, "", ""), "none"),
        (Ended(0, DENY, ""), "block"),
        (Ended(0, ALLOW, ""), "allow"),
        (Ended(1, ALLOW, ""), "none"),
        (Ended(2, ALLOW, "no"), "block"),
        (Ended(1, DENY, ""), "block"),
        (Ended(-9, "", ""), "none"),
        (Ended(None, DENY, ""), "none"),
        (Ended(0, f"noise {DENY}", ""), "none"),
        (Ended(0, "[]", ""), "none"),
        (Ended(0, "\ufffd" + "[" * 100_000, ""), "none"),
        (Ended(0, '{"hookSpecificOutput":{"permissionDecision":"deny"}}', ""), "block"),
        (Ended(0, DENY.replace("PreToolUse", "PostToolUse"), ""), "none"),
        (Ended(0, '{"decision":"block","hookSpecificOutput":{"permissionDecision":"maybe"}}', ""), "none"),
    ],
)
def test_verdict_of_one_hook(ended: Ended, decision: str) -> None:
    assert judge("PreToolUse", ended).decision == decision


def test_reason_comes_from_stderr_with_exit_2_and_from_the_json_otherwise() -> None:
    assert judge("PreToolUse", Ended(2, "", " not here \n")).reason == "not here"
    assert judge("PreToolUse", Ended(0, '{"decision":"block","reason":"never"}', "")).reason == "never"


@pytest.mark.parametrize(
    ("event", "context"), [("UserPromptSubmit", "branch main"), ("SessionStart", "branch main"), ("Stop", "")]
)
def test_plain_output_is_context_only_where_a_prompt_follows(event: Event, context: str) -> None:
    assert judge(event, Ended(0, "branch main\n", "")).context == context
    assert judge(event, Ended(1, "branch main\n", "")).context == ""


def test_strictest_verdict_wins_and_all_context_is_kept() -> None:
    verdicts = [Verdict("allow", context="a"), Verdict("block", "no"), Verdict("ask", "hm", "b")]
    assert combine(verdicts) == Verdict("block", "no", "a\nb")
    assert combine([]) == Verdict()


@pytest.mark.parametrize(
    ("matcher", "subject", "selected"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Read|Bash", "Bash", True),
        ("Read|Write", "Bash", False),
        ("B.*", "Bash", True),
        ("^ash", "Bash", False),
        ("(", "Bash", False),
        ("Bash", "", True),
    ],
)
def test_matcher(matcher: str, subject: str, selected: bool) -> None:
    assert Group(hooks=(), matcher=matcher).selects(subject) is selected


def test_settings_files_add_up_and_an_invalid_one_is_dropped_whole(tmp_path: Path) -> None:
    group = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"%s"%s}]}]}}'
    (tmp_path / "a").write_text(group % ("one", ""))
    (tmp_path / "b").write_text(group % ("two", ',"timeout":"3"'))
    (tmp_path / "c").write_text("{broken")
    (tmp_path / "d").write_text(group % ("three", ',"timeout":3'))
    said: list[str] = []
    settings = read_settings([tmp_path / name for name in "abcde"], said.append)
    assert [hook.command for hook in settings.hooks_for("Stop", "")] == ["one", "three"]
    assert [Path(line.partition(":")[0]).name for line in said] == ["b", "c"]


def test_one_file_can_disable_the_hooks_of_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}')
    (tmp_path / "b").write_text('{"disableAllHooks":true}')
    assert read_settings([tmp_path / "a", tmp_path / "b"], print).hooks_for("Stop", "") == []


@pytest.mark.parametrize(
    ("mode", "tool", "hook", "expected"),
    [
        ("bypass", "Bash", "none", "run"),
        ("bypass", "Bash", "ask", "ask"),
        ("bypass", "Bash", "block", "refuse"),
        ("default", "Bash", "none", "ask"),
        ("default", "Write", "allow", "run"),
        ("default", "Read", "none", "run"),
        ("default", "Read", "block", "refuse"),
        ("read-only", "Read", "none", "run"),
    ],
)
def test_permission(mode: str, tool: str, hook: str, expected: str) -> None:
    assert permission(mode, tool, hook) == expected  # type: ignore[arg-type]


def test_tools_are_offered_with_the_schema_of_their_fields() -> None:
    schema = spec("Bash").input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["command"]
    assert set(schema["properties"]) == {"command", "description"}  # type: ignore[call-overload]
