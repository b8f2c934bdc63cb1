"""``remuda guard install``, ``remove`` and ``status`` on files as people have them."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from tests.support import Site

from remuda.runtimes import registry

WIRED = [runtime.name for runtime in registry.all_runtimes() if runtime.wiring]
UNWIRED = [runtime.name for runtime in registry.all_runtimes() if not runtime.wiring]
PLACES = {
    ("claude", "user"): ".claude/settings.json",
    ("claude", "project"): "work/.claude/settings.local.json",
    ("codex", "user"): ".codex/hooks.json",
    ("codex", "project"): "work/.codex/hooks.json",
    ("copilot", "user"): ".copilot/hooks/remuda.json",
    ("copilot", "project"): "work/.github/hooks/remuda.json",
    ("gemini", "user"): ".gemini/settings.json",
    ("gemini", "project"): "work/.gemini/settings.json",
    ("hermes", "user"): ".hermes/config.yaml",
    ("opencode", "user"): ".config/opencode/plugins/remuda.js",
    ("opencode", "project"): "work/.opencode/plugins/remuda.js",
    ("pi", "user"): ".pi/agent/extensions/remuda.js",
    ("pi", "project"): "work/.pi/extensions/remuda.js",
    ("rehearsal", "user"): "rehearsal/settings.json",
    ("rehearsal", "project"): "work/.rehearsal/settings.json",
}
HOMES = {
    "claude": ("CLAUDE_CONFIG_DIR", "settings.json"),
    "codex": ("CODEX_HOME", "hooks.json"),
    "copilot": ("COPILOT_HOME", "hooks/remuda.json"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/settings.json"),
    "hermes": ("HERMES_HOME", "config.yaml"),
    "opencode": ("XDG_CONFIG_HOME", "opencode/plugins/remuda.js"),
    "pi": ("PI_CODING_AGENT_DIR", "extensions/remuda.js"),
    "rehearsal": ("REHEARSAL_HOME", "settings.json"),
}


SCENARIO = """\
name: push
rules:
  - steps:
      - tool: shell
        input: {command: git push --force}
      - text: Done.
"""


@pytest.fixture(autouse=True)
def project(site: Site) -> None:
    """The working folder is a project of its own."""
    (site.cwd / ".git").mkdir()


def tree(site: Site) -> dict[str, bytes | None]:
    """All files and folders but the programs of the site and Remuda's own folder."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in site.folder.rglob("*")
        if not path.is_relative_to(site.bin) and path != site.home / "data" and path != site.home
    }


def program(site: Site, runtime: str, event: str = "pre_tool_use") -> Path:
    return site.home / "data" / "hooks" / runtime / event


def standing(site: Site, runtime: str, scope: str = "user", **env: str) -> dict[str, object]:
    (found,) = site.remuda("guard", "status", runtime, "--json", **env).json["runtimes"]  # type: ignore[misc]
    return next(each for each in found["scopes"] if each["scope"] == scope)


@pytest.mark.parametrize(("runtime", "scope"), PLACES)
def test_install_and_remove_in_an_empty_home(site: Site, runtime: str, scope: str) -> None:
    before = tree(site)
    options = (runtime, "--scope", scope)
    dry = site.remuda("guard", "install", *options, "--dry-run")
    assert dry.code == 0
    assert f"+++ {site.folder / PLACES[runtime, scope]}" in dry.stdout
    assert tree(site) == before

    assert site.remuda("guard", "install", *options).code == 0
    text = (site.folder / PLACES[runtime, scope]).read_text()
    assert str(program(site, runtime)) in text
    assert stat.S_IMODE(program(site, runtime).stat().st_mode) == 0o700
    assert standing(site, runtime, scope)["installed"] == "yes"
    assert standing(site, runtime, scope)["program"] == "there"

    after = tree(site)
    again = site.remuda("guard", "install", *options)
    assert (again.code, again.stdout) == (0, f"{runtime} ({scope}): unchanged\n")
    assert tree(site) == after

    assert site.remuda("guard", "remove", *options).code == 0
    assert tree(site) == before
    assert standing(site, runtime, scope)["installed"] == "no"
    gone = site.remuda("guard", "remove", *options)
    assert (gone.code, gone.stdout) == (0, f"{runtime} ({scope}): unchanged\n")


def test_all_runtimes_with_a_wiring_are_covered() -> None:
    assert {runtime for runtime, _ in PLACES} == set(WIRED) == set(HOMES)


