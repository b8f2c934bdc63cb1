"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.core.paths import folders


def test_xdg_defaults_lie_below_home() -> None:
    found = folders({"HOME": "/home/me"})
    assert found.config_file == Path("/home/me/.config/remuda/config.toml")
    assert found.sticky_file == Path("/home/me/.config/remuda/active_agent")
    assert found.database == Path("/home/me/.local/state/remuda/remuda.db")
    assert found.evidence_file == Path("/home/me/.local/state/remuda/evidence.jsonl")
    assert found.data == Path("/home/me/.local/share/remuda")
    assert found.cache == Path("/home/me/.cache/remuda")
    assert found.runtime == Path("/home/me/.local/state/remuda/run/remuda")


@pytest.mark.parametrize(
    ("variable", "part"),
    [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "runtime"),
    ],
)
def test_each_xdg_variable_moves_its_folder(variable: str, part: str) -> None:
    assert getattr(folders({"HOME": "/home/me", variable: "/else"}), part) == Path("/else/remuda")
    default = getattr(folders({"HOME": "/home/me"}), part)
    assert getattr(folders({"HOME": "/home/me", variable: "relative/is/ignored"}), part) == default
    assert getattr(folders({"HOME": "/home/me", variable: ""}), part) == default


def test_one_variable_moves_everything() -> None:
    found = folders({"HOME": "/home/me", "REMUDA_HOME": "/one", "XDG_CONFIG_HOME": "/else"})
    assert {found.config, found.state, found.data, found.cache, found.runtime} == {
        Path("/one") / part for part in ("config", "state", "data", "cache", "runtime")
    }


def test_a_relative_home_means_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folders({"REMUDA_HOME": "mine"}).config == tmp_path / "mine" / "config"


def test_nothing_is_created(tmp_path: Path) -> None:
    folders({"REMUDA_HOME": str(tmp_path / "new")})
    assert not (tmp_path / "new").exists()
