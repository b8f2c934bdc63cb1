"""``remuda config`` from the outside."""

from __future__ import annotations

import json

import pytest
from tests.support import Site


def test_path_says_where(site: Site) -> None:
    assert site.remuda("config", "path").stdout == f"{site.home}/config/config.toml\n"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("agent", "claude", "claude"),
        ("run.timeout", "1800", 1800),
        ("run.idle_timeout", "2.5", 2.5),
        ("environment.pass", '["JAVA_HOME", "AWS_*"]', ["JAVA_HOME", "AWS_*"]),
        ("runtimes.claude.model", "opus 4 [1m]", "opus 4 [1m]"),
        ("runtimes.codex.binary", '"3"', "3"),
    ],
)
def test_what_is_set_is_got_with_its_type(site: Site, key: str, text: str, value: object) -> None:
    done = site.remuda("config", "set", key, text)
    assert (done.code, done.stdout) == (0, "")
    assert str(site.home / "config/config.toml") in done.stderr
    assert site.remuda("config", "get", key, "--json").json == {"key": key, "value": value}
    plain = value if isinstance(value, str) else json.dumps(value)
    assert site.remuda("config", "get", key).stdout.strip() in (plain, f"{plain}.0")
    assert site.remuda("config", "unset", key).code == 0
    assert site.remuda("config", "get", key, "--json").stdout != json.dumps({"key": key, "value": value})


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("agnet", "claude", "agnet"),
        ("run.timeout", "long", "run.timeout"),
        ("run.timeout", "-1", "run.timeout"),
        ("agent", "5", "agent"),
        ("agent.name", "x", "agent"),
        ("environment.pass", "HOME", "environment.pass"),
        ("environment.pass", "[null]", "environment.pass"),
    ],
)
def test_what_is_wrong_is_refused_and_not_written(site: Site, key: str, text: str, told: str) -> None:
    site.remuda("config", "set", "agent", "codex")
    path = site.home / "config" / "config.toml"
    before = path.read_bytes()
    ended = site.remuda("config", "set", "--", key, text)
    assert ended.code == 2
    assert told in ended.stderr
    assert path.read_bytes() == before


def test_list_shows_every_key_and_where_it_comes_from(site: Site) -> None:
    site.write(".remuda/config.toml", "agent = 'codex'\n")
    site.remuda("config", "set", "run.timeout", "60")
    shown = site.remuda("config", "list")
    lines = dict(line.split(" = ", 1) for line in shown.stdout.splitlines())
    assert lines["agent"] == '"codex"'
    assert float(lines["run.timeout"]) == 60
    assert {"prompt_delivery", "environment.pass", "run.idle_timeout", "runtimes"} <= lines.keys()
    assert str(site.cwd / ".remuda/config.toml") in shown.stderr
    document = site.remuda("config", "list", "--json").json
    assert document["project_file"] == str(site.cwd / ".remuda/config.toml")
    assert isinstance(document["settings"], list)
    assert {setting["key"] for setting in document["settings"]} == lines.keys()


def test_the_projects_file_is_changed_on_request(site: Site) -> None:
    assert site.remuda("config", "set", "--project", "agent", "claude").code == 0
    assert (site.cwd / ".remuda" / "config.toml").read_text() == 'agent = "claude"\n'
    assert not (site.home / "config" / "config.toml").exists()
    assert site.remuda("which").stdout == "claude\n"


def test_comments_and_a_symlink_survive(site: Site) -> None:
    target = site.write("dotfiles.toml", "# mine\nagent = 'claude' # good\n")
    path = site.home / "config" / "config.toml"
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    assert site.remuda("config", "set", "agent", "codex").code == 0
    assert path.is_symlink()
    assert target.read_text() == '# mine\nagent = "codex" # good\n'


def test_a_malformed_file_stops_every_verb_with_file_and_line(site: Site) -> None:
    path = site.home / "config" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("agent = 'claude'\nrun = [\n")
    for arguments in (("which",), ("config", "set", "agent", "codex"), ("run", "hi")):
        ended = site.remuda(*arguments)
        assert ended.code == 2
        assert str(path) in ended.stderr
        assert "line 2" in ended.stderr or "line 3" in ended.stderr or "end of document" in ended.stderr
    assert path.read_text() == "agent = 'claude'\nrun = [\n"


def test_an_unknown_key_is_not_found(site: Site) -> None:
    ended = site.remuda("config", "get", "agnet")
    assert ended.code == 4
    assert "config list" in ended.stderr