@pytest.mark.parametrize("runtime", WIRED)
def test_a_home_that_the_cli_is_told_of_is_used(site: Site, runtime: str) -> None:
    variable, name = HOMES[runtime]
    before = tree(site)
    env = {variable: str(site.folder / "elsewhere")}
    assert site.remuda("guard", "install", runtime, **env).code == 0
    assert str(program(site, runtime)) in (site.folder / "elsewhere" / name).read_text()
    assert standing(site, runtime)["installed"] == "no"
    assert standing(site, runtime, **env)["installed"] == "yes"
    assert site.remuda("guard", "remove", runtime, **env).code == 0
    assert tree(site) == before


def test_what_was_there_stays(site: Site) -> None:
    """The mode, the link, every byte of the text."""
    real = site.folder / "dotfiles.json"
    text = '{"env" : {"A":"é"},\r\n\t"hooks": { "PreToolUse" : [ {"hooks":[]} ] } }'
    real.write_bytes(text.encode())
    real.chmod(0o640)
    link = site.folder / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    before = tree(site)
    assert site.remuda("guard", "install", "claude").code == 0
    settings = json.loads(real.read_text())
    assert settings["env"] == {"A": "é"}
    assert len(settings["hooks"]["PreToolUse"]) == 2
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert site.remuda("guard", "remove", "claude").code == 0
    assert tree(site) == before
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_what_others_have_added_since_stays(site: Site) -> None:
    assert site.remuda("guard", "install", "claude").code == 0
    file = site.folder / ".claude" / "settings.json"
    settings = json.loads(file.read_text())
    settings["model"] = "opus"
    file.write_text(json.dumps(settings))
    notes = file.with_name("CLAUDE.md")
    notes.write_text("notes")
    assert site.remuda("guard", "install", "claude").stdout == "claude (user): unchanged\n"
    assert site.remuda("guard", "remove", "claude").code == 0
    assert json.loads(file.read_text()) == {"model": "opus"}
    assert notes.exists()
    assert not (site.home / "data" / "hooks").exists()


def test_the_record_is_private_and_says_what_was_added(site: Site) -> None:
    file = site.folder / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"env": {"KEY": "hunter2-token"}}')
    assert site.remuda("guard", "install", "claude").code == 0
    (record,) = (site.home / "data" / "guard").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert str(program(site, "claude")) in record.read_text()
    assert "hunter2" not in record.read_text()


@pytest.mark.parametrize(
    ("runtime", "name", "text", "told"),
    [
        ("claude", ".claude/settings.json", '{\n  "a": 1,\n}\n', "line 3, column 1"),
        (
            "claude",
            ".claude/settings.json",
            '{"hooks": {"PreToolUse": "x"}}',
            "hooks.PreToolUse is not a list",
        ),
        ("gemini", ".gemini/settings.json", "// only\n{,}", "line 2, column 2"),
        ("codex", ".codex/hooks.json", "[1]", "the document is not an object"),
        ("hermes", ".hermes/config.yaml", "a: [1\n", "line 2"),
        ("hermes", ".hermes/shell-hooks-allowlist.json", "{", "line 1"),
        ("copilot", ".copilot/hooks/remuda.json", "{}", "not as Remuda wrote it"),
        ("rehearsal", "rehearsal/settings.json", "\udcff", "UTF-8"),
    ],
)
def test_malformed_settings_are_left_alone(site: Site, runtime: str, name: str, text: str, told: str) -> None:
    file = site.folder / name
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode(errors="surrogateescape"))
    before = tree(site)
    ended = site.remuda("guard", "install", runtime)
    assert ended.code == 2
    assert str(file) in ended.stderr
    assert told in ended.stderr
    assert "Nothing was changed" in ended.stderr
    assert tree(site) == before
    assert site.remuda("guard", "remove", runtime).code == (0 if "is not" in told else 2)
    assert tree(site) == before


def test_one_malformed_file_stops_it_for_all(site: Site) -> None:
    (site.folder / ".gemini").mkdir()
    (site.folder / ".gemini" / "settings.json").write_text("{")
    before = tree(site)
    assert site.remuda("guard", "install", "claude", "gemini").code == 2
    assert tree(site) == before


def test_a_folder_that_cannot_be_written_leaves_everything_as_it_was(site: Site) -> None:
    """Two files change for Hermes: the second is a folder's name."""
    home = site.folder / ".hermes"
    (home / "shell-hooks-allowlist.json").mkdir(parents=True)
    (home / "config.yaml").write_text("a: 1\n")
    assert site.remuda("guard", "install", "hermes").code != 0
    assert (home / "config.yaml").read_text() == "a: 1\n"
    assert not (site.home / "data" / "guard").exists()


