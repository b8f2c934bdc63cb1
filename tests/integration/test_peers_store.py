"""Peers and their inboxes in the shared database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.postgres import SharedStore

from remuda.core.errors import NotFoundError, UsageError
from remuda.core.identity import identity
from remuda.core.sql import Database
from remuda.core.sqlite import SqliteDatabase
from remuda.peers import inbox, registry
from remuda.peers.inbox import Draft
from remuda.peers.model import LARGEST, Message, Sighting, this_host

HERE = this_host()


def sighting(**fields: str | None) -> Sighting:
    return Sighting(**{"agent": "claude", "runtime": "claude", "host": HERE, "cwd": "/w", **fields})  # type: ignore[arg-type]


def draft(peer: str, text: str = "hello", **fields: object) -> Draft:
    return Draft(peer=peer, sender="person", text=text, **fields)  # type: ignore[arg-type]


def test_a_hook_completes_the_row_that_the_spawner_made_and_its_inbox_stays(
    shared_database: Database,
) -> None:
    made = registry.register(
        shared_database, sighting(session="S1", source="spawn", process=identity(os.getpid()))
    )
    sent = inbox.enqueue(shared_database, draft(made.id))
    told = registry.register(shared_database, sighting(session="S1", runtime_session="R1", source="hook"))
    assert told.id == made.id
    assert told.runtime_session == "R1"
    assert told.source == "spawn"
    assert [each.id for each in inbox.peek(shared_database, told.id)] == [sent.id]
    assert registry.register(shared_database, sighting(runtime_session="R2", source="hook")).id != made.id
    assert len(registry.listed(shared_database)) == 2


def test_registering_at_once_makes_one_row(shared_store: SharedStore) -> None:
    def one(_: int) -> str:
        database = shared_store.open()
        try:
            return registry.register(database, sighting(runtime_session="R1")).id
        finally:
            database.close()

    shared_store.open().close()
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(one, range(16)))) == 1


def test_names_are_given_once_and_found_by_any_handle(shared_database: Database) -> None:
    one = registry.register(shared_database, sighting(name="fix", session="S1"))
    two = registry.register(shared_database, sighting(name="fix", session="S2"))
    assert (one.name, two.name) == ("fix", "fix-2")
    for word in ("fix-2", two.id, two.id[:20].lower(), "S2"):
        assert registry.find(shared_database, word).id == two.id
    with pytest.raises(NotFoundError):
        registry.find(shared_database, "nobody")
    with pytest.raises(UsageError):
        registry.find(shared_database, one.id[:6])


def test_a_peer_whose_process_has_ended_is_gone_when_somebody_looks(shared_database: Database) -> None:
    registry.register(shared_database, sighting(session="S1", process="no-boot/99999999/1"))
    assert registry.listed(shared_database) == []
    assert [peer.state for peer in registry.listed(shared_database, all_=True)] == ["offline"]


def test_looking_takes_nothing_and_what_is_not_acknowledged_comes_back(shared_database: Database) -> None:
    peer = registry.register(shared_database, sighting(session="S1")).id
    sent = inbox.enqueue(shared_database, draft(peer, "a"))
    for _ in range(2):
        assert [each.text for each in inbox.peek(shared_database, peer)] == ["a"]
    (taken,) = inbox.lease(shared_database, peer, seconds=30)
    assert (taken.id, taken.deliveries) == (sent.id, 1)
    assert inbox.lease(shared_database, peer) == []
    with shared_database.transaction() as t:
        t.run("UPDATE inbox SET leased_until = ?", t.now() - 1)
    (again,) = inbox.lease(shared_database, peer, seconds=30)
    assert (again.id, again.deliveries) == (sent.id, 2)
    assert inbox.ack(shared_database, [sent.id], "hook", "answered") == 1
    assert inbox.ack(shared_database, [sent.id], "tmux", "late") == 0
    found = inbox.get(shared_database, sent.id)
    assert found is not None
    assert (found.state, found.channel, found.proof) == ("delivered", "hook", "answered")
    assert inbox.peek(shared_database, peer) == []
    assert [each.id for each in inbox.peek(shared_database, peer, all_=True)] == [sent.id]


def test_a_key_makes_it_one_message_and_a_full_inbox_is_an_error_of_the_sender(
    shared_database: Database,
) -> None:
    peer = registry.register(shared_database, sighting(session="S1")).id
    first = inbox.enqueue(shared_database, draft(peer, key="k"))
    assert inbox.enqueue(shared_database, draft(peer, key="k")).id == first.id
    for number in range(LARGEST - 1):
        inbox.enqueue(shared_database, draft(peer, str(number)))
    with pytest.raises(inbox.InboxFullError):
        inbox.enqueue(shared_database, draft(peer))
    assert inbox.enqueue(shared_database, draft(peer, key="k")).id == first.id
    inbox.ack(shared_database, [first.id], "hook", "")
    inbox.enqueue(shared_database, draft(peer))


def test_many_who_deliver_at_once_never_take_the_same_message(shared_store: SharedStore) -> None:
    database = shared_store.open()
    peer = registry.register(database, sighting(session="S1")).id
    sent = {inbox.enqueue(database, draft(peer, str(number))).id for number in range(40)}

    def taken(_: int) -> list[str]:
        own = shared_store.open()
        try:
            return [each.id for _ in range(8) for each in inbox.lease(own, peer, count=2)]
        finally:
            own.close()

    with ThreadPoolExecutor(4) as pool:
        got = [each for some in pool.map(taken, range(4)) for each in some]
    assert len(got) == len(set(got))
    assert {*got, *(each.id for each in inbox.lease(database, peer))} == sent
    database.close()


def test_a_pane_closes_when_its_time_has_come_unless_something_new_comes(shared_database: Database) -> None:
    made = registry.register(
        shared_database,
        Sighting(agent="x", runtime="x", host=HERE, cwd="/", session="S", source="spawn", auto_spawned=True),
    )
    sent = inbox.enqueue(shared_database, draft(made.id))
    assert registry.close_later(shared_database, made.id, 0) is None
    inbox.ack(shared_database, [sent.id], "tmux", "")
    assert registry.close_later(shared_database, made.id, 100) is not None
    assert not registry.close_now(shared_database, made.id)
    newer = inbox.enqueue(shared_database, draft(made.id))
    assert not registry.close_now(shared_database, made.id)
    inbox.ack(shared_database, [newer.id], "tmux", "")
    assert not registry.close_now(shared_database, made.id)
    assert registry.close_later(shared_database, made.id, 0) is not None
    assert registry.close_now(shared_database, made.id)
    with pytest.raises(inbox.PeerGoneError):
        inbox.enqueue(shared_database, draft(made.id))
    assert inbox.enqueue(shared_database, draft(made.id, kind="reply", live=False)).state == "queued"


def test_a_pane_that_a_person_took_over_never_closes(shared_database: Database) -> None:
    made = registry.register(
        shared_database,
        Sighting(agent="x", runtime="x", host=HERE, cwd="/", session="S", source="spawn", auto_spawned=True),
    )
    assert registry.close_later(shared_database, made.id, 0) is not None
    registry.adopt(shared_database, made.id)
    assert not registry.close_now(shared_database, made.id)
    assert registry.close_later(shared_database, made.id, 0) is None


def test_replies_find_their_question(shared_database: Database) -> None:
    asked = registry.register(shared_database, sighting(session="S1")).id
    asker = registry.register(shared_database, sighting(session="S2")).id
    question = inbox.enqueue(shared_database, draft(asked, task="T"))
    assert inbox.replies(shared_database, question.id) == []
    answer = Draft(
        peer=asker, sender=asked, text="42", kind="reply", reply_to=question.id, task="T", live=False
    )
    sent = inbox.enqueue(shared_database, answer)
    assert [(each.id, each.text, each.task) for each in inbox.replies(shared_database, question.id)] == [
        (sent.id, "42", "T")
    ]


def test_those_who_have_long_been_gone_are_forgotten_with_their_inbox(shared_database: Database) -> None:
    gone = registry.register(shared_database, sighting(session="S1"))
    kept = registry.register(shared_database, sighting(session="S2"))
    sent = inbox.enqueue(shared_database, draft(gone.id))
    registry.note(shared_database, gone.id, "offline")
    assert registry.forget(shared_database, 100) == 0
    assert registry.forget(shared_database, -1) == 1
    assert inbox.get(shared_database, sent.id) is None
    assert registry.get(shared_database, kept.id) is not None


def test_one_that_was_killed_is_forgotten_as_one_that_took_its_leave(shared_database: Database) -> None:
    killed = registry.register(shared_database, sighting(session="S1", process="no-boot/99999999/1"))
    assert registry.forget(shared_database, 100) == 0
    assert registry.forget(shared_database, -1) == 1
    assert registry.get(shared_database, killed.id) is None


class Inboxes(RuleBasedStateMachine):
    """Whatever order things happen in: every message is in one state, a final one never changes, what was
    accepted and not settled can be taken again once its lease has run out, and a key is used up by what has
    not failed."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.database = SqliteDatabase(Path(self._folder.name) / "d.db")
        self.peer = registry.register(self.database, sighting(session="S1")).id
        self.final: dict[str, str] = {}
        self.open: set[str] = set()
        self.held: set[str] = set()
        self.keys: dict[str, str] = {}
        self.takings: list[Message] = []
        self.owner: dict[str, int] = {}

    def teardown(self) -> None:
        self.database.close()
        self._folder.cleanup()

    @rule(key=st.none() | st.sampled_from("abc"))
    def send(self, key: str | None) -> None:
        sent = inbox.enqueue(self.database, draft(self.peer, key=key))
        if key is not None and self.final.get(self.keys.get(key, "")) == "failed":
            del self.final[self.keys.pop(key)]
        if key is not None and key in self.keys:
            assert sent.id == self.keys[key]
            return
        assert sent.id not in self.open | set(self.final)
        self.open.add(sent.id)
        if key is not None:
            self.keys[key] = sent.id

    @rule(count=st.integers(1, 3))
    def take(self, count: int) -> None:
        got = inbox.lease(self.database, self.peer, count=count, seconds=1000)
        self.takings += got
        self.owner |= {each.id: each.deliveries for each in got}
        taken = {each.id for each in got}
        assert taken <= self.open - self.held
        assert len(taken) == min(count, len(self.open - self.held))
        self.held |= taken

    @rule()
    def every_lease_runs_out(self) -> None:
        with self.database.transaction() as t:
            t.run("UPDATE inbox SET leased_until = 0 WHERE state = 'leased'")
        self.held.clear()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.open)))
        assert inbox.ack(self.database, [one], "x", "ack") == 1
        self._settled(one, "delivered")

    @precondition(lambda self: self.takings)
    @rule(data=st.data(), how=st.sampled_from(["extend", "fail", "release"]))
    def speak_of_what_was_taken(self, data: st.DataObject, how: str) -> None:
        """Only whoever took a message last, and has not given it back, has a say in it."""
        one = data.draw(st.sampled_from(self.takings))
        ours = self.owner.get(one.id) == one.deliveries
        if how == "extend":
            assert inbox.extend(self.database, one, 1000) == ours
            self.held |= {one.id} if ours else set()
        elif how == "release":
            assert inbox.release(self.database, [one]) == int(ours)
            if ours:
                self.held.discard(one.id)
                del self.owner[one.id]
        else:
            assert inbox.fail(self.database, one, "x", how) == ours
            if ours:
                self._settled(one.id, "failed")

    def _settled(self, ident: str, state: str) -> None:
        self.open.discard(ident)
        self.held.discard(ident)
        self.owner.pop(ident, None)
        self.final[ident] = state

    @precondition(lambda self: self.final)
    @rule(data=st.data())
    def arrive_again(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.final)))
        assert inbox.ack(self.database, [one], "y", "again") == 0

    @invariant()
    def all_are_accounted_for(self) -> None:
        shown = {each.id: each.state for each in inbox.peek(self.database, self.peer, all_=True, limit=1000)}
        assert {ident for ident, state in shown.items() if state in ("queued", "leased")} == self.open
        assert {ident: shown[ident] for ident in self.final} == self.final


TestInboxes = Inboxes.TestCase
TestInboxes.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
