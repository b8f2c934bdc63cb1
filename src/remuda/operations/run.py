"""Run an agent on a prompt: the one door that every prompt enters by."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from remuda.core import log
from remuda.core.errors import RefusedError
from remuda.core.events import Event, Failure, Result, Tried, Work
from remuda.core.ids import uuid4
from remuda.dispatch.agents import Agent
from remuda.dispatch.handoff import Story, handed_over
from remuda.dispatch.policy import Route, goes_on
from remuda.operations import proving
from remuda.operations.attempts import Attempt, attempt, events, is_limited, turn
from remuda.operations.cooling import note_end
from remuda.operations.gating import pass_gate
from remuda.operations.isolation import Isolated, isolated
from remuda.operations.preparation import plan_for
from remuda.operations.requests import Announce, Plan, RunRequest, check_options
from remuda.operations.routing import route
from remuda.operations.world import World
from remuda.prompts import delivery

if TYPE_CHECKING:
    import asyncio

__all__ = ["Run", "RunRequest", "begin", "follow", "run"]

_INSTANT = 0.001
"""Seconds: what is given where no time is left, for 0 would be no limit."""

Say = Callable[[str], None]
"""Hears that another agent is tried, and why."""


class Run(msgspec.Struct, frozen=True):
    """A run that has begun: whom it may come to, where it works, and its first attempt, unless that one has
    to wait for its turn."""

    route: Route
    space: Isolated
    first: Attempt | None
    began: float
    announce: Announce | None = None

    @property
    def request(self) -> RunRequest:
        """What was asked, bound to where it works."""
        return self.space.request

    @property
    def plan(self) -> Plan:
        """Who runs first."""
        return self.space.plan


@contextmanager
def begin(world: World, request: RunRequest, announce: Announce | None = None) -> Iterator[Run]:
    """Start the agent, before anything slow is imported; :func:`follow` tells what happens to it.

    Leaving the block ends the agent. ``announce`` is told of each agent before it is started.
    """
    delivery.check_prompt(request.prompt)
    check_options(request)
    way, began = route(world, request), time.monotonic()
    with ExitStack() as held:
        if refused := _refused(world, request, way):
            plan = plan_for(world, request, refused[0])
            nobody = Attempt(plan, refused[1], held)
            yield Run(Route((plan.agent,)), Isolated(plan, request), nobody, began)
            return
        first = way.candidates[0]
        space = held.enter_context(isolated(world, request, plan_for(world, request, first)))
        tries = None
        if not is_limited(world, first):
            space.enter()
            others = len(way.candidates) > 1
            tries = attempt(world, space.request, space.plan, others=others, announce=announce)
            held.enter_context(tries.held)
        yield Run(way, space, tries, began, announce)


def _refused(world: World, request: RunRequest, way: Route) -> tuple[Agent, Failure] | None:
    """Whoever on the route does not pass the gate, and why: then nobody is called."""
    for agent in way.candidates:
        try:
            pass_gate(world, request, agent)
        except RefusedError as error:
            return agent, Failure("refused", str(error))
    return None


async def follow(world: World, begun: Run, stop: asyncio.Event, say: Say = log.info) -> AsyncGenerator[Event]:
    """The events of a run; the last one carries the result. Setting ``stop`` cancels it.

    Where an agent fails before its first answer, and another may be tried, that one's events follow; ``say``
    hears of it.
    """
    tried, story, number = [*begun.route.passed_over], Story(), 0
    left: Tried | None = None
    for place, agent in enumerate(begun.route.candidates):
        others = begun.route.candidates[place + 1 :]
        call = _Call(world, begun, agent, first=place == 0, others=bool(others))
        asked = begun.request if place == 0 else _next_request(begun, agent, left, story)
        here = Story()
        async with aclosing(_attempted(call, asked, stop, here)) as heard:
            async for event in heard:
                number += 1
                if event.result is None:
                    yield msgspec.structs.replace(event, seq=number)
        result = event.result
        assert result is not None
        answered = here.answered(result.error)
        if not others or stop.is_set() or not _goes_on(world, begun, result, answered=answered):
            result = msgspec.structs.replace(result, tried=tuple(tried), work=await _work(begun))
            try:
                yield msgspec.structs.replace(event, seq=number, result=result)
            finally:
                if result.error is None:
                    await note_end(world, agent, None)
            return
        number -= 1
        assert result.error is not None
        tried.append(Tried(agent.name, result.error))
        if answered:
            story.go_on(here)
            left = tried[-1]
        say(f"{agent.name} failed ({result.error.kind}): going on with {others[0].name}")


class _Call(msgspec.Struct, frozen=True):
    """One agent of a run's route, the ``first`` or one that is called instead of it."""

    world: World
    begun: Run
    agent: Agent
    first: bool
    others: bool

    def planned(self, request: RunRequest) -> tuple[RunRequest, Plan]:
        """What is asked of it, within the time that is left and where the run works by now, and its plan."""
        plan = self.begun.plan if self.first else _next_plan(self.world, request, self.agent, self.begun.plan)
        bound = self.begun.space.bound(request, plan.runtime)
        return _timed(self.world, self.begun, bound), plan

    async def start(self, request: RunRequest) -> Attempt:
        """Start the agent, where the run works. A checkout takes its time, and is not left half done."""
        from remuda.dispatch.limits import aside

        await aside(self.begun.space.enter)
        asked, plan = self.planned(request)
        return attempt(
            self.world,
            asked,
            plan,
            others=self.others,
            instead=not self.first,
            announce=self.begun.announce,
        )