def test_a_project_cannot_lead_the_way_out_of_itself(site: Site) -> None:
    theirs = site.folder / ".claude" / "settings.json"
    theirs.parent.mkdir()
    theirs.write_text("{}")
    (site.cwd / ".claude").symlink_to(theirs.parent)
    before = tree(site)
    for verb in ("install", "remove"):
        ended = site.remuda("guard", verb, "claude", "--scope", "project")
        assert ended.code == 2
        assert "leads out of the project" in ended.stderr
        assert tree(site) == before


def test_a_project_is_its_whole_work_tree(site: Site) -> None:
    (site.cwd / ".git").rmdir()
    (site.folder / ".git").mkdir()
    assert site.remuda("guard", "install", "claude", "--scope", "project").code == 0
    assert (site.folder / ".claude" / "settings.local.json").exists()


@pytest.mark.parametrize("runtime", UNWIRED)
def test_what_no_hook_would_hold_is_refused(site: Site, runtime: str) -> None:
    for verb in ("install", "remove"):
        ended = site.remuda("guard", verb, runtime)
        assert ended.code == 5
        assert "has no hook that would hold: " in ended.stderr
    assert site.remuda("guard", "status", runtime).stdout.count("has no hook that would hold") == 1


def test_without_a_name_all_that_are_installed_are_meant(site: Site) -> None:
    for name in ("claude", "aider", "hermes"):
        site.program(name, "#!/bin/sh\n")
    ended = site.remuda("guard", "install", "--scope", "project")
    assert ended.code == 0
    assert [line for line in ended.stdout.splitlines() if not line.startswith(" ")] == [
        "aider (project): skipped",
        "claude (project): installed",
        "hermes (project): skipped",
        "rehearsal (project): installed",
    ]
    assert "Aider has no hook that would hold" in ended.stderr
    done = site.remuda("guard", "remove", "--scope", "project", "--json").json
    assert [(each["runtime"], each["state"]) for each in done["outcomes"]] == [  # type: ignore[attr-defined]
        ("aider", "skipped"),
        ("claude", "removed"),
        ("hermes", "skipped"),
        ("rehearsal", "removed"),
    ]


def test_an_unknown_runtime_is_not_found(site: Site) -> None:
    for verb in ("install", "remove", "status"):
        assert site.remuda("guard", verb, "../claude").code == 4


def test_codex_is_only_made_to_trust_with_consent(site: Site) -> None:
    config = site.folder / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "x"  # mine\n')
    theirs = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "/theirs"}]}]}}
    hooks = config.with_name("hooks.json")
    hooks.write_text(json.dumps(theirs))
    before = tree(site)
    ended = site.remuda("guard", "install", "codex")
    assert "--trust" in ended.stderr
    assert config.read_text() == 'model = "x"  # mine\n'
    problems = standing(site, "codex")["problems"]
    assert problems == ["nobody has agreed to the hooks yet, and Codex skips them"]

    assert site.remuda("guard", "install", "codex", "--trust").code == 0
    state = tomllib.loads(config.read_text())["hooks"]["state"]
    places = ("session_start:0", "pre_tool_use:1", "user_prompt_submit:0", "stop:0", "session_end:0")
    assert set(state) == {f"{hooks}:{place}:0" for place in places}
    assert standing(site, "codex")["problems"] == []
    assert site.remuda("guard", "install", "codex").stdout == "codex (user): unchanged\n"
    assert standing(site, "codex")["problems"] == []
    assert site.remuda("guard", "remove", "codex").code == 0
    assert tree(site) == before


def test_one_scope_is_removed_without_the_other(site: Site) -> None:
    for scope in ("user", "project"):
        assert site.remuda("guard", "install", "rehearsal", "--scope", scope).code == 0
    assert site.remuda("guard", "remove", "rehearsal").code == 0
    assert standing(site, "rehearsal", "user")["installed"] == "no"
    assert standing(site, "rehearsal", "project")["installed"] == "yes"
    assert program(site, "rehearsal").exists()
    assert site.remuda("guard", "remove", "rehearsal", "--scope", "project").code == 0
    assert not program(site, "rehearsal").exists()


