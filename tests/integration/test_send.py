"""``remuda send``: to a session that is there, into a pane that is opened for it, or to a fresh run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.sessions import DONE, SLOW, Stable, shell
from tests.integration.sessions import stable as stable
from tests.postgres import Server
from tests.support import Ended, Terminal, eventually, finish, kill

from remuda.core.postgres import PostgresDatabase
from remuda.core.sqlite import SqliteDatabase
from remuda.operations.peer import delivery
from remuda.operations.world import open_world
from remuda.peers import inbox, registry
from remuda.peers.inbox import Draft

INSIDE = {"TMUX": "/somewhere,1,0"}
"""What tells that whoever asks is in tmux."""

LONG = shell("echo $$ > pid; exec sleep 300")
WAITS = shell("while [ ! -e go ]; do sleep 0.1; done")


def send(stable: Stable, text: str, *options: str, **env: str) -> Ended:
    return stable.site.remuda("send", "rehearsal", text, *options, **env)


def peers(stable: Stable, *options: str) -> list[dict[str, Any]]:
    found = stable.site.remuda("peer", "list", "--json", *options).json["peers"]
    assert isinstance(found, list)
    return [peer for peer in found if peer["runtime"] != "person"]


def letters(stable: Stable, peer: str) -> list[dict[str, Any]]:
    found = stable.site.remuda("peer", "inbox", peer, "--all", "--json").json["messages"]
    assert isinstance(found, list)
    return found


@pytest.fixture
def database(stable: Stable) -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase(stable.site.home / "state" / "dispatch.db")
    yield opened
    opened.close()


SITUATIONS: dict[str, dict[str, Any]] = {
    "nobody": {"ways": ("run", 4, "run", 6)},
    "inside tmux": {"env": INSIDE, "ways": ("pane", 4, "run", "pane")},
    "a connected session": {"mode": "connection", "env": INSIDE, "ways": ("peer", "peer", "run", "peer")},
    "a session in a pane": {"mode": "tmux", "ways": ("peer", "peer", "run", "peer")},
    "asks for isolation": {
        "mode": "connection",
        "env": INSIDE,
        "options": ("--isolated",),
        "ways": ("refused", 5, "refused", 5),
    },
    "chooses a model": {
        "mode": "connection",
        "env": INSIDE,
        "options": ("--model", "other"),
        "ways": ("pane", 5, "run", "pane"),
    },
    "danger": {
        "mode": "connection",
        "options": ("--sandbox", "danger-full-access"),
        "ways": (5, 5, 5, 5),
    },
    "switched off": {
        "mode": "connection",
        "env": {**INSIDE, "CLAWTOOL_PEER_ROUTING": "0"},
        "ways": ("run", "run", "run", "run"),
    },
}
MODES = ("peer-prefer", "peer-only", "spawn-only", "auto-tmux")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_mode_in_every_situation(stable: Stable, situation: str) -> None:
    given = SITUATIONS[situation]
    if "mode" in given:
        assert stable.start("there", mode=given["mode"]).code == 0
    for mode, expected in zip(MODES, given["ways"], strict=True):
        options = (*given.get("options", ()), "--mode", mode, "--json", "--no-auto-close")
        ended = send(stable, f"{mode} please", *options, **given.get("env", {}))
        told = f"{mode}: {ended.stdout} {ended.stderr}"
        if isinstance(expected, int):
            assert ended.code == expected, told
            assert ended.stdout == "", told
            assert f"{mode} please" not in stable.heard()
            continue
        if expected == "refused":
            assert ended.code in (2, 5), told
            assert f"{mode} please" not in stable.heard()
            continue
        assert ended.code == 0, told
        first = json.loads(ended.stdout.splitlines()[0])
        assert first.get("way", "run") == expected, told
        eventually(lambda mode=mode: stable.heard().count(f"{mode} please") == 1, SLOW)
        if expected == "pane":
            stable.session("stop", first["peer"]["session"])
        elif expected == "peer":
            assert first["peer"]["name"] == "there"
            assert first["receipt"]["state"] == "delivered"
            assert first["receipt"]["proof"]
            eventually(lambda: stable.state("there") == "ready")


def test_without_waiting_there_is_a_receipt_and_with_it_the_result(stable: Stable) -> None:
    stable.start("there")
    ended = send(stable, "hello")
    assert (ended.code, ended.stdout) == (0, "")
    assert "delivered" in ended.stderr
    eventually(lambda: stable.state("there") == "ready")
    waited = send(stable, "hello again", "--wait")
    assert waited.code == 0
    assert waited.stdout == "All done.\n"


def test_of_a_pane_one_sees_the_screen_at_the_end_of_its_turn(stable: Stable) -> None:
    stable.start("there", mode="tmux")
    waited = send(stable, "hello", "--wait")
    assert waited.code == 0, waited.stderr
    assert "All done." in waited.stdout


def test_a_reply_is_what_is_waited_for(stable: Stable) -> None:
    here = stable.site.remuda("peer", "register", "--runtime", "rehearsal", "--name", "me", "--json").json
    process = stable.site.start("send", "rehearsal", "how far?", "--wait", "--mode", "peer-only", "--json")
    eventually(lambda: letters(stable, "me"))
    (letter,) = letters(stable, "me")
    assert here["unread"] == 0
    assert stable.site.remuda("peer", "reply", letter["id"], "half way").code == 0
    ended = finish(process)
    assert ended.code == 0, ended.stderr
    sent, heard = map(json.loads, ended.stdout.splitlines())
    assert sent["receipt"]["state"] == "queued"
    assert (heard["reply"], heard["sender"], heard["message"]) == ("half way", "me", letter["id"])
    assert stable.site.remuda("peer", "inbox", "--json").json["messages"] == []


def test_nothing_heard_in_time_is_said_and_the_message_stays(stable: Stable) -> None:
    stable.site.remuda("peer", "register", "--runtime", "rehearsal", "--name", "me")
    ended = send(stable, "how far?", "--wait", "--timeout", "0.5", "--mode", "peer-only")
    assert ended.code == 3, ended.stderr
    assert [each["state"] for each in letters(stable, "me")] == ["queued"]


def test_a_key_makes_it_one_message(stable: Stable) -> None:
    stable.start("there")
    sent = [send(stable, "once", "--key", "k", "--json").json for _ in range(2)]
    assert sent[0]["message"] == sent[1]["message"]
    eventually(lambda: stable.state("there") == "ready")
    assert stable.heard() == ["once"]


def test_a_pane_closes_after_its_work_and_not_before(stable: Stable) -> None:
    stable.play(("long", (WAITS, DONE)))
    sent = send(stable, "a long one", "--json", "--permission", "bypass", **INSIDE).json
    assert sent["spawned"] is True
    time.sleep(4)
    assert [peer["state"] for peer in peers(stable)] == ["busy"]
    (stable.cwd / "go").touch()
    eventually(lambda: peers(stable) == [], SLOW)
    eventually(lambda: not stable.agents(), SLOW)
    row = stable.row(str(sent["peer"]["session"]))  # type: ignore[index]
    assert (row.state, row.failure) == ("exited", None)


def test_the_grace_period_ends_when_something_newer_comes(stable: Stable, database: SqliteDatabase) -> None:
    stable.site.remuda("config", "set", "peer.auto_close_grace_seconds", "600")
    stable.play(("second", (WAITS, DONE)))
    first = send(stable, "first", "--json", "--permission", "bypass", **INSIDE).json
    ident = str(first["peer"]["id"])  # type: ignore[index]

    def closing() -> float | None:
        peer = registry.get(database, ident)
        return peer.close_at if peer else None

    eventually(lambda: closing() is not None, SLOW)
    before = closing()
    second = send(stable, "second", "--json", "--mode", "peer-only").json
    assert second["peer"]["id"] == ident  # type: ignore[index]
    assert closing() is None
    (stable.cwd / "go").touch()
    eventually(lambda: closing() is not None, SLOW)
    after = closing()
    assert before is not None
    assert after is not None
    assert after > before
    with database.transaction() as t:
        t.run("UPDATE peers SET close_at = ? WHERE id = ?", t.now(), ident)
    eventually(lambda: peers(stable) == [], SLOW)
    assert stable.heard() == ["first", "second", "second"], "asked once, and told once what its command said"


def test_a_pane_that_somebody_looks_at_stays(stable: Stable) -> None:
    stable.site.remuda("config", "set", "peer.auto_close_grace_seconds", "600")
    sent = send(stable, "first", "--json", **INSIDE).json
    name = str(sent["peer"]["session"])  # type: ignore[index]
    argv = [sys.executable, "-m", "remuda", "session", "attach", name]
    with Terminal(argv, stable.cwd, stable.site.env) as terminal:
        terminal.expect("All done")
        eventually(lambda: [peer["auto_spawned"] for peer in peers(stable)] == [False], SLOW)
    eventually(lambda: not attendants(stable), SLOW)
    assert len(peers(stable)) == 1


def test_a_pane_that_was_only_glanced_at_is_the_persons_from_then_on(stable: Stable) -> None:
    stable.play(("long", (LONG, DONE)))
    sent = send(stable, "a long one", "--json", "--permission", "bypass", **INSIDE).json
    for pid in [each for each in stable.agents() if b"attending" in _argv(each)]:
        os.kill(pid, signal.SIGKILL)
    argv = [sys.executable, "-m", "remuda", "session", "attach", str(sent["peer"]["session"])]  # type: ignore[index]
    with Terminal(argv, stable.cwd, stable.site.env) as terminal:
        terminal.expect("a long one")
    assert [peer["auto_spawned"] for peer in peers(stable)] == [False]


def test_a_pane_that_is_taken_up_again_does_not_close_once_more(stable: Stable) -> None:
    sent = send(stable, "first", "--json", **INSIDE).json
    session = str(sent["peer"]["session"])  # type: ignore[index]
    eventually(lambda: stable.row(session).state == "exited", SLOW)
    assert stable.session("resume", session).code == 0
    assert [(peer["state"], peer["auto_spawned"]) for peer in peers(stable)] == [("online", False)]
    time.sleep(3)
    assert stable.state(session) == "ready"


def test_a_pane_is_left_open_where_that_is_asked_for(stable: Stable) -> None:
    send(stable, "first", "--no-auto-close", **INSIDE)
    time.sleep(4)
    eventually(lambda: [peer["state"] for peer in peers(stable)] == ["online"], SLOW)
    (peer,) = peers(stable)
    assert (peer["state"], peer["auto_spawned"]) == ("online", False)


def test_whoever_looks_after_a_pane_is_killed_and_the_next_look_finds_another(stable: Stable) -> None:
    stable.site.remuda("config", "set", "peer.auto_close_grace_seconds", "4")
    stable.play(("first", (WAITS, DONE)))
    send(stable, "first", "--permission", "bypass", **INSIDE)
    eventually(lambda: len(attendants(stable)) == 1)
    kill(*attendants(stable))
    (stable.cwd / "go").touch()
    time.sleep(6)
    assert len(peers(stable)) == 1
    eventually(lambda: peers(stable) == [], SLOW)


def attendants(stable: Stable) -> list[int]:
    """The processes that look after panes."""
    return [pid for pid in stable.agents() if b"attending" in _argv(pid)]


def _argv(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_text_that_a_pane_never_takes_is_in_nobodys_way(stable: Stable) -> None:
    stable.start("there", mode="tmux")
    bad = stable.site.remuda("peer", "send", "there", "bad \x1b[31m")
    assert (bad.code, "failed" in bad.stdout) == (1, True), bad.stdout + bad.stderr
    assert stable.site.remuda("peer", "send", "there", "good").code == 0
    eventually(lambda: any("good" in each for each in stable.heard()), SLOW)


def test_a_busy_session_keeps_nobody_waiting(stable: Stable) -> None:
    stable.play(("at length", (WAITS, DONE)))
    stable.start("there", "--permission", "bypass")
    stable.session("send", "there", "at length")
    eventually(lambda: stable.state("there") == "working")
    sent = stable.site.remuda("peer", "send", "there", "and then this", "--ready-within", "0")
    assert (sent.code, "queued" in sent.stdout) == (0, True), sent.stdout + sent.stderr
    (stable.cwd / "go").touch()
    eventually(lambda: [each["state"] for each in letters(stable, "there")] == ["delivered"], SLOW)
    eventually(lambda: stable.state("there") == "ready")
    assert stable.heard().count("and then this") == 1


def test_what_became_of_a_message_is_told_also_behind_one_that_has_to_wait(
    stable: Stable, database: SqliteDatabase
) -> None:
    stable.play(("at length", (LONG, DONE)))
    stable.start("there", "--permission", "bypass")
    stable.session("send", "there", "at length")
    eventually(lambda: stable.state("there") == "working")
    peer = registry.by_session(database, stable.row("there").id)
    assert peer is not None
    _, own = (inbox.enqueue(database, Draft(peer=peer.id, sender="x", text=text)) for text in ("one", "two"))

    async def outcomes() -> list[object]:
        world = open_world(stable.site.env, stable.cwd)
        return [each async for each in delivery.deliver(world, database, peer, own.id, wait=1)]

    assert [getattr(each, "state", None) for each in asyncio.run(outcomes())] == ["queued"]


def test_what_is_taken_and_could_not_be_shown_is_not_lost(stable: Stable) -> None:
    stable.site.remuda("peer", "register", "--runtime", "rehearsal", "--name", "me")
    stable.site.remuda("peer", "send", "me", "hello")
    with Path("/dev/full").open("w") as full:
        argv = [sys.executable, "-m", "remuda", "peer", "inbox", "me", "--take"]
        assert subprocess.run(argv, cwd=stable.cwd, env=stable.site.env, stdout=full).returncode == 1
    assert [each["state"] for each in letters(stable, "me")] == ["leased"]


@pytest.mark.parametrize("how", ["stop", "term"])
def test_who_waits_in_vain_is_told_or_can_be_ended(stable: Stable, how: str) -> None:
    stable.play(("at length", (LONG,)))
    stable.start("there")
    waiting = stable.site.start("send", "rehearsal", "at length", "--wait")
    eventually(lambda: stable.state("there") == "working", SLOW)
    if how == "stop":
        stable.session("stop", "there")
    else:
        waiting.send_signal(signal.SIGTERM)
    ended = finish(waiting, 60)
    assert ended.code == 130 if how == "term" else ended.code != 0


def test_a_key_is_not_used_up_by_a_failure(stable: Stable) -> None:
    stable.start("there", mode="tmux")
    asked = ("peer", "send", "there", "--key", "k")
    assert stable.site.remuda(*asked, "bad \x1b[31m").code == 1
    assert stable.site.remuda(*asked, "good").code == 0
    eventually(lambda: sum("good" in each for each in stable.heard()) == 1, SLOW)


def test_two_at_once_open_one_pane(stable: Stable) -> None:
    both = [stable.site.start("send", "rehearsal", f"number {n}", "--json", **INSIDE) for n in (1, 2)]
    ended = [finish(each, 60) for each in both]
    assert [each.code for each in ended] == [0, 0], [each.stderr for each in ended]
    assert len({each.json["peer"]["id"] for each in ended}) == 1  # type: ignore[index]
    eventually(lambda: sorted(stable.heard()) == ["number 1", "number 2"], SLOW)


def test_a_sender_that_is_killed_before_delivery_loses_nothing_and_doubles_nothing(stable: Stable) -> None:
    stable.play(("long", (LONG, DONE)))
    stable.start("there", "--permission", "bypass", mode="tmux")
    stable.session("send", "there", "a long one")
    eventually((stable.cwd / "pid").exists, SLOW)
    process = stable.site.start("peer", "send", "there", "and then this", "--ready-within", "60")
    eventually(lambda: any(each["state"] != "delivered" for each in letters(stable, "there")), SLOW)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    stable.session("interrupt", "there")
    peers(stable)
    eventually(lambda: "and then this" in stable.heard(), SLOW)
    eventually(lambda: [each["state"] for each in letters(stable, "there")] == ["delivered"], SLOW)
    eventually(lambda: stable.state("there") == "ready")
    assert stable.heard().count("and then this") == 1


@pytest.mark.parametrize("mode", ["connection", "tmux"])
def test_what_was_begun_and_not_acknowledged_is_not_sent_again(
    stable: Stable, database: SqliteDatabase, mode: str
) -> None:
    stable.start("there", mode=mode)
    send(stable, "just once", "--mode", "peer-only")
    eventually(lambda: stable.state("there") == "ready")
    with database.transaction() as t:
        t.run("UPDATE inbox SET state = 'leased', leased_until = 0")
    peers(stable)
    eventually(lambda: [each["state"] for each in letters(stable, "there")] == ["delivered"], SLOW)
    assert stable.heard() == ["just once"]


def test_what_a_dead_sender_left_in_the_inbox_is_delivered_by_whoever_looks(
    stable: Stable, database: SqliteDatabase
) -> None:
    stable.start("there")
    (peer,) = peers(stable)
    inbox.enqueue(database, Draft(peer=peer["id"], sender="person", text="left behind"))
    peers(stable)
    eventually(lambda: ["─ left behind" in each for each in stable.heard()] == [True], SLOW)
    eventually(lambda: [each["state"] for each in letters(stable, "there")] == ["delivered"], SLOW)


def test_a_session_does_not_send_to_itself_and_is_known_as_the_sender(stable: Stable) -> None:
    stable.play(
        ("alone", (shell("remuda send rehearsal hello --mode peer-only > out 2>&1; echo $? > code"), DONE)),
        ("tell", (shell("remuda peer send other 'from one' > out 2>&1; echo $? > code"), DONE)),
    )
    stable.start("one", "--permission", "bypass")
    send(stable, "alone", "--wait")
    assert (stable.cwd / "code").read_text().strip() == "5", (stable.cwd / "out").read_text()
    assert "would loop" in (stable.cwd / "out").read_text()
    stable.start("other", "--permission", "bypass")
    eventually(lambda: stable.state("one") == "ready")
    assert stable.site.remuda("peer", "send", "one", "tell").code == 0
    eventually(lambda: len(letters(stable, "other")) == 1, SLOW)
    (letter,) = letters(stable, "other")
    assert letter["sender"] == "one"
    eventually(lambda: any("─ from one" in each for each in stable.heard()), SLOW)


def test_who_answers_for_another_one_does_so_under_its_own_name(stable: Stable) -> None:
    stable.site.remuda("peer", "register", "--runtime", "claude", "--name", "me")
    asked = stable.site.remuda("peer", "send", "me", "how far?", "--json").json["message"]
    stable.play(("tell", (shell(f"remuda peer reply {asked} 'half way' > out 2>&1"), DONE)))
    stable.start("one", "--permission", "bypass")
    assert send(stable, "tell", "--wait").code == 0
    found = stable.site.remuda("peer", "inbox", "--json").json["messages"]
    assert [(each["sender"], each["text"]) for each in found] == [("one", "half way")]  # type: ignore[union-attr]


def test_a_broadcast_tells_of_each_what_became_of_it(stable: Stable) -> None:
    for name in ("one", "two"):
        stable.start(name)
    stable.site.remuda("peer", "register", "--runtime", "claude", "--name", "far")
    sent = stable.site.remuda("peer", "broadcast", "main is frozen", "--json").json["sent"]
    assert isinstance(sent, list)
    assert {each["peer"]: each["receipt"]["state"] for each in sent} == {
        "far": "queued",
        "one": "delivered",
        "two": "delivered",
    }
    some = stable.site.remuda("peer", "broadcast", "again", "--runtime", "claude", "--json").json["sent"]
    assert [each["peer"] for each in some] == ["far"]  # type: ignore[union-attr]


def test_a_peer_that_is_gone_gets_no_message(stable: Stable) -> None:
    stable.site.remuda("peer", "register", "--runtime", "rehearsal", "--name", "me")
    assert stable.site.remuda("peer", "heartbeat", "me", "--state", "busy").code == 0
    assert send(stable, "hello", "--mode", "peer-only").code == 4
    assert stable.site.remuda("peer", "deregister", "me").code == 0
    ended = stable.site.remuda("peer", "send", "me", "hello")
    assert ended.code == 1
    assert "not there any more" in ended.stderr
    assert stable.site.remuda("peer", "show", "nobody").code == 4


def test_prompts_are_on_no_command_line(stable: Stable) -> None:
    stable.play(("secret", (LONG, DONE)))
    process = subprocess.Popen(
        [sys.executable, "-m", "remuda", "send", "rehearsal", "-", "--permission", "bypass"],
        cwd=stable.cwd,
        env={**stable.site.env, **INSIDE},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(b"a secret word")
    process.stdin.close()
    eventually((stable.cwd / "pid").exists, SLOW)
    process.wait(30)
    assert not [pid for pid in stable.agents() if b"secret word" in _argv(pid)]


@pytest.mark.parametrize("mode", ["connection", "tmux"])
def test_where_machines_share_a_database_a_message_from_another_one_arrives_by_itself(
    stable: Stable, postgres: Server, mode: str
) -> None:
    with postgres.fresh() as url:
        stable.site.env["REMUDA_DATABASE_URL"] = url
        stable.start("there", mode=mode)
        far = PostgresDatabase(url)
        (peer,) = registry.listed(far)
        inbox.enqueue(far, Draft(peer=peer.id, sender="somebody", text="from afar"))
        eventually(lambda: ["─ from afar" in each for each in stable.heard()] == [True], SLOW)
        eventually(lambda: inbox.peek(far, peer.id) == [], SLOW)
        assert stable.session("stop", "there").code == 0
        eventually(lambda: registry.listed(far) == [], SLOW)
        far.close()
        eventually(lambda: not stable.agents(), SLOW)
