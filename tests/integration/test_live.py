"""A connected agent as a process: its turns, its silence, its noise, its stubbornness and its death."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.support import alive

from remuda.core.children import Child, running
from remuda.core.events import Failure, Question, Result
from remuda.core.processes import Command
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes.base import Guard, Turn
from remuda.runtimes.claude.stream import parser
from remuda.runtimes.control import PROMPT_HOOK, ControlConnection
from remuda.sessions.live import Happening, Live, LostError, Patience, Sent

Got = TypeVar("Got")

AGENT = """
import json, os, sys, time

def say(message): print(json.dumps(message), flush=True)

def ask(ident, **request): say({"type": "control_request", "request_id": ident, "request": request})

def done(text, **more):
    under_way.clear()
    say({"type": "result", "result": text, "session_id": "s-1", **more})

under_way = set()

def perform(word, text):
    if word == "noise":
        sys.stdout.buffer.write(b"\\xff\\xfe not json\\n[1, 2\\n\\n" + b"x" * 100_000 + b"\\n")
        print("words on the other stream", file=sys.stderr, flush=True)
        done(text)
    elif word == "chatter":
        for number in range(8):
            print("still here", file=sys.stderr if number % 2 else sys.stdout, flush=True)
            time.sleep(0.7)
        done(text)
    elif word == "trouble":
        say({"type": "system", "subtype": "api_retry", "error": "overloaded", "error_status": 529})
    elif word == "fail":
        done("it failed", is_error=True, api_error_status=500)
    elif word == "ask":
        ask("q", subtype="can_use_tool", tool_name="Bash", input={"command": "ls"}, tool_use_id="t")
    elif word == "die":
        os._exit(3)
    elif word != "wait":
        done(text)

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "user":
        text = message["message"]["content"][0]["text"]
        if "unseen" not in text: ask("h", subtype="hook_callback", callback_id=sys.argv[2], input={})
        under_way.add(text)
        perform(text.split()[0], text)
        if "leaves" in text: break
    elif message["type"] == "control_request":
        ident, kind = message["request_id"], message["request"]["subtype"]
        if sys.argv[1] == "mute" or (sys.argv[1] == "stubborn" and kind == "interrupt"): continue
        say({"type": "control_response", "response": {"subtype": "success", "request_id": ident}})
        if kind == "interrupt" and under_way: done("", is_error=True, subtype="error_during_execution")
    elif message["response"].get("request_id") == "q":
        done(message["response"]["response"]["behavior"])
if sys.argv[1] == "clinging": time.sleep(600)
if sys.argv[1] == "wordy":
    for _ in range(4000): print("a long goodbye " * 20)
