"""Tool calls of all agent CLIs in one form."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from remuda.guard.model import AnyEffect, Evaluate, Network, Read, System, Tool, Write
from remuda.guard.patches import changes
from remuda.guard.toolinput import host_of
from remuda.guard.toolnames import TOOLS, shape_of
from remuda.guard.tools import Script, ToolCall, normalise


def parts(tool: str, given: object, home: str | None = "/home/alice") -> list[AnyEffect | Script]:
    return list(normalise(ToolCall(tool, given, "/w"), home))


def kind(tool: str, given: object = None) -> str:
    found = parts(tool, {} if given is None else given)
    assert len(found) == 1
    assert isinstance(found[0], Tool)
    return found[0].kind


def written(tool: str, given: object) -> list[tuple[str | None, str]]:
    found = parts(tool, given)
    assert all(isinstance(each, Write) for each in found), found
    return [(each.path.text, each.how) for each in found if isinstance(each, Write)]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": "git push"}),
        ("bash", {"command": "git push", "description": "lists files"}),
        ("bash", '{"command": "git push"}'),
        ("shell", {"command": ["git", "push"]}),
        ("local_shell", ["git", "push"]),
        ("exec_command", {"cmd": "git push", "shell": "/bin/zsh"}),
        ("run_shell_command", {"command": "git push"}),
        ("terminal", {"command": "git push"}),
        ("exec", {"command": "git", "args": ["push"]}),
        ("mcp__remuda__Bash", {"command": "git push"}),
        ("mcp_remuda_Bash", {"command": "git push"}),
        ("remuda_Bash", {"command": "git push"}),
        ("remuda-Bash", {"command": "git push"}),
        ("Monitor", {"command": "git push"}),
    ],
)
def test_every_shell_is_the_same_shell(tool: str, given: object) -> None:
    assert parts(tool, given) == [Script("git push", "/w")]


def test_an_argv_list_is_quoted_for_the_shell() -> None:
    assert parts("shell", {"command": ["bash", "-lc", "rm 'a b'"]}) == [
        Script("""bash -lc 'rm '"'"'a b'"'"''""", "/w")
    ]


def test_a_shell_runs_in_the_folder_it_is_given() -> None:
    assert parts("exec_command", {"cmd": "ls", "workdir": "../x"}) == [Script("ls", "/w/../x")]
    assert parts("exec_command", {"cmd": "ls", "workdir": "~/x"}) == [Script("ls", "/home/alice/x")]
    assert parts("exec", {"command": "ls", "cwd": ""}) == [Tool(name="exec", kind="malformed")]


def test_all_commands_are_judged_whichever_the_tool_will_take() -> None:
    found = parts("shell", {"command": "ls", "cmd": "git push"})
    assert found == [Script("ls", "/w"), Script("git push", "/w")]


def test_variables_of_a_shell_tool_are_set_first() -> None:
    assert parts("exec", {"command": "ls", "env": {"A": "x y", "bad name": "1"}}) == [
        Script("export A='x y'\nls", "/w")
    ]


def test_a_way_out_of_the_sandbox_is_a_privilege() -> None:
    for given in (
        {"command": "ls", "dangerouslyDisableSandbox": True},
        {"command": "ls", "with_escalated_permissions": True},
        {"command": "ls", "sandbox_permissions": "require_escalated"},
    ):
        assert any(isinstance(each, System) and each.kind == "privilege" for each in parts("Bash", given))


@pytest.mark.parametrize("given", [{}, {"command": 7}, {"command": []}, {"command": ["a", 1]}, 7, None])
def test_a_shell_without_a_command_is_malformed(given: object) -> None:
    assert parts("Bash", given) == [Tool(name="Bash", kind="malformed")]


def test_other_languages_are_not_taken_for_a_shell() -> None:
    for tool, given in (
        ("powershell", {"command": "Remove-Item x"}),
        ("codemode", {"code": "x"}),
        ("execute_code", {"code": "x", "language": "ruby"}),
        ("write_stdin", {"session_id": 1, "chars": "git push\n"}),
        ("process", {"action": "write", "data": "git push"}),
    ):
        (found,) = parts(tool, given)
        assert isinstance(found, Evaluate), tool
    assert parts("execute_code", {"code": "print(1)"}) == [Script("python3 -c 'print(1)'", "/w")]


def test_looking_at_a_running_program_is_plain() -> None:
    assert kind("write_stdin", {"session_id": 1, "chars": ""}) == "plain"
    assert kind("process", {"action": "poll", "sessionId": "x"}) == "plain"
    assert kind("BashOutput", {"bash_id": "x"}) == "plain"


@pytest.mark.parametrize(
    ("tool", "given", "path", "how"),
    [
        ("Write", {"file_path": "a", "content": "x"}, "/w/a", "truncate"),
        ("write_file", {"path": "/x/a", "content": "x"}, "/x/a", "truncate"),
        ("write", {"filePath": "a", "content": "x"}, "/w/a", "truncate"),
        ("create", {"path": "a", "file_text": "x"}, "/w/a", "truncate"),
        ("Edit", {"file_path": "~/a", "old_string": "x"}, "/home/alice/a", "edit"),
        ("replace", {"file_path": "file:///etc/a"}, "/etc/a", "edit"),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "x"}, "/w/a", "edit"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a"}, "/w/a", "edit"),
        ("delete_file", {"path": "a"}, "/w/a", "delete"),
        ("create_directory", {"path": "a"}, "/w/a", "create"),
        ("mcp__fs__write_file", {"path": "a"}, "/w/a", "truncate"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}, "/w/a", "create"),
        ("apply_patch", "*** Begin Patch\n*** Delete File: a\n*** End Patch", "/w/a", "delete"),
        ("apply_patch", {"command": ["apply_patch", "*** Update File: a"]}, "/w/a", "edit"),
        ("shell", {"command": ["apply_patch", "*** Update File: a"]}, "/w/a", "edit"),
    ],
)
def test_every_way_to_write_is_a_write(tool: str, given: object, path: str, how: str) -> None:
    assert written(tool, given) == [(path, how)]


def test_every_path_of_a_tool_counts() -> None:
    edits = {"file_path": "a", "edits": [{"old_string": "x", "path": "../b"}, {"filePath": "/c"}]}
    assert [path for path, _ in written("MultiEdit", edits)] == ["/w/a", "/w/../b", "/c"]
    assert {path for path, _ in written("move_file", {"source": "a", "destination": "/b"})} == {"/w/a", "/b"}
    assert {path for path, _ in written("Write", {"file_path": "a", "path": "/b"})} == {"/w/a", "/b"}


@pytest.mark.parametrize(
    "given",
    [
        *(
            {},
            {"content": "x"},
            {"file_path": ""},
            {"file_path": "a\0b"},
            {"file_path": 3},
            {"file_path": None},
        ),
        *({"file_path": "a" * 5000}, {"file_path": ["a", 3]}, "no json", '{"file_path": "a"', [1]),
        *(
            {"file_path": "~bob/a"},
            {"file_path": "$HOME/a"},
            {"file_path": "C:\\a"},
            {"file_path": "\\\\host\\a"},
        ),
    ],
)
def test_a_write_to_nowhere_is_malformed(given: object) -> None:
    assert parts("Write", given) == [Tool(name="Write", kind="malformed")]


def test_a_home_that_nobody_knows_is_malformed() -> None:
    assert parts("Write", {"file_path": "~/a"}, home=None) == [Tool(name="Write", kind="malformed")]


def test_reading_names_and_contents() -> None:
    assert [each.path.text for each in parts("Read", {"file_path": "a"}) if isinstance(each, Read)] == [
        "/w/a"
    ]
    assert [each.names for each in parts("LS", {"path": "a"}) if isinstance(each, Read)] == [True]
    assert [each.names for each in parts("Grep", {"pattern": "x"}) if isinstance(each, Read)] == [False]
    many = parts("read_many_files", {"paths": ["a", "/b"]})
    assert [each.path.text for each in many if isinstance(each, Read)] == ["/w/a", "/b"]
    assert isinstance(parts("str_replace_editor", {"command": "view", "path": "a"})[0], Read)
    assert kind("Read", {"file_path": ""}) == "malformed"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://Example.com/a?b#c", "example.com"),
        ("http://user:pw@evil.example:80/", "evil.example"),
        ("http://good.example@evil.example", "evil.example"),
        ("http://evil.example\\@good.example/", "evil.example"),
        ("http://[::1]:80/x", "[::1]"),
        ("example.com/x", "example.com"),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


def test_fetching_is_network_or_reading() -> None:
    (found,) = parts("WebFetch", {"url": "https://example.com/x", "prompt": "what is it"})
    assert isinstance(found, Network)
    assert (found.direction, found.host.text) == ("get", "example.com")
    (found,) = parts("web_fetch", {"prompt": "look at http://a.example/x please"})
    assert isinstance(found, Network)
    assert found.host.text == "a.example"
    (found,) = parts("fetch", {"url": "file:///etc/shadow"})
    assert isinstance(found, Read)
    (found,) = parts("fetch", {"url": "http://a.example", "body": "x"})
    assert isinstance(found, Network)
    assert found.direction == "send"


def test_native_teams_and_dialogs_are_known_by_name() -> None:
    for tool in ("Task", "task", "SendMessage", "TaskUpdate", "invoke_agent", "delegate_task", "spawn_agent"):
        assert kind(tool) == "team"
    for tool in (
        "AskUserQuestion",
        "EnterPlanMode",
        "enter_plan_mode",
        "EnterWorktree",
        "request_user_input",
    ):
        assert kind(tool) == "interactive"
    for tool in ("TodoWrite", "write_todos", "update_plan", "ToolSearch"):
        assert kind(tool) == "plain"


def test_tools_of_servers_tell_by_their_first_word() -> None:
    assert kind("mcp__github__get_issue", {"issue": 1}) == "reads"
    assert kind("mcp__github__listPulls") == "reads"
    assert kind("mcp_github_list_issues") == "reads"
    assert kind("mcp__github__create_issue") == "changes"
    assert kind("mcp__github__get_or_create_issue") == "changes"
    assert kind("mcp__github__delete_file_contents") == "destroys"
    assert kind("mcp__x__frobnicate") == "unknown"
    assert kind("Frobnicate") == "unknown"


def test_what_a_server_reads_by_path_is_read() -> None:
    found = parts("mcp__fs__get_file_info", {"path": "/home/alice/.ssh/id_rsa"})
    assert [each.path.text for each in found if isinstance(each, Read)] == ["/home/alice/.ssh/id_rsa"]


def test_what_a_server_runs_as_a_command_is_judged_as_one() -> None:
    for tool in ("mcp__x__execute", "mcp__x__frobnicate", "mcp__x__delete_all"):
        assert Script("git push", "/w") in parts(tool, {"command": "git push"})


def test_a_batch_is_all_its_calls() -> None:
    inner = [
        {"tool": "bash", "parameters": {"command": "ls"}},
        {"tool": "write", "parameters": {"filePath": "a"}},
    ]
    assert [type(each) for each in parts("batch", {"tool_calls": inner})] == [Script, Write]
    assert kind("batch", {"tool_calls": [{"parameters": {}}]}) == "malformed"
    nested: dict[str, object] = {"tool_calls": []}
    for _ in range(20):
        nested = {"tool_calls": [{"tool": "batch", "parameters": nested}]}
    assert kind("batch", nested) == "malformed"


def test_patches_name_their_files() -> None:
    patch = "*** Update File: a\n*** Move to: /b\n@@\n-*** Delete File: no\n+x\n"
    assert list(changes(patch)) == [("a", "edit"), ("/b", "create")]
    diff = "--- a/x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\nrename from q\nrename to r\n"
    assert {name for name, _ in changes(diff)} >= {"x", "../x", "q", "r"}


def test_spelling_does_not_matter() -> None:
    for name in ("run_shell_command", "RunShellCommand", "run-shell-command"):
        assert shape_of(name) == ("shell", False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["command", "file_path", "path", "edits", "input", "url", "tool_calls", "env", "args"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@hypothesis.given(st.sampled_from(sorted(TOOLS)) | st.text(max_size=20), JSON)
def test_every_input_becomes_something(tool: str, given: object) -> None:
    assert parts(tool, given)
    assert parts(tool, json.dumps(given))
