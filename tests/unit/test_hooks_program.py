"""The hook's answers without a process around them: failures of every kind deny."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from remuda.guard.model import Context, Verdict
from remuda.hooks import audit, judging
from remuda.hooks.answer import Answer
from remuda.hooks.asking import parse
from remuda.hooks.audit import Record
from remuda.hooks.program import Request, context_of, respond

Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def asked(
        command: object,
        *,
        event: str = "pre-tool-use",
        dialect: str = "claude",
        runtime: str = "",
        **env: str,
    ) -> Answer:
        data = json.dumps({"tool_name": "Bash", "tool_input": {"command": command}}).encode()
        return respond(Request(event, dialect, runtime), lambda: data, {"REMUDA_HOME": str(tmp_path), **env})

    return asked


def records(folder: Path) -> list[Record]:
    return [*audit.read(folder / "state" / "guard.jsonl")]


def test_a_call_is_judged_for_whom_the_environment_says(ask: Ask) -> None:
    assert ask("touch x").code == 0
    assert ask("touch x", REMUDA_CAPABILITY="scout").code == 2
    builder = {"REMUDA_CAPABILITY": "builder", "REMUDA_WORKTREE": str(Path.cwd())}
    assert ask("touch x", **builder).code == 0
    assert ask("touch /etc/x", **builder).code == 2
    assert ask("git switch -c mine/x", **builder, REMUDA_BRANCH_PREFIX="mine/").code == 0
    assert ask("git switch -c yours", **builder, REMUDA_BRANCH_PREFIX="mine/").code == 2


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"REMUDA_CAPABILITY": "king"}, "REMUDA_CAPABILITY names no capability"),
        ({"REMUDA_CAPABILITY": ""}, "REMUDA_CAPABILITY names no capability"),
        ({"REMUDA_WORKTREE": "here"}, "REMUDA_WORKTREE is not an absolute path"),
        ({"REMUDA_PROJECT_ROOT": ""}, "REMUDA_PROJECT_ROOT is not an absolute path"),
    ],
)
def test_a_context_that_makes_no_sense_denies(ask: Ask, environ: dict[str, str], told: str) -> None:
    given = ask("ls", **environ)
    assert (given.code, told in given.stderr) == (2, True)
    assert "king" not in given.stderr


def test_the_context_is_taken_from_the_environment() -> None:
    nowhere = {"REMUDA_HOME": "/r"}
    own = tuple(f"/r/{name}" for name in ("config", "state", "data", "runtime"))
    assert context_of(nowhere) == Context(protected=own)
    assert context_of(
        {
            **nowhere,
            "REMUDA_CAPABILITY": "merger",
            "REMUDA_WORKTREE": "/w",
            "REMUDA_PROJECT_ROOT": "/p",
            "REMUDA_BRANCH_PREFIX": "a/",
            "HOME": "/home/alice",
        }
    ) == Context(
        capability="merger",
        worktree="/w",
        project_root="/p",
        branch_prefix="a/",
        home="/home/alice",
        protected=own,
    )


@pytest.mark.parametrize("error", [ValueError, MemoryError, RecursionError])
def test_an_error_inside_denies(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> Verdict:
        raise error("secret")

    monkeypatch.setattr(judging, "judge", fail)
    given = ask("ls")
    assert (given.code, "guard.error" in given.stderr, "secret" in given.stderr) == (2, True, False)
    assert records(tmp_path)[0].rule == "guard.error"


def test_a_payload_that_cannot_be_read_denies(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise OSError

    assert respond(Request("pre-tool-use"), fail, {"REMUDA_HOME": str(tmp_path)}).code == 2


def test_what_cannot_be_recorded_is_not_allowed(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    given = ask("ls")
    assert (given.code, "the audit cannot be written (hook.audit)" in given.stderr) == (2, True)
    assert "git.force" in ask("git push --force").stderr
    ended = ask("ls", event="session-stop")
    assert (ended.code, ended.stdout, "audit" in ended.stderr) == (0, b"{}\n", True)


@pytest.mark.parametrize(
    ("event", "dialect", "told"),
    [("pre-tool", "claude", "hook.event"), ("", "claude", "hook.event"), ("PreToolUse", "x", "hook.dialect")],
)
def test_a_hook_that_is_called_wrongly_denies(ask: Ask, event: str, dialect: str, told: str) -> None:
    given = ask("ls", event=event, dialect=dialect)
    assert (given.code, told in given.stderr) == (2, True)


def test_other_events_are_only_recorded(ask: Ask, tmp_path: Path) -> None:
    for event in ("session-start", "SessionEnd", "post_tool_use", "stop"):
        given = ask("git push --force", event=event)
        assert (given.stdout, given.stderr, given.code) == (b"{}\n", "", 0)
    assert [each.event for each in records(tmp_path)] == ["SessionStart", "SessionEnd", "PostToolUse", "Stop"]
    assert {each.decision for each in records(tmp_path)} == {None}


def test_a_payload_may_say_that_a_tool_is_about_to_run(tmp_path: Path) -> None:
    data = b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}'
    assert respond(Request("stop"), lambda: data, {"REMUDA_HOME": str(tmp_path)}).code == 2


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        (["stop"], ("stop", None, "claude", "")),
        (["stop", "{}"], ("stop", "{}", "claude", "")),
        (["--dialect", "copilot", "stop"], ("stop", None, "copilot", "")),
        (["stop", "--dialect=copilot", "{}"], ("stop", "{}", "copilot", "")),
        (["stop", "--runtime", "codex"], ("stop", None, "claude", "codex")),
        ([], ("", None, "claude", "")),
        (["stop", "{}", "{}"], ("", None, "claude", "")),
        (["stop", "--help"], ("", None, "claude", "")),
    ],
)
def test_the_command_line(arguments: list[str], parsed: tuple[str, str | None, str, str]) -> None:
    assert parse(arguments) == parsed


@pytest.mark.parametrize("option", ["--dialect", "--runtime"])
def test_an_option_without_a_value_denies(tmp_path: Path, option: str) -> None:
    event, _, dialect, runtime = parse(["pre-tool-use", option])
    given = respond(Request(event, dialect, runtime), lambda: b"{}", {"REMUDA_HOME": str(tmp_path)})
    assert (given.code, f"hook.{option[2:]}" in given.stderr) == (2, True)


def test_the_runtime_is_put_on_record(ask: Ask, tmp_path: Path) -> None:
    assert ask("ls", runtime="codex").code == 0
    given = ask("ls", runtime="../\x1b[31m")
    assert (given.code, "hook.runtime" in given.stderr) == (2, True)
    assert [each.runtime for each in records(tmp_path)] == ["codex", "unknown"]


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({}, 0),
        ({"REMUDA_HOOK_ENGINE": "Python"}, 0),
        ({"AMPLIHACK_HOOK_ENGINE": "rust"}, 0),
        ({"AMPLIHACK_HOOK_ENGINE": "go"}, 2),
        ({"REMUDA_HOOK_ENGINE": "auto", "AMPLIHACK_HOOK_ENGINE": "go"}, 0),
        ({"REMUDA_HOOK_ENGINE": "go", "AMPLIHACK_HOOK_ENGINE": "auto"}, 2),
    ],
)
def test_an_engine_that_does_not_exist_denies(ask: Ask, environ: dict[str, str], code: int) -> None:
    given = ask("ls", **environ)
    assert (given.code, "hook.engine" in given.stderr) == (code, code == 2)


def test_a_malformed_configuration_denies_and_says_where(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[hooks]\njudges = 1x\n")
    given = ask("ls")
    assert (given.code, "line 2" in given.stderr) == (2, True)
    (tmp_path / "config" / "config.toml").write_text('[hooks]\njudges = ["not/absolute"]\n')
    assert ask("ls").code == 2


@hypothesis.given(st.binary(max_size=200), st.text(max_size=20))
@hypothesis.settings(max_examples=50)
def test_nothing_but_a_verdict_lets_a_tool_run(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, capability: str
) -> None:
    environ = {"REMUDA_HOME": str(tmp_path_factory.getbasetemp()), "REMUDA_CAPABILITY": capability}
    assert respond(Request("PreToolUse"), lambda: data, environ).code == 2
