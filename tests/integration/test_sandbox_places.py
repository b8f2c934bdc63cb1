"""The places of an agent CLI: made where they are missing, held where they must not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from remuda.core.dispatchconfig import SandboxConfig, SandboxPathConfig
from remuda.core.paths import folders
from remuda.runtimes.cell import Cell, Place
from remuda.sandbox.mounts import Kind, Mount, layered
from remuda.sandbox.places import own_places
from remuda.sandbox.profile import UnresolvableError, resolve
from remuda.sandbox.scene import Scene, mounts_of

SETTINGS = Place(".own", None, "settings", kind="file", blank="{}\n")
WRITES_ALL = Cell(state=(Place(".own"),), reads=(SETTINGS,))
WRITES_LITTLE = Cell(state=(Place(".own", None, "history"),), reads=(Place(".own"), SETTINGS))


def places(cell: Cell, home: Path, **variables: str) -> list[Mount]:
    return [*own_places(cell, {"HOME": str(home), **variables}, home)]


def test_what_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    mounts = places(WRITES_ALL, tmp_path)
    own, settings = tmp_path / ".own", tmp_path / ".own" / "settings"
    assert [(mount.path, mount.kind) for mount in mounts] == [(str(own), "rw"), (str(settings), "ro")]
    assert settings.read_text() == "{}\n"
    assert (own.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".own").mkdir()
    (tmp_path / ".own" / "settings").write_text("mine")
    places(WRITES_ALL, tmp_path)
    assert (tmp_path / ".own" / "settings").read_text() == "mine"


def test_a_file_without_a_beginning_is_not_made(tmp_path: Path) -> None:
    cell = Cell(state=(Place(".own"),), reads=(Place(".own", None, "login", kind="file"),))
    assert [mount.path for mount in places(cell, tmp_path)] == [str(tmp_path / ".own")]


def test_settings_that_are_a_link_and_could_be_replaced_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".own").mkdir()
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".own" / "settings").symlink_to("../mine")
    with pytest.raises(UnresolvableError, match="is a link"):
        places(WRITES_ALL, tmp_path)


def test_a_link_that_leads_nowhere_yet_could_be_replaced_as_well(tmp_path: Path) -> None:
    (tmp_path / ".own").mkdir()
    (tmp_path / ".own" / "settings").symlink_to("../elsewhere")
    with pytest.raises(UnresolvableError, match="is a link"):
        places(WRITES_ALL, tmp_path)


def test_a_link_that_nobody_can_replace_leads_somewhere(tmp_path: Path) -> None:
    (tmp_path / ".own").mkdir()
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".own" / "settings").symlink_to("../mine")
    assert Mount(str(tmp_path / "mine"), "ro") in places(WRITES_LITTLE, tmp_path)


def test_a_folder_that_is_a_link_is_there_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / ".own").symlink_to("real")
    assert Mount(str(tmp_path / ".own"), "rw", str(tmp_path / "real")) in places(WRITES_ALL, tmp_path)


def test_what_is_private_shows_nothing_of_what_is_outside(tmp_path: Path) -> None:
    cell = Cell(state=(Place(".own"),), private=(Place(".own", None, "sockets"),))
    sockets = tmp_path / ".own" / "sockets"
    assert Mount(str(sockets), "private") in places(cell, tmp_path)
    assert sockets.is_dir()


def test_a_star_stands_for_all_that_there_are(tmp_path: Path) -> None:
    for name in ("a/1", "b/2"):
        (tmp_path / ".own" / name).mkdir(parents=True)
    cell = Cell(private=(Place(".own"),), reads=(Place(".own", None, "*/*"),))
    assert [mount.path.removeprefix(str(tmp_path)) for mount in places(cell, tmp_path)] == [
        *("/.own", "/.own/a/1", "/.own/b/2"),
    ]


def test_a_place_that_would_show_the_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnresolvableError, match="home folder"):
        places(Cell(state=(Place(".own", "BASE"),)), tmp_path, BASE=str(tmp_path))


def seen(
    home: Path,
    cwd: Path,
    rules: str = "",
    agents_home: Path | None = None,
    kept: Path | None = None,
) -> dict[str, Kind]:
    """What an agent finds where, whose home may be one of its own."""
    own = {"HOME": str(agents_home or home)}
    shows = {"mine": SandboxConfig(paths=(SandboxPathConfig(path=rules, mode="ro"),))} if rules else {}
    scene = Scene(
        cwd=cwd,
        home=home,
        environ=own,
        programs=(),
        cell=Cell(),
        strangers=(Place(".stranger"),),
        folders=folders({"HOME": str(home)}),
        lends=(),
        gives=(kept,) if kept else (),
        holds=(kept / "record", kept / ".own" / "settings") if kept else (),
    )
    return {
        mount.path: mount.kind
        for mount in layered(mounts_of(resolve("mine" if rules else "workspace", shows), scene))
    }


def test_a_home_of_its_own_opens_nobody_elses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".agent").mkdir(parents=True)
    with pytest.raises(UnresolvableError, match="holds your whole home"):
        seen(home, home, agents_home=home / ".agent")


def test_what_we_write_ourselves_stays_as_it_is_where_an_agent_writes(tmp_path: Path) -> None:
    """A link in its place would lead us, the next time, to whatever the agent likes."""
    work, kept = tmp_path / "work", tmp_path / "home" / ".local/share/remuda/sessions/1"
    for folder in (work, kept / ".own"):
        folder.mkdir(parents=True)
    (kept / ".own" / "settings").write_text("ours")
    found = seen(tmp_path / "home", work, kept=kept)
    assert (found[str(kept)], found[str(kept / "record")]) == ("rw", "ro")
    assert (found[str(kept / ".own")], found[str(kept / ".own/settings")]) == ("rw", "ro")
    assert (kept / "record").read_bytes() == b""
    (kept / "record").unlink()
    (kept / "record").symlink_to(work / "elsewhere")
    with pytest.raises(UnresolvableError, match="is a link"):
        seen(tmp_path / "home", work, kept=kept)


def test_what_is_hidden_is_so_by_every_name(tmp_path: Path) -> None:
    """A home that is reached by a link, and a rule that shows what the link leads to."""
    real = tmp_path / "data" / "u"
    for name in (".ssh", ".stranger", ".config/remuda"):
        (real / name).mkdir(parents=True)
    (tmp_path / "home").symlink_to("data")
    (tmp_path / "work").mkdir()
    found = seen(tmp_path / "home" / "u", tmp_path / "work", str(tmp_path / "data"))
    assert found[str(tmp_path / "data")] == "ro"
    assert found[str(real)] == "empty"
    shown = seen(tmp_path / "home" / "u", tmp_path / "work", str(real))
    for name in (".ssh", ".stranger", ".config/remuda"):
        assert shown[str(real / name)] == "hidden", name