@pytest.mark.parametrize(
    ("runtime", "name", "text", "told"),
    [
        ("claude", "work/.claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks is set in"),
        ("rehearsal", "work/.rehearsal/settings.json", '{"disableAllHooks": true}', "disableAllHooks is set"),
        ("copilot", "work/.github/copilot/settings.json", '{"disableAllHooks": true}', "disableAllHooks"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks is off in"),
        (
            "gemini",
            "work/.gemini/settings.json",
            '{"hooksConfig": {"enabled": false}}',
            "hooksConfig.enabled",
        ),
        (
            "gemini",
            "work/.gemini/settings.json",
            '{"hooksConfig": {"disabled": ["remuda"]}}',
            "hooksConfig.disabled names remuda",
        ),
    ],
)
def test_status_tells_what_switches_hooks_off(
    site: Site, runtime: str, name: str, text: str, told: str
) -> None:
    file = site.folder / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert site.remuda("guard", "install", runtime).code == 0
    shown = site.remuda("guard", "status", runtime).stdout
    assert f"problem: {told}" in shown
    assert str(file) in shown


def test_status_tells_of_a_program_that_is_missing_or_not_ours(site: Site) -> None:
    assert site.remuda("guard", "install", "rehearsal").code == 0
    path = program(site, "rehearsal")
    path.write_text("#!/bin/sh\necho '{}'\n")
    assert standing(site, "rehearsal")["program"] == "outdated"
    path.unlink()
    shown = site.remuda("guard", "status", "rehearsal").stdout
    assert "hook program: missing" in shown
    assert "No PreToolUse hook registered for active agent binary 'rehearsal'." in shown
    assert site.remuda("guard", "install", "rehearsal").code == 0
    assert standing(site, "rehearsal")["program"] == "there"


def test_status_tells_of_settings_that_are_half_there_or_malformed(site: Site) -> None:
    assert site.remuda("guard", "install", "rehearsal").code == 0
    file = site.folder / "rehearsal" / "settings.json"
    settings = json.loads(file.read_text())
    del settings["hooks"]["SessionStart"]
    file.write_text(json.dumps(settings))
    assert standing(site, "rehearsal")["installed"] == "partly"
    file.write_text("{")
    assert standing(site, "rehearsal")["installed"] == "unknown"


def test_status_shows_the_last_proof(site: Site) -> None:
    seen = {"runtime": "rehearsal", "version": "0.1.0", "what": "guard.hook", "holds": True}
    line = json.dumps({**seen, "seen_at": "2026-01-02T03:04:05Z", "how": "the file was absent"})
    (site.home / "state").mkdir(parents=True)
    (site.home / "state" / "evidence.jsonl").write_text(f"{line}\n")
    shown = site.remuda("guard", "status", "rehearsal").stdout
    assert "on 0.1.0 the hook held (2026-01-02T03:04:05Z): the file was absent" in shown


def test_the_path_of_a_hook_program(site: Site) -> None:
    missing = site.remuda("hook", "pre-tool-use", "--agent", "claude", "--path")
    assert missing.code == 4
    assert "No PreToolUse hook registered for active agent binary 'claude'." in missing.stderr
    assert f"Expected at: {program(site, 'claude')}" in missing.stderr
    assert site.remuda("guard", "install", "claude").code == 0
    for name in ("pre-tool-use", "PreToolUse", "preToolUse"):
        found = site.remuda("hook", name, "--agent", "claude", "--path")
        assert (found.code, found.stdout) == (0, f"{program(site, 'claude').resolve()}\n")
    assert site.remuda("hook", "stop", "--path", REMUDA_AGENT_BINARY="claude").code == 0
    assert site.remuda("hook", "stop", "--path", REMUDA_AGENT_BINARY="codex").code == 4
    assert site.remuda("hook", "stop", "--agent", "../claude", "--path").code == 4
    assert site.remuda("hook", "lunch", "--agent", "claude", "--path").code == 2


def test_an_installed_guard_stops_the_rehearsal_agent(site: Site) -> None:
    scenario = site.write("push.yaml", SCENARIO)
    assert site.remuda("guard", "install", "rehearsal").code == 0
    ended = site.remuda(
        *("run", "--json", "--agent", "rehearsal", "--permission", "bypass", "publish it"),
        REHEARSAL_SCENARIO=str(scenario),
    )
    assert ended.code == 0
    assert "(git.force)" in ended.stdout
    lines = (site.home / "state" / "guard.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [(each["event"], each.get("decision")) for each in records] == [
        ("SessionStart", None),
        ("UserPromptSubmit", None),
        ("PreToolUse", "deny"),
        ("Stop", None),
        ("SessionEnd", None),
    ]


def test_two_at_a_time_do_not_get_in_each_others_way(site: Site) -> None:
    started = [site.start("guard", "install", "rehearsal") for _ in range(4)]
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    settings = json.loads((site.folder / "rehearsal" / "settings.json").read_text())
    assert [len(entries) for entries in settings["hooks"].values()] == [1] * 5
    assert site.remuda("guard", "remove", "rehearsal").code == 0
    assert not os.path.lexists(site.folder / "rehearsal")
