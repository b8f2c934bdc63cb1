"""A conversation with a real program, held in this process, with a person who may be asked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
from tests.agents.lab import Lab, arrives

from remuda.core.children import Child, running
from remuda.core.errors import RefusedError
from remuda.core.events import Question, Result, ToolCall, ToolCallUpdate
from remuda.core.files import private_folder, write_atomic
from remuda.dispatch import installation
from remuda.dispatch.agents import Agent
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall as Judged
from remuda.operations.environment import headless_environment
from remuda.operations.guarding import bounded
from remuda.operations.preparation import command_of
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World, open_world
from remuda.prompts import delivery
from remuda.rehearsal.exchange import Usage as Tokens
from remuda.rehearsal.scenario import Rule, Scenario, Step, When
from remuda.runtimes.base import Arrival, Channel, Guard, Invocation, Permission, Runtime, Turn
from remuda.runtimes.dialogue import described
from remuda.sessions.live import Happening, Live, Patience, Sent

CHANNEL = Channel("connection", (), None)
SLOWEST = 60.0
ABORTED = 15.0
"""How long a turn may take to end that was asked to: most programs need less than one second."""

Judge = Callable[[Judged], Verdict]


def verdict(decision: str, reason: str = "as the test has it") -> Verdict:
    """A verdict on anything."""
    return msgspec.convert({"decision": decision, "rule": "test.rule", "reason": reason}, Verdict)


def by_word(call: Judged) -> Verdict:
    """Judges by the word in a command: whoever is told to ask asks."""
    text = described(call)
    decision = next((word for word in ("deny", "ask") if f"{word}-" in text), "allow")
    return verdict(decision, f"a test {decision}s it")


def rule(word: str, *steps: Step) -> Rule:
    """What the model says to a prompt with a word in it."""
    return Rule(steps, When(contains=word))


def play(lab: Lab, *rules: Rule) -> None:
    """Let the model go by these rules."""
    lab.server.set_scenario(Scenario("test", rules))


def said(text: str, tokens: int) -> Step:
    """A short answer that costs so many tokens."""
    return Step(text=text, usage=Tokens(input=tokens, output=tokens + 1, cache_read=0, cache_write=0))


class Talk:
    """A conversation under way, and all that was told of it."""

    def __init__(self, lab: Lab, invocation: Invocation, child: Child, told: list[Happening]) -> None:
        self.lab, self.child, self.told = lab, child, told
        self._invocation = invocation
        self.live: Live

    def send(self, prompt: str) -> Sent:
        """Send a prompt as Remuda would."""
        return self.live.send_prompt(delivery.payload(self.lab.runtime, self._invocation, prompt))

    async def result(self, sent: Sent) -> Result:
        """How a turn has ended."""
        async with asyncio.timeout(self.lab.within(SLOWEST)):
            return await sent.answered

    async def ask(self, prompt: str) -> Result:
        """One whole turn."""
        return await self.result(self.send(prompt))

    async def until(self, condition: Callable[[], object], seconds: float | None = None) -> bool:
        """Whether something becomes true in time."""
        end = asyncio.get_running_loop().time() + (seconds or self.lab.within(SLOWEST))
        while not condition():
            if asyncio.get_running_loop().time() > end:
                return False
            await asyncio.sleep(0.05)
        return True

    async def question(self) -> Question:
        """The question that a person is asked."""
        assert await self.until(lambda: self.live.questions), self.told
        (question,) = self.live.questions
        assert question in self.told
        assert self.live.get_state().status == "working"
        return question

    @property
    def calls(self) -> list[ToolCall]:
        return [happening for happening in self.told if isinstance(happening, ToolCall)]

    @property
    def failed_calls(self) -> list[ToolCallUpdate]:
        updates = (happening for happening in self.told if isinstance(happening, ToolCallUpdate))
        return [update for update in updates if update.status == "failed"]

    @property
    def last_request(self) -> str:
        """What the model was asked last. Some programs ask its server for more than answers."""
        return next(heard.body or "" for heard in reversed(self.lab.server.heard()) if heard.api)

    def heard(self, prompt: str) -> bool:
        """Whether the model heard a prompt as the channel has it."""
        sent = self.lab.runtime.disarm(prompt)
        return any(arrives(arrival(self.lab.runtime), heard, sent) for heard in self.lab.prompts())


def arrival(runtime: Runtime) -> Arrival:
    """How prompts arrive over a connection."""
    if channel := runtime.guarding.channel:
        return channel.arrives
    return runtime.connect.arrives if runtime.connect else "exact"


def _turn(lab: Lab, world: World, permission: Permission, judge: Judge) -> Turn:
    """A person's own session: the guard only answers what the program asks about."""
    needed = lab.runtime.conduct.bypass_as_root if permission == "bypass" and os.geteuid() == 0 else {}
    guard = Guard(capability="supervised", judge=judge, hooks=Path("/nowhere"), note="", binding=False)
    return Turn(
        cwd=lab.cwd,
        scratch=private_folder(lab.home / f"scratch-{uuid.uuid4().hex}"),
        keep=lab.home / "kept",
        session=str(uuid.uuid4()),
        permission=permission,
        guard=None if permission == "bypass" else guard,
        endpoint=lab.server.url,
        environ=headless_environment(
            world, world.roster.get(lab.runtime.name), lab.runtime, {**needed, "LAB_MARK": lab.token}
        ),
    )


