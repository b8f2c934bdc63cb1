"""Whichever way the hook is called, it says the same: the two documented entry points, and the client, with
and without the resident process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.integration.residents import payload, program
from tests.support import Ended, Site

ALONE = {"REMUDA_HOOK_ENGINE": "python"}
WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "remuda hook": ([sys.executable, "-m", "remuda", "hook"], {}),
    "module": ([sys.executable, "-I", "-m", "remuda.hooks"], {}),
    "client alone": (program(), ALONE),
    "client": (program(), {}),
}
"""How it is called; the last one is answered by the resident process."""

BUILDER = {"REMUDA_CAPABILITY": "builder", "REMUDA_WORKTREE": "{cwd}"}
FLAT = {"toolName": "bash", "toolArgs": '{"command": "git push --force"}', "sessionId": "s"}
CASES: dict[str, tuple[list[str], bytes, dict[str, str], int]] = {
    "allowed": (["pre-tool-use"], payload("pwd"), {}, 0),
    "denied": (["pre-tool-use"], payload("git push --force"), {}, 2),
    "as an argument": (["PreToolUse", payload("git push --force").decode()], b"", {}, 2),
    "allowed as an argument": (["pre_tool_use", payload("pwd").decode()], b"", {}, 0),
    "copilot": (["preToolUse", "--dialect", "copilot"], json.dumps(FLAT).encode(), {}, 2),
    "copilot allowed": (["preToolUse", "--dialect=copilot"], payload("ls"), {}, 0),
    "runtime": (["pre-tool-use", "--runtime", "codex"], payload("ls"), {}, 0),
    "no runtime": (["pre-tool-use", "--runtime", "../x"], payload("ls"), {}, 2),
    "scout": (["pre-tool-use"], payload("touch x"), {"REMUDA_CAPABILITY": "scout"}, 2),
    "builder inside": (["pre-tool-use"], payload("touch x"), BUILDER, 0),
    "builder outside": (["pre-tool-use"], payload("touch /etc/x"), BUILDER, 2),
    "builder's branch": (
        ["pre-tool-use"],
        payload("git switch -c a/b"),
        {**BUILDER, "REMUDA_BRANCH_PREFIX": "a/"},
        0,
    ),
    "king": (["pre-tool-use"], payload("ls"), {"REMUDA_CAPABILITY": "king"}, 2),
    "relative worktree": (["pre-tool-use"], payload("ls"), {"REMUDA_WORKTREE": "w"}, 2),
    "nothing": (["pre-tool-use"], b"", {}, 2),
    "garbage": (["pre-tool-use"], b"\xff\xfe{", {}, 2),
    "a list": (["pre-tool-use"], b"[]", {}, 2),
    "no tool": (["pre-tool-use"], b'{"tool_input": {}}', {}, 2),
    "too long": (["pre-tool-use"], payload("x" * 4 * 1024 * 1024), {}, 2),
    "nearly too long": (["pre-tool-use"], payload("echo " + "x" * (4 * 1024 * 1024 - 1000)), BUILDER, 2),
    "no event": ([], payload("ls"), {}, 2),
    "unknown event": (["pre-tool"], payload("ls"), {}, 2),
    "unknown dialect": (["pre-tool-use", "--dialect", "x"], payload("ls"), {}, 2),
    "unknown option": (["pre-tool-use", "--nothing"], payload("ls"), {}, 2),
    "after the fact": (["post-tool-use"], payload("git push --force"), {}, 0),
    "stop": (["stop"], b"garbage", {}, 0),
    "a stop that is none": (
        ["stop"],
        payload("rm -rf /")[:-1] + b', "hook_event_name": "PreToolUse"}',
        {},
        2,
    ),
    "not UTF-8": (
        ["pre-tool-use"],
        '{"tool_name": "Bash", "tool_input": {"command": "ls ü"}}'.encode("latin-1"),
        {},
        2,
    ),
}


def call(site: Site, way: str, case: str) -> Ended:
    argv, env = WAYS[way]
    arguments, stdin, variables, _ = CASES[case]
    said = {name: value.format(cwd=site.cwd) for name, value in variables.items()}
    ended = subprocess.run(
        [*argv, *arguments],
        input=stdin,
        cwd=site.cwd,
        env={**site.env, **env, **said},
        capture_output=True,
        timeout=30,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("case", CASES)
def test_all_ways_say_the_same(serving: Site, case: str) -> None:
    said = {way: call(serving, way, case) for way in WAYS}
    expected = said["module"]
    assert expected.code == CASES[case][3]
    assert (expected.stdout == "{}\n") == (expected.code == 0)
    for each in said.values():
        assert (each.code, each.stdout, each.stderr) == (expected.code, expected.stdout, expected.stderr)
    lines = (serving.home / "state" / "guard.jsonl").read_text().splitlines()
    records = [{**json.loads(line), "time": ""} for line in lines]
    assert records == [records[0]] * len(WAYS)
