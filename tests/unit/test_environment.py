"""What a child's environment holds, and what it never holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.environment import BASE, ENDPOINT, allowed, without
from remuda.operations import environment
from remuda.operations.environment import interactive_environment
from remuda.operations.world import World, open_world
from remuda.runtimes import registry
from remuda.runtimes.base import Runtime

NAMES = st.text("ABC_*", min_size=1, max_size=6)
SECRETS = {"AWS_SECRET_ACCESS_KEY": "s", "GITHUB_TOKEN": "s", "DATABASE_URL": "s", "MY_PASSWORD": "s"}


def world(tmp_path: Path, **environ: str) -> World:
    return open_world({"REMUDA_HOME": str(tmp_path), "PATH": "/bin", **environ}, tmp_path)


def headless_environment(world: World, runtime: Runtime, extra: Mapping[str, str]) -> dict[str, str]:
    return environment.headless_environment(world, world.roster.get(runtime.name), runtime, extra)


@given(st.dictionaries(NAMES.map(lambda name: name.replace("*", "x")), st.text()), st.lists(NAMES))
def test_allowed_and_without_split_an_environment(environ: dict[str, str], patterns: list[str]) -> None:
    kept, dropped = allowed(environ, patterns), without(environ, patterns)
    assert {**kept, **dropped} == environ
    assert not kept.keys() & dropped.keys()


def test_a_star_stands_for_any_part_of_a_name() -> None:
    environ = {"LC_ALL": "1", "LC_": "2", "LCX": "3", "lc_all": "4", "A_LC_ALL": "5"}
    assert allowed(environ, ["LC_*"]) == {"LC_ALL": "1", "LC_": "2"}


def test_the_base_list_lets_no_secret_through() -> None:
    assert allowed(SECRETS, BASE) == {}


@pytest.mark.parametrize("name", registry.names())
def test_a_headless_agent_gets_no_foreign_secret(tmp_path: Path, name: str) -> None:
    runtime = registry.get(name)
    mine = {"REHEARSAL_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    aws = {key: value for key, value in SECRETS.items() if key != "GITHUB_TOKEN"}
    environ = headless_environment(world(tmp_path, **aws, **mine, HOME="/home/me"), runtime, {})
    assert not aws.keys() & environ.keys()
    assert environ["HOME"] == "/home/me"
    assert environ["REMUDA_AGENT_BINARY"] == name
    others = {"rehearsal": "ANTHROPIC_API_KEY", "claude": "REHEARSAL_API_KEY", "codex": "ANTHROPIC_API_KEY"}
    assert others.get(name) not in environ


def test_the_configuration_can_let_more_through(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('environment.pass = ["AWS_*"]')
    environ = headless_environment(world(tmp_path, **SECRETS), registry.get("claude"), {})
    assert environ["AWS_SECRET_ACCESS_KEY"] == "s"
    assert "MY_PASSWORD" not in environ


def test_a_stand_in_endpoint_never_sees_a_real_key(tmp_path: Path) -> None:
    names = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
    )
    keys, place = dict.fromkeys(names, "real"), {ENDPOINT: "http://127.0.0.1:1"}
    for here, asked in ((world(tmp_path, **keys, **place), {}), (world(tmp_path, **keys), place)):
        environ = headless_environment(here, registry.get("claude"), asked)
        assert "real" not in environ.values()
        assert environ[ENDPOINT] == place[ENDPOINT]


def test_what_is_asked_for_by_hand_wins(tmp_path: Path) -> None:
    environ = headless_environment(world(tmp_path), registry.get("claude"), {"PATH": "/mine", "NEW": "1"})
    assert (environ["PATH"], environ["NEW"]) == ("/mine", "1")


@pytest.mark.parametrize("name", registry.names())
def test_no_agent_takes_over_the_markers_of_another_session(tmp_path: Path, name: str) -> None:
    markers = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "9"}
    here = world(tmp_path, **markers, KEEP="1")
    assert not markers.keys() & headless_environment(here, registry.get(name), {}).keys()
    interactive = interactive_environment(here, here.roster.get(name), registry.get(name))
    assert not markers.keys() & interactive.keys()
    assert interactive["KEEP"] == "1"


def test_a_person_keeps_all_of_their_environment(tmp_path: Path) -> None:
    here = world(tmp_path, **SECRETS)
    environ = interactive_environment(here, here.roster.get("rehearsal"), registry.get("rehearsal"))
    assert SECRETS.items() <= environ.items()
