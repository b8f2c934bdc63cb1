"""Sessions behind walls: over a connection and in a pane."""

from __future__ import annotations

import pytest
from tests.integration.sessions import Stable, shell, stable  # noqa: F401 - fixtures
from tests.support import eventually

from remuda.rehearsal.scenario import Step


@pytest.mark.parametrize("mode", ["connection", "tmux"])
@pytest.mark.parametrize("profile", ["workspace", "offline"])
def test_a_session_is_walled_in(stable: Stable, mode: str, profile: str) -> None:  # noqa: F811
    (stable.site.folder / "notes.txt").write_text("treasure")
    command = "echo x > in.txt; (echo x > ../out.txt) 2>/dev/null || echo refused > refused.txt"
    stable.play(("walls", (shell(command), Step(text="Tried."))))
    started = stable.start("walled", "--sandbox", profile, "--permission", "bypass", mode=mode)
    assert started.code == 0, started.stderr
    sent = stable.session("send", "walled", "try the walls")
    assert sent.code == 0, sent.stderr
    eventually((stable.cwd / "refused.txt").exists)
    assert (stable.cwd / "in.txt").exists()
    assert not (stable.site.folder / "out.txt").exists()
    assert stable.session("stop", "walled").code == 0


def test_what_we_put_on_record_is_not_there_inside(stable: Stable) -> None:  # noqa: F811
    """The keeper writes into a folder of the session's own, outside: a pipe in the place of its record would
    have it wait for ever, and a link lead it elsewhere."""
    kept = stable.site.home / "data" / "sessions"
    pipes = f"for each in {kept}/*; do rm $each/events.jsonl; mkfifo $each/events.jsonl; done"
    command = f"export PATH=$PATH:/usr/bin:/bin; {pipes}; echo tried > in.txt"
    stable.play(("walls", (shell(command), Step(text="Tried."))))
    assert stable.start("walled", "--sandbox", "workspace", "--permission", "bypass").code == 0
    sent = stable.session("send", "walled", "try the walls")
    assert sent.code == 0, sent.stderr
    (record,) = kept.iterdir()
    events = record / "events.jsonl"
    eventually(lambda: events.is_file() and "Tried." in events.read_text())  # who reads a pipe lets it go on
    assert (stable.cwd / "in.txt").exists()
    assert stable.session("stop", "walled").code == 0


def test_a_profile_that_is_none_is_refused_before_anything_starts(stable: Stable) -> None:  # noqa: F811
    ended = stable.start("walled", "--sandbox", "nope")
    assert ended.code == 5
    assert stable.start("walled", "--sandbox", "danger-full-access").code == 5
    assert stable.session("show", "walled").code == 4