def _bound(
    lab: Lab, world: World, found: installation.Installation, capability: str, judge: Judge, turn: Turn
) -> Turn:
    """The same held to a capability: what the guard would deny, and what the judge of the test says."""
    request = RunRequest(prompt="", capability=capability, env={"LAB_MARK": lab.token})
    plan = Plan(
        Agent(name=lab.runtime.name, runtime=lab.runtime.name),
        lab.runtime,
        lab.cwd,
        "test",
        turn.session,
        turn.resume,
    )
    turn = bounded(world, request, plan, found, msgspec.structs.replace(turn, guard=None))
    assert turn.guard is not None
    guard = turn.guard

    def both(call: Judged) -> Verdict:
        first = guard.judge(call)
        return judge(call) if first.decision == "allow" else first

    return msgspec.structs.replace(turn, guard=msgspec.structs.replace(guard, judge=both))


async def _granted(make: Callable[[Turn], Invocation], turn: Turn) -> Invocation:
    """The command of a session; some cannot be taken up as soon as they have ended."""
    async with asyncio.timeout(2 * SLOWEST):
        while True:
            try:
                return make(turn)
            except RefusedError:
                await asyncio.sleep(1)


@contextlib.asynccontextmanager
async def connected(
    lab: Lab,
    judge: Judge = by_word,
    *,
    capability: str | None = None,
    permission: Permission = "ask",
    resume: str | None = None,
    patience: Patience | None = None,
) -> AsyncIterator[Talk]:
    """A conversation with the lab's program. It is closed at the end, and must end by itself then."""
    world = open_world(lab.env, lab.cwd)
    runtime, connect = lab.runtime, lab.runtime.connect
    found = installation.find(runtime, world.environ, world.config)
    assert found is not None
    assert connect is not None
    turn = _turn(lab, world, permission, judge)
    if resume is not None:
        turn = msgspec.structs.replace(turn, session=resume, resume=True)
    make = connect.command
    if capability is not None:
        turn = _bound(lab, world, found, capability, judge, turn)
        assert runtime.guarding.command is not None
        make = runtime.guarding.command
    invocation = await _granted(make, turn)
    if invocation.keeps:
        private_folder(turn.keep)
        for file in invocation.kept:
            write_atomic(turn.keep / file.name, file.content.encode())
    command = command_of(found, turn, invocation)
    command = delivery.deliver(command, CHANNEL, "", invocation.files, turn.scratch)
    told: list[Happening] = []
    async with running(command) as child:
        talk = Talk(lab, invocation, child, told)
        limits = patience or Patience(abort=ABORTED)
        talk.live = Live(child, connect.connection(turn), told.append, limits)
        conversing = asyncio.create_task(talk.live.run())
        try:
            yield talk
            talk.live.close()
            async with asyncio.timeout(lab.within(SLOWEST)):
                await conversing
        finally:
            conversing.cancel()
