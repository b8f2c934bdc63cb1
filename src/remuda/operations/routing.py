"""Which agents a request goes to, in order: resolved, looked at, and taken in turn."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.dispatchconfig import Policy
from remuda.core.errors import NotFoundError, UsageError
from remuda.dispatch import policy
from remuda.dispatch.agents import Agent
from remuda.dispatch.policy import Pool, Route, Wish
from remuda.operations.agents import chosen
from remuda.operations.requests import RunRequest
from remuda.operations.standing import cooldowns, standings
from remuda.operations.world import World

if TYPE_CHECKING:
    from remuda.sessions.store import Session


def folder_of(world: World, request: RunRequest) -> Path:
    """The folder that a request is about."""
    cwd = (request.cwd or world.cwd).absolute()
    if not cwd.is_dir():
        raise NotFoundError(f"{cwd} is not a folder", "Choose an existing one with --cwd.")
    return cwd


def earlier(world: World, request: RunRequest) -> Session | None:
    """The session of ours that a request continues."""
    if request.session is None:
        return None
    from remuda.sessions import store

    return store.find(world.folders.database, request.session)


def pool(world: World, request: RunRequest) -> Pool:
    """Whom a request means, before anybody is looked at."""
    here, mode = msgspec.structs.replace(world, cwd=folder_of(world, request)), _mode(world, request)
    if request.session is not None:
        return _of_session(here, request)
    name = request.agent if request.tag is not None else chosen(here, request.agent)
    return policy.pool(Wish(name=name, tag=request.tag, policy=mode), world.roster)


def _of_session(world: World, request: RunRequest) -> Pool:
    """Who continues a session: the agent that had it, for nobody else knows of it."""
    if request.tag is not None:
        raise UsageError(
            "--session and --tag exclude each other", "A session has its agent: leave out --tag."
        )
    before = earlier(world, request)
    if before is None or request.agent not in (None, before.agent, before.runtime):
        name = chosen(world, request.agent)
        return policy.pool(Wish(name=name, policy="explicit"), world.roster)
    return Pool(agents=(world.roster.get(before.agent),))


def _mode(world: World, request: RunRequest) -> Policy:
    """How it is picked. A configured policy gives way where it cannot hold: one for tags without a tag, and
    one for names with one."""
    if request.policy is not None:
        return request.policy
    mode = world.config.dispatch.mode
    if request.tag is None:
        return "auto" if mode == "tag-routed" else mode
    return "auto" if mode in ("auto", "failover") else "tag-routed"


def possible(world: World, request: RunRequest) -> tuple[Agent, ...]:
    """Everyone that a request may come to: those that can be called, or all where none can. Nobody's turn is
    taken by asking."""
    everyone = policy.everyone(pool(world, request), world.roster)
    seen = standings(world, everyone, {})
    return tuple(each for each in everyone if seen[each.name].status not in policy.SKIPPED) or everyone


def route(world: World, request: RunRequest) -> Route:
    """The agents to try, in order. Where several take turns, this takes one."""
    found, roster = pool(world, request), world.roster
    everyone = policy.everyone(found, roster)
    if len(everyone) == 1:
        return policy.pick(found, roster, standings(world, everyone, {}))
    seen = standings(world, everyone, cooldowns(world, everyone))
    turn = _turn(world, found.turn) if found.turn and policy.takes_turns(found, seen) else 0
    return policy.pick(found, roster, seen, turn)


def _turn(world: World, name: str) -> int:
    """Whose turn it is; the next who asks, in whatever process, gets the next."""
    with closing(world.shared()) as database, database.transaction() as t:
        [[position]] = t.rows(
            "INSERT INTO cursors (name, position) VALUES (?, 1)"
            " ON CONFLICT (name) DO UPDATE SET position = cursors.position + 1 RETURNING position",
            name,
        )
    assert isinstance(position, int)
    return position - 1
