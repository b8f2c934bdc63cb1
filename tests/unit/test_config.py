"""The configuration: read, merged, edited with its comments kept, refused when it is wrong."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remuda.core import config
from remuda.core.errors import ConfigError
from remuda.core.paths import Folders, folders

COMMENTED = """# my settings
agent = "claude"   # the one I like

[run]
# half an hour
timeout = 1800
"""


@pytest.fixture
def place(tmp_path: Path) -> Folders:
    found = folders({"REMUDA_HOME": str(tmp_path / "home")})
    found.config.mkdir(parents=True)
    return found


def test_without_any_file_the_defaults_hold(place: Folders, tmp_path: Path) -> None:
    assert config.load(place, tmp_path) == config.Config()


def test_every_key_is_read(place: Folders, tmp_path: Path) -> None:
    place.config_file.write_text(
        'agent = "codex"\nprompt_delivery = "stdin"\n[environment]\npass = ["A", "B_*"]\n'
        "[run]\ntimeout = 5\nidle_timeout = 2.5\n[runtimes.claude]\nbinary = '/opt/claude'\nmodel = 'opus'\n"
    )
    loaded = config.load(place, tmp_path)
    assert (loaded.agent, loaded.prompt_delivery) == ("codex", "stdin")
    assert loaded.environment.pass_ == ("A", "B_*")
    assert (loaded.run.timeout, loaded.run.idle_timeout) == (5, 2.5)
    assert loaded.runtimes["claude"] == config.RuntimeConfig("/opt/claude", "opus")


def test_a_malformed_file_names_itself_and_the_line_and_stays(place: Folders, tmp_path: Path) -> None:
    text = 'agent = "claude"\n\nrun = {\n'
    place.config_file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(place, tmp_path)
    assert str(place.config_file) in caught.value.message
    assert "line 3" in caught.value.message
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError):
        config.edit(place.config_file, "agent", "codex")
    assert place.config_file.read_text() == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agnet = 'claude'", "agnet"),
        ("[run]\ntimout = 3", "timout"),
        ("[run]\ntimeout = 'long'", "timeout"),
        ("[run]\ntimeout = -1", "timeout"),
        ("[run]\nidle_timeout = nan", "idle_timeout"),
        ("agent = 3", "agent"),
        ("[runtimes.claude]\nbin = 'x'", "bin"),
        ("[environment]\npass = 'HOME'", "pass"),
        ("[agents.a]\nruntime = 'pi'\n[agents.b]\nruntime = 'pi'\ncolour = 1", "`$.agents.b`"),
        ("[agents.a]\nruntime = 'pi'\n[agents.b]\nruntime = 'pi'\ntags = 'x'", "`$.agents.b.tags`"),
        ("[agents.a]\nruntime = 'pi'\n[agents.b.limits]\nrate = 3", "`$.agents.b.limits.rate`"),
        ("[agents.'b c']\ntags = 3", "`$.agents[...].tags`"),
    ],
)
def test_unknown_keys_and_wrong_values_are_refused(
    place: Folders, tmp_path: Path, text: str, told: str
) -> None:
    place.config_file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(place, tmp_path)
    assert str(place.config_file) in caught.value.message
    assert told in caught.value.message


def test_bytes_that_are_not_text_are_refused(place: Folders, tmp_path: Path) -> None:
    place.config_file.write_bytes(b'agent = "\xff"')
    with pytest.raises(ConfigError, match="cannot read"):
        config.load(place, tmp_path)


def test_the_project_overlays_key_by_key(place: Folders, tmp_path: Path) -> None:
    place.config_file.write_text("agent = 'claude'\n[run]\ntimeout = 5\nidle_timeout = 7\n")
    project = tmp_path / "project"
    (project / ".remuda").mkdir(parents=True)
    (project / config.PROJECT_FILE).write_text("agent = 'codex'\n[run]\ntimeout = 9\n")
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    loaded = config.load(place, deep)
    assert (loaded.agent, loaded.run.timeout, loaded.run.idle_timeout) == ("codex", 9, 7)
    assert config.load(place, tmp_path).agent == "claude"


def test_a_malformed_project_file_is_named(place: Folders, tmp_path: Path) -> None:
    (tmp_path / ".remuda").mkdir()
    (tmp_path / config.PROJECT_FILE).write_text("agent =")
    with pytest.raises(ConfigError) as caught:
        config.load(place, tmp_path)
    assert str(tmp_path / config.PROJECT_FILE) in caught.value.message


def test_editing_keeps_comments_and_layout(place: Folders) -> None:
    place.config_file.write_text(COMMENTED)
    config.edit(place.config_file, "run.timeout", 60)
    assert place.config_file.read_text() == COMMENTED.replace("1800", "60")
    config.edit(place.config_file, "run.timeout", 1800)
    assert place.config_file.read_text() == COMMENTED


def test_editing_keeps_windows_line_ends(place: Folders) -> None:
    place.config_file.write_bytes(COMMENTED.replace("\n", "\r\n").encode())
    config.edit(place.config_file, "run.timeout", 60)
    assert place.config_file.read_bytes() == COMMENTED.replace("\n", "\r\n").replace("1800", "60").encode()


def test_a_byte_order_mark_is_no_obstacle(place: Folders, tmp_path: Path) -> None:
    place.config_file.write_bytes(b"\xef\xbb\xbf" + COMMENTED.encode())
    assert config.load(place, tmp_path).agent == "claude"
    config.edit(place.config_file, "agent", "codex")
    loaded = config.load(place, tmp_path)
    assert (loaded.agent, loaded.run.timeout) == ("codex", 1800)
    assert "# half an hour" in place.config_file.read_text("utf-8-sig")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agent", 5),
        ("agnet", "claude"),
        ("run.timeout", "long"),
        ("run.timeout", -1),
        ("run.nothing", 1),
        ("agent.name", "x"),
        ("run.timeout.seconds", 3),
        ("run", 3),
        ("environment.pass", "HOME"),
        ("environment.pass", [1]),
        ("environment.pass", [None]),
        ("runtimes.claude", {"model": None}),
        ("", "x"),
        (".", "x"),
    ],
)
def test_a_refused_edit_writes_nothing(place: Folders, key: str, value: object) -> None:
    place.config_file.write_text(COMMENTED)
    stamp = place.config_file.stat()
    with pytest.raises(ConfigError):
        config.edit(place.config_file, key, value)
    assert place.config_file.read_text() == COMMENTED
    assert place.config_file.stat().st_ino == stamp.st_ino


def test_a_key_is_made_and_removed_with_its_tables(place: Folders, tmp_path: Path) -> None:
    config.edit(place.config_file, "runtimes.claude.model", "opus")
    assert config.load(place, tmp_path).runtimes["claude"].model == "opus"
    config.edit(place.config_file, "runtimes.claude.model", None)
    assert config.load(place, tmp_path).runtimes["claude"].model is None


def test_removing_what_is_not_there_writes_nothing(place: Folders) -> None:
    config.edit(place.config_file, "run.timeout", None)
    assert not place.config_file.exists()


def test_a_symlinked_file_stays_a_symlink(place: Folders, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text(COMMENTED)
    place.config_file.symlink_to(target)
    config.edit(place.config_file, "agent", "codex")
    assert place.config_file.is_symlink()
    assert target.read_text() == COMMENTED.replace('"claude"', '"codex"')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    agent=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30),
    timeout=st.floats(0, 1e9),
    passed=st.lists(st.text(string.printable, max_size=10), max_size=4),
)
def test_what_is_set_is_read_back(
    place: Folders, tmp_path: Path, agent: str, timeout: float, passed: list[str]
) -> None:
    config.edit(place.config_file, "agent", agent)
    config.edit(place.config_file, "run.timeout", timeout)
    config.edit(place.config_file, "environment.pass", passed)
    loaded = config.load(place, tmp_path)
    assert (loaded.agent, loaded.run.timeout, list(loaded.environment.pass_)) == (agent, timeout, passed)


@pytest.mark.parametrize("text", ["[runtimes.claude]\nbinary = './evil'\n", "[environment]\npass = ['*']\n"])
def test_a_project_may_name_no_program_and_let_no_variable_through(
    place: Folders, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "project" / config.PROJECT_FILE
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        config.load(place, tmp_path / "project")
    assert "your own file" in raised.value.hint