async def _attempted(
    call: _Call, request: RunRequest, stop: asyncio.Event, story: Story
) -> AsyncGenerator[Event]:
    """One attempt, from its turn to its end, which ``story`` remembers."""
    async with AsyncExitStack() as held:
        tries = call.begun.first if call.first else None
        if tries is None:
            asked, plan = call.planned(request)
            waited = await turn(call.world, asked, plan, held, stop, others=call.others)
            tries = waited or await call.start(request)
        held.callback(tries.held.close)
        async with aclosing(events(call.world, tries, stop)) as heard:
            async for event in heard:
                story.hear(event.update)
                yield event
        story.unseen = story.unseen or tries.answered


def _goes_on(world: World, begun: Run, result: Result, *, answered: bool) -> bool:
    """Whether the next agent is tried, and there is time left for it."""
    if not goes_on(result.error, answered=answered, elsewhere=begun.request.resume_elsewhere):
        return False
    return _time_left(world, begun) != 0


def _time_left(world: World, begun: Run) -> float | None:
    """Seconds that are left of the whole run; None where it has no end."""
    given = begun.request.timeout
    timeout = world.config.run.timeout if given is None else given
    return max(begun.began + timeout - time.monotonic(), 0.0) if timeout else None


def _timed(world: World, begun: Run, request: RunRequest) -> RunRequest:
    """The same, within the time that is left of the whole run."""
    left = _time_left(world, begun)
    return request if left is None else msgspec.structs.replace(request, timeout=max(left, _INSTANT))


def _next_request(begun: Run, agent: Agent, left: Tried | None, story: Story) -> RunRequest:
    """What the next agent is asked: the same, with the record of what was done where one has ``left`` work
    behind. A model and arguments of its own mean something to the runtime only that they were meant for."""
    asked = begun.request
    if left is not None:
        prompt = handed_over(asked.prompt, left.agent, left.error.kind, story, f"record-{uuid4()}")
        asked = msgspec.structs.replace(asked, prompt=prompt)
    if agent.runtime != begun.plan.runtime.name:
        asked = msgspec.structs.replace(asked, model=None, extra=())
    return asked


def _next_plan(world: World, request: RunRequest, agent: Agent, first: Plan) -> Plan:
    """A session of its own, in the folder of the first."""
    return msgspec.structs.replace(plan_for(world, request, agent), cwd=first.cwd)


async def _work(begun: Run) -> Work | None:
    """What was done in a worktree of the run's own, if it has one."""
    import asyncio

    return await asyncio.to_thread(begun.space.handed_back)


@asynccontextmanager
async def _begun(world: World, request: RunRequest, announce: Announce | None) -> AsyncIterator[Run]:
    """:func:`begin` beside the event loop, for a checkout takes its time. What was begun is ended, whoever
    stopped waiting for it."""
    import asyncio

    beginning = begin(world, request, announce)
    entering = asyncio.ensure_future(asyncio.to_thread(beginning.__enter__))
    with ExitStack() as held:
        try:
            begun = await asyncio.shield(entering)
        finally:
            while not entering.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((entering,))
            if not entering.exception():
                held.push(beginning.__exit__)
        yield begun


async def run(
    world: World,
    request: RunRequest,
    stop: asyncio.Event,
    announce: Announce | None = None,
    say: Say = log.info,
) -> AsyncGenerator[Event]:
    """Begin and follow in one, for programs that have an event loop already. A guard that nobody has seen at
    work is proven first."""
    for runtime in proving.due(world, request):
        await proving.prove(world, runtime, say)
    async with (
        _begun(world, request, announce) as begun,
        aclosing(follow(world, begun, stop, say)) as heard,
    ):
        async for event in heard:
            yield event
