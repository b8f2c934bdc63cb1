"""How an agent is picked: from a wish, the agents as they stand, and whose turn it is, to those to try.

Pure: who stands how, and whose turn it is, is looked up by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from remuda.core.dispatchconfig import Policy
from remuda.core.errors import ConfigError, ErrorKind, NotInstalledError, RemudaError, UsageError
from remuda.core.events import Failure, Tried
from remuda.dispatch.agents import Agent, Roster

Status = Literal["callable", "not installed", "not logged in", "disabled", "cooling down", "unusable"]
"""How an agent stands. ``not logged in`` is a guess, and so keeps nobody from being called."""

SKIPPED: frozenset[Status] = frozenset({"not installed", "disabled", "unusable"})
"""Those that cannot be called, whatever the moment."""

_FAILS: dict[Status, ErrorKind] = {"not installed": "not_installed", "unusable": "start_failed"}
"""What a call of such an agent would come to."""

FAILS_OVER: frozenset[ErrorKind] = frozenset({"rate_limit", "quota", "auth", "not_installed", "start_failed"})
"""Failures of one agent that another one need not have. A refusal is never among them."""

HANDS_OVER: frozenset[ErrorKind] = FAILS_OVER | {"crashed", "model", "protocol"}
"""Failures in the middle after which another agent may go on, where that is asked for."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An agent and how it stands; ``until`` is when a cooldown ends, in seconds since the epoch."""

    agent: Agent
    status: Status = "callable"
    reason: str = ""
    until: float | None = None
    kind: ErrorKind = "rate_limit"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked for: an agent or a runtime by ``name``, or whoever carries a ``tag``."""

    name: str | None = None
    tag: str | None = None
    policy: Policy = "auto"


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be picked. Of a pool with a ``turn`` the agents take turns, under that name; those of one
    without are in the order in which they are tried. ``chained``: failover chains follow."""

    agents: tuple[Agent, ...]
    turn: str | None = None
    chained: bool = False


class Route(msgspec.Struct, frozen=True):
    """The agents to try, in order, and those that were passed over: cooling down, not installed, unusable."""

    candidates: tuple[Agent, ...]
    passed_over: tuple[Tried, ...] = ()


def pool(wish: Wish, roster: Roster) -> Pool:
    """Whom a wish means."""
    if wish.tag is not None:
        return _tagged(wish, roster, wish.tag)
    if wish.policy == "tag-routed":
        raise UsageError("the policy tag-routed needs a tag", "Name one with --tag.")
    assert wish.name is not None
    found = roster.named(wish.name)
    if len(found) == 1:
        return Pool(agents=found, chained=wish.policy in ("auto", "failover"))
    if wish.policy in ("explicit", "failover"):
        raise UsageError(
            f"{wish.name} has {len(found)} agents: {', '.join(each.name for each in found)}",
            "Name one of them with --agent, or let them take turns: --policy round-robin.",
        )
    return Pool(agents=found, turn=f"runtime:{wish.name}", chained=wish.policy == "auto")


def _tagged(wish: Wish, roster: Roster, tag: str) -> Pool:
    if wish.name is not None:
        raise UsageError("--agent and --tag exclude each other", "Give one of them.")
    if wish.policy not in ("auto", "tag-routed", "round-robin"):
        raise UsageError(f"the policy {wish.policy} picks nobody by a tag", "Leave out --policy, or --tag.")
    if found := roster.tagged(tag):
        return Pool(agents=found, turn=f"tag:{tag.lower()}", chained=wish.policy == "auto")
    tags = sorted({label for name in roster for label in roster.get(name).tags})
    raise UsageError(
        f"no agent carries the tag {tag!r}", f"Tags that there are: {', '.join(tags) or 'none'}."
    )


def everyone(chosen: Pool, roster: Roster) -> tuple[Agent, ...]:
    """All who might be tried: the pool, and behind it its failover chains."""
    return chain(chosen.agents, roster) if chosen.chained else chosen.agents


