"""What tmux tells about panes and versions, and what its words mean."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import NotFoundError, RefusedError, RemudaError
from remuda.sessions.tmux import client, errors, panes
from remuda.sessions.tmux.launcher import packed
from remuda.sessions.tmux.panes import Ending, Pane, Size


def test_a_line_of_the_list_is_a_pane() -> None:
    (view,) = panes.views("b1|%3|42|0|||160|48|2|7|1|99|a | title\n")
    assert (view.pane, view.size, view.cursor) == (Pane("b1", "%3", 42), Size(160, 48), (2, 7))
    assert (view.alternate, view.title, view.ending) == (True, "a | title", None)


@pytest.mark.parametrize(
    ("told", "ending"),
    [
        ("3|", Ending(3)),
        ("|9", Ending(None, 9)),
        ("|KILL", Ending(None, 9)),
        ("|SIGTERM", Ending(None, 15)),
        ("|", Ending()),
        ("|odd", Ending()),
    ],
)
def test_how_a_program_has_ended(told: str, ending: Ending) -> None:
    (view,) = panes.views(f"b1|%3|42|1|{told}|160|48|2|7|0|99|")
    assert view.ending == ending


_FIELD = st.one_of(st.sampled_from(["0", "1", "²", "٣", "9" * 5000, "", "-1", "KILL"]), st.text(max_size=4))


@given(st.lists(_FIELD, min_size=10, max_size=15))
def test_no_text_makes_the_list_fail(fields: list[str]) -> None:
    panes.views("|".join(fields))


def test_a_program_whose_end_tmux_has_missed_is_noticed() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        (row,) = panes.rows(f"b1|%3|{child.pid}|0|||160|48|2|7|0|99|")
        assert row.missed
        (told,) = panes.rows(f"b1|%3|{child.pid}|1|0||160|48|2|7|0|99|")
        assert not told.missed
    assert not row.missed


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("tmux 3.3a", (3, 3)),
        ("3.2", (3, 2)),
        ("tmux next-3.7", (3, 7)),
        ("tmux 2.9a", (2, 9)),
        ("tmux 10.0", (10, 0)),
    ],
)
def test_versions(said: str, version: tuple[int, int]) -> None:
    assert client.version(said) == version


def test_a_version_without_a_number_of_its_own_passes() -> None:
    assert client.version("tmux openbsd-7.4") is None
    assert client.version("tmux master") is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("no server running on /x/tmux.sock", errors.ServerGoneError),
        ("error connecting to /x (No such file or directory)", errors.ServerGoneError),
        ("server exited unexpectedly", errors.ServerGoneError),
        ("lost server", errors.ServerGoneError),
        ("can't find session: b1", errors.NoSuchSessionError),
        ("can't find pane: %3", errors.NoSuchPaneError),
        ("duplicate session: b1", errors.NameTakenError),
        ("something else", errors.TmuxError),
        ("", errors.TmuxError),
    ],
)
def test_tmux_words_become_errors(said: str, kind: type[RemudaError]) -> None:
    assert type(errors.told(said, "b1", "%3")) is kind


def test_errors_say_the_next_step() -> None:
    for error in (errors.missing(), errors.too_old("2.9"), errors.server_gone(), errors.no_session("x")):
        assert error.hint
    assert isinstance(errors.no_pane("x", "%1"), NotFoundError)
    assert "2.9" in errors.too_old("2.9").message


def test_what_a_launcher_is_given_keeps_every_character() -> None:
    assert packed(b"/x", [b"a b", b""], {b"N": b"1=\n"}) == b"/x\x002\0a b\0\0N=1=\n"


def test_a_short_socket_is_named_by_its_path(tmp_path: Path) -> None:
    assert client.address(Path("/run/x/tmux.sock")) == Path("/run/x/tmux.sock")


def test_the_way_to_a_long_socket_is_refused_when_it_is_not_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.tempfile, "gettempdir", lambda: str(short))
    short = Path(os.path.realpath(tmp_path)) / "t"
    monkeypatch.setattr(client, "LONGEST_BASE", 1000)
    short.mkdir()
    socket = tmp_path / ("x" * 120) / "tmux.sock"
    socket.parent.mkdir()
    found = client.address(socket)
    assert found.parent.readlink() == socket.parent
    assert found.parent.parent.stat().st_mode & 0o777 == 0o700
    found.parent.unlink()
    found.parent.symlink_to("/")
    with pytest.raises(RefusedError):
        client.address(socket)
    found.parent.parent.chmod(0o755)
    with pytest.raises(RefusedError):
        client.address(socket)
