"""Sessions from a program, blocking and asynchronous, over the connection and in a pane."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.sessions import DONE, SLOW, Stable, shell
from tests.integration.sessions import stable as stable
from tests.support import alive, eventually

from remuda import AsyncRemuda, Remuda
from remuda.api import AsyncSession, RemudaError, Session
from remuda.core.errors import NotFoundError, UsageError
from remuda.rehearsal.scenario import Step

both = pytest.mark.parametrize("mode", ["connection", "tmux"])
LONG = shell("echo $$ > pid; exec sleep 300")
UNSURE = shell('eval "$Y"; echo asked > asked.txt')


def blocking(stable: Stable) -> Remuda:
    return Remuda(cwd=stable.cwd, environ=stable.site.env)


def asynchronous(stable: Stable) -> AsyncRemuda:
    return AsyncRemuda(cwd=stable.cwd, environ=stable.site.env)


@both
def test_a_session_is_the_same_for_every_program(stable: Stable, mode: str) -> None:
    remuda = blocking(stable)
    session = remuda.start_session("one", mode=mode, prompt="the first", agent="rehearsal")  # type: ignore[arg-type]
    eventually(lambda: session.get_state().status == "idle")
    receipt = blocking(stable).session("one").send_prompt("a second\nwith 漢字")
    assert receipt.channel == ("tmux" if mode == "tmux" else "stream-json")
    assert receipt.bytes == len("a second\nwith 漢字".encode())
    assert receipt.proof
    eventually(lambda: session.get_state().status == "idle")
    session.follow_up("a third")
    eventually(lambda: stable.heard() == ["the first", "a second\nwith 漢字", "a third"])
    (seen,) = remuda.sessions()
    assert (seen.name, seen.mode, seen.id) == ("one", mode, session.id)
    eventually(lambda: session.show().usage.answers == 3)  # type: ignore[union-attr]
    assert session.close().state == "exited"
    assert session.get_state().status == "error"
    assert remuda.sessions() == []
    assert [each.id for each in remuda.sessions(all_=True)] == [session.id]
    assert remuda.resume_session("one").id == session.id
    assert remuda.session("one").show().session.state == "ready"


@both
def test_a_turn_is_aborted(stable: Stable, mode: str) -> None:
    stable.play(("long", (LONG, DONE)))
    session = blocking(stable).start_session(
        "one",
        mode=mode,  # type: ignore[arg-type]
        prompt="a long one",
        agent="rehearsal",
        permission="bypass",
    )
    eventually((stable.cwd / "pid").exists, SLOW)
    eventually(lambda: session.get_state().status == "working")
    if mode == "connection":
        assert session.get_state().current_tool
    assert session.abort().state == "ready"
    assert not alive(int((stable.cwd / "pid").read_text()))


def test_asking_waits_for_the_end_of_the_turn_and_events_tell_of_it(stable: Stable) -> None:
    stable.play(("horse", (Step(text="A grey one."),)), ("broken", (Step(status=400, message="no"),)))

    async def converse() -> None:
        session = await asynchronous(stable).start_session("one", agent="rehearsal")
        assert isinstance(session, AsyncSession)
        told = asyncio.ensure_future(anext(e async for e in session.events() if e.result))
        result = await session.ask("Which horse?")
        assert (result.text, result.error) == ("A grey one.", None)
        event = await asyncio.wait_for(told, SLOW)
        assert event.result == result
        failed = await session.ask("a broken one")
        assert failed.error is not None
        assert (await session.ask("Which horse?")).text == "A grey one."
        behind = [event async for event in session.events(since=event.seq, follow=False)]
        assert [each.result is not None for each in behind].count(True) == 2
        assert behind[0].seq > event.seq
        await session.close()
        with pytest.raises(UsageError, match="has ended"):
            await session.ask("anybody?")

    asyncio.run(converse())


def test_events_of_a_blocking_program_end_with_the_session(stable: Stable) -> None:
    session = blocking(stable).start_session("one", agent="rehearsal")
    events = session.events()
    assert session.ask("hello").text == "All done."
    assert next(event.result for event in events if event.result).text == "All done."
    session.close()
    assert [event.result for event in events if event.result] == []


def test_a_tool_call_waits_for_the_programs_word(stable: Stable) -> None:
    stable.play(("unsure", (UNSURE, DONE)))
    session = blocking(stable).start_session("one", agent="rehearsal")
    for allowed in (False, True):
        session.send_prompt("unsure")
        eventually(session.questions)
        (question,) = session.questions()
        assert "eval" in question.title
        answered = session.approve(question.id) if allowed else session.reject(question.id, "not today")
        assert answered == question.title
        eventually(lambda: session.get_state().status == "idle")
        assert (stable.cwd / "asked.txt").exists() == allowed
    assert session.questions() == []
    with pytest.raises(UsageError):
        session.approve()
    assert any("not today" in (heard.body or "") for heard in stable.server.heard())


def test_a_pane_with_a_dialog_comes_back_as_it_is_and_has_a_screen(stable: Stable) -> None:
    remuda = blocking(stable)
    env = {"REHEARSAL_DIALOG": "trust"}
    session = remuda.start_session("one", mode="tmux", agent="rehearsal", env=env)
    assert session.show().session.state == "dialog"
    assert "trust" in session.screen()
    with pytest.raises(UsageError, match="first prompt was not sent"):
        remuda.start_session("two", mode="tmux", prompt="hello", agent="rehearsal", env=env)
    agreed = remuda.start_session(
        "three", mode="tmux", prompt="hello", consent=("trust",), agent="rehearsal", env=env
    )
    with pytest.raises(UsageError, match="only on its screen"):
        agreed.ask("hello again")
    assert stable.heard() == ["hello"]


def test_what_cannot_be_is_an_error(stable: Stable) -> None:
    remuda = blocking(stable)
    with pytest.raises(NotFoundError):
        remuda.session("nobody")
    with pytest.raises(RemudaError):
        remuda.start_session("a b", agent="rehearsal")
    with pytest.raises(NotFoundError):
        remuda.start_session("one", agent="nobody")
    assert remuda.sessions(all_=True) == []
    assert isinstance(remuda.start_session("one", agent="rehearsal"), Session)
    with pytest.raises(UsageError, match="runs already"):
        remuda.resume_session("one")