def chain(first: Sequence[Agent], roster: Roster) -> tuple[Agent, ...]:
    """Agents with everyone that they fail over to, and so on; nobody comes twice. A runtime's name stands for
    all of its agents."""
    found = {agent.name: agent for agent in first}
    waiting = [name for agent in first for name in agent.failover_to]
    while waiting:
        new = [agent for agent in roster.named(waiting.pop(0)) if agent.name not in found]
        found.update((agent.name, agent) for agent in new)
        waiting[:0] = [name for agent in new for name in agent.failover_to]
    return tuple(found.values())


def takes_turns(chosen: Pool, standings: Mapping[str, Standing]) -> bool:
    """Whether it matters whose turn it is."""
    return chosen.turn is not None and len(_able(chosen.agents, standings)) > 1


def pick(chosen: Pool, roster: Roster, standings: Mapping[str, Standing], turn: int = 0) -> Route:
    """Who is tried, in order.

    Agents that take turns begin with the one whose ``turn`` it is. Whoever cannot be called is left out of a
    pool; in a chain, one that is not installed or unusable is passed over. So are those that are cooling
    down, unless nobody else is left: then the one that is ready first goes first. Where there is nobody at
    all but a single one that is not installed, its call tells why.
    """
    heads = _able(chosen.agents, standings) or _absent(chosen.agents, standings)
    if chosen.turn is not None:
        heads = _turned(heads, standings, turn)
    agents = chain(heads, roster) if chosen.chained else heads
    row = [standings[agent.name] for agent in agents]
    cooling = [each for each in row if each.status == "cooling down"]
    going = [each for each in row if each.status not in SKIPPED and each not in cooling]
    going = going or sorted(cooling, key=lambda each: each.until or 0.0)
    if not going and (not heads or len(chosen.agents) > 1):
        raise _nobody(chosen, standings)
    going = going or row[:1]
    passed = (each for each in row if each not in going and each.status != "disabled")
    return Route(tuple(each.agent for each in going), tuple(_passed(each) for each in passed))


def _able(agents: Iterable[Agent], standings: Mapping[str, Standing]) -> tuple[Agent, ...]:
    """Those that can be called, now or later."""
    return tuple(agent for agent in agents if standings[agent.name].status not in SKIPPED)


def _absent(agents: Iterable[Agent], standings: Mapping[str, Standing]) -> tuple[Agent, ...]:
    """Those that only have to be installed."""
    return tuple(agent for agent in agents if standings[agent.name].status == "not installed")


def _turned(agents: tuple[Agent, ...], standings: Mapping[str, Standing], turn: int) -> tuple[Agent, ...]:
    """From the one whose turn it is. Those that are cooling down have none, or whoever comes after them would
    have two."""
    ready = [agent for agent in agents if standings[agent.name].status != "cooling down"]
    start = turn % max(len(ready), 1)
    return (*ready[start:], *ready[:start], *(agent for agent in agents if agent not in ready))


def _passed(standing: Standing) -> Tried:
    kind = _FAILS.get(standing.status, standing.kind)
    return Tried(standing.agent.name, Failure(kind, standing.reason or f"it is {standing.status}"))


def _nobody(chosen: Pool, standings: Mapping[str, Standing]) -> RemudaError:
    """Why there is nobody to call."""
    seen = [standings[agent.name] for agent in chosen.agents]
    unusable = next((each for each in seen if each.status == "unusable"), None)
    if unusable is not None:
        return ConfigError(f"{unusable.agent.name} is unusable: {unusable.reason}", "See 'remuda agents'.")
    told = (f"{each.agent.name} is {each.status} ({each.reason or 'no reason given'})" for each in seen)
    return NotInstalledError("; ".join(told), "'remuda agents' shows who can be called.")


def goes_on(failure: Failure | None, *, answered: bool, elsewhere: bool) -> bool:
    """Whether the next agent is to be tried: at once where nothing was answered yet; in the middle only where
    it may be taken up elsewhere."""
    if failure is None:
        return False
    if answered:
        return elsewhere and failure.kind in HANDS_OVER
    return failure.kind in FAILS_OVER