"""


def judge(_call: ToolCall) -> Verdict:
    """A person has to be asked about everything."""
    return Verdict(decision="ask", rule="test", reason="who knows")


class Talk:
    """A conversation under way."""

    def __init__(self, live: Live, child: Child, told: list[Happening]) -> None:
        self.live, self.child, self.told = live, child, told
        self.over = asyncio.create_task(live.run())

    async def ask(self, text: str) -> Result:
        return await soon(self.live.send_prompt(text).answered)

    async def question(self) -> Question:
        async with asyncio.timeout(60):
            while not self.live.questions:
                await asyncio.sleep(0.01)
        return self.live.questions[0]


async def soon(what: Awaitable[Got]) -> Got:
    """What is waited for must come, and long before anything else gives up."""
    async with asyncio.timeout(60):
        return await what


async def lost(sent: Sent) -> Failure:
    """Why a prompt will not be answered."""
    with pytest.raises(LostError) as caught:
        await soon(sent.answered)
    return caught.value.failure


@contextlib.asynccontextmanager
async def talking(manner: str = "", patience: Patience | None = None) -> AsyncIterator[Talk]:
    """A conversation with the scripted program."""
    guard = Guard(capability="supervised", judge=judge, hooks=Path("/"), note="", binding=False)
    turn = Turn(cwd=Path("/"), scratch=Path("/"), keep=Path("/"), session="s", guard=guard)
    argv = (sys.executable, "-I", "-S", "-c", AGENT, manner, PROMPT_HOOK)
    command = Command(argv=argv, env={"PATH": os.environ["PATH"]}, cwd=Path("/"), converses=True)
    told: list[Happening] = []
    async with running(command) as child:
        connection = ControlConnection(turn, lambda: parser(turn, ""))
        talk = Talk(Live(child, connection, told.append, patience), child, told)
        try:
            yield talk
        finally:
            talk.over.cancel()
    assert not alive(child.pid)


async def test_prompts_are_answered_one_after_the_other() -> None:
    async with talking() as talk:
        first, second = talk.live.send_prompt("one"), talk.live.follow_up("two")
        assert (await soon(first.answered)).text == "one"
        assert first.arrived.done()
        assert not second.answered.done()
        assert (await soon(second.answered)).text == "two"
        phases = [happening for happening in talk.told if isinstance(happening, str)]
        assert phases == ["idle", "working", "idle", "working", "idle"]
        assert [happening.text for happening in talk.told if isinstance(happening, Result)] == [
            "one",
            "two",
        ]
        assert talk.live.runtime_session == "s-1"
        talk.live.close()
        assert await soon(talk.over) is None
        assert (await lost(talk.live.send_prompt("three"))).kind == "crashed"


async def test_the_hook_for_prompts_tells_that_one_has_arrived() -> None:
    async with talking() as talk:
        sent = talk.live.send_prompt("wait")
        await soon(sent.arrived)
        assert not sent.answered.done()
        assert talk.live.get_state().status == "working"


async def test_noise_is_passed_over() -> None:
    async with talking() as talk:
        assert (await talk.ask("noise")).text == "noise"
        assert (await talk.ask("two")).text == "two"


async def test_any_line_is_a_sign_of_life() -> None:
    async with talking(patience=Patience(idle=4)) as talk:
        assert (await talk.ask("chatter")).error is None


async def test_a_silent_turn_is_broken_off_and_the_next_one_goes_on() -> None:
    async with talking(patience=Patience(idle=3)) as talk:
        silent, following = talk.live.send_prompt("wait"), talk.live.follow_up("two")
        result = await soon(silent.answered)
        assert result.error is not None
        assert result.error.kind == "timeout"
        assert (await soon(following.answered)).text == "two"


async def test_a_turn_that_begins_after_a_long_rest_is_not_late() -> None:
    async with talking(patience=Patience(idle=3)) as talk:
        await talk.ask("one")
        await asyncio.sleep(3.5)
        assert (await talk.ask("two")).error is None


async def test_a_person_may_think_as_long_as_it_takes() -> None:
    async with talking(patience=Patience(idle=3)) as talk:
        sent = talk.live.send_prompt("ask")
        question = await talk.question()
        await asyncio.sleep(4)
        assert talk.live.questions == (question,)
        assert talk.live.decide(question.id, True, "yes")
        assert (await soon(sent.answered)).text == "allow"


async def test_an_abort_denies_what_waits_and_drops_what_follows() -> None:
    async with talking() as talk:
        sent, following = talk.live.send_prompt("ask"), talk.live.follow_up("two")
        question = await talk.question()
        talk.live.abort()
        assert not talk.live.questions
        assert not talk.live.decide(question.id, True, "too late")
        assert (await soon(sent.answered)).stop_reason == "cancelled"
        assert (await lost(following)).kind == "cancelled"
        assert (await talk.ask("three")).text == "three"


async def test_an_agent_that_ignores_the_abort_is_ended() -> None:
    """The clock starts with the abort, whatever the program was waited for before."""
    async with talking("stubborn", Patience(abort=0.5)) as talk:
        sent = talk.live.send_prompt("wait")
        await soon(sent.arrived)
        talk.live.abort()
        result = await soon(sent.answered)
        assert result.stop_reason == "cancelled"
        assert not alive(talk.child.pid)
        reason = await soon(talk.over)
        assert reason is not None
        assert reason.kind == "cancelled"


async def test_trouble_without_end_fails_the_turn_only() -> None:
    async with talking(patience=Patience(trouble=0.3)) as talk:
        result = await talk.ask("trouble")
        assert result.error is not None
        assert (result.error.kind, result.stop_reason) == ("model", "error")
        assert (await talk.ask("two")).text == "two"


async def test_a_death_is_told_to_all_who_wait() -> None:
    async with talking() as talk:
        await talk.ask("one")
        sent, following = talk.live.send_prompt("die"), talk.live.follow_up("two")
        result = await soon(sent.answered)
        assert result.error is not None
        assert result.error.kind == "crashed"
        assert "exit code 3" in result.error.message
        assert await lost(following) == result.error
        assert talk.live.get_state().status == "error"


async def test_an_agent_that_leaves_between_turns_is_missed() -> None:
    """And what became of the turn before has nothing to do with that."""
    async with talking() as talk:
        assert (await talk.ask("fail leaves")).stop_reason == "error"
        reason = await soon(talk.over)
        assert reason is not None
        assert reason.kind == "crashed"
        assert await lost(talk.live.send_prompt("two")) == reason


async def test_an_agent_that_never_opens_is_given_up() -> None:
    async with talking("mute", Patience(start=0.5)) as talk:
        sent = talk.live.send_prompt("one")
        assert (await lost(sent)).kind == "start_failed"
        reason = await soon(talk.over)
        assert reason is not None
        assert reason.kind == "start_failed"


async def test_a_closed_agent_may_say_a_long_goodbye() -> None:
    async with talking("wordy", Patience(abort=15)) as talk:
        await talk.ask("one")
        talk.live.close()
        assert await soon(talk.over) is None


async def test_an_agent_that_clings_to_its_life_is_ended() -> None:
    async with talking("clinging", Patience(abort=0.5)) as talk:
        await talk.ask("one")
        talk.live.close()
        assert await soon(talk.over) is None
        assert not alive(talk.child.pid)
