"""Who is picked, and who is tried after whom: pure decisions over agents as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.dispatchconfig import AgentConfig, Policy
from remuda.core.errors import (
    ConfigError,
    ErrorKind,
    NotFoundError,
    NotInstalledError,
    UsageError,
)
from remuda.core.events import Failure
from remuda.dispatch.agents import Roster
from remuda.dispatch.policy import (
    SKIPPED,
    Route,
    Standing,
    Status,
    Wish,
    chain,
    everyone,
    goes_on,
    pick,
    pool,
    takes_turns,
)
from remuda.runtimes.herd import Herd

NOWHERE = Path("/nonexistent")


def roster(**agents: AgentConfig) -> Roster:
    return Roster(Herd(NOWHERE), {name.replace("_", "-"): given for name, given in agents.items()})


FLEET = roster(
    claude_home=AgentConfig("claude", tags=("Fast", "cheap")),
    claude_work=AgentConfig("claude", tags=("fast",), failover_to=("codex1",)),
    codex1=AgentConfig("codex", failover_to=("gemini", "claude-work")),
)


def stands(fleet: Roster, **statuses: Status) -> dict[str, Standing]:
    """All callable, but for these."""
    given = {name.replace("_", "-"): status for name, status in statuses.items()}
    return {
        name: Standing(agent=fleet.get(name), status=given.get(name, "callable"), reason="why", until=9.0)
        for name in fleet
    }


def names(route: Route) -> list[str]:
    return [agent.name for agent in route.candidates]


def picked(wish: Wish, turn: int = 0, **statuses: Status) -> list[str]:
    return names(pick(pool(wish, FLEET), FLEET, stands(FLEET, **statuses), turn))


@pytest.mark.parametrize(
    ("wish", "turn", "expected"),
    [
        (Wish(name="claude-work"), 0, ["claude-work", "codex1", "gemini"]),
        (Wish(name="claude-work", policy="failover"), 0, ["claude-work", "codex1", "gemini"]),
        (Wish(name="claude-work", policy="explicit"), 0, ["claude-work"]),
        (Wish(name="claude-work", policy="round-robin"), 0, ["claude-work"]),
        (Wish(name="codex"), 0, ["codex1", "gemini", "claude-work"]),
        (Wish(name="codex", policy="explicit"), 0, ["codex1"]),
        (Wish(name="pi"), 0, ["pi"]),
        (Wish(name="claude"), 0, ["claude-home", "claude-work", "codex1", "gemini"]),
        (Wish(name="claude"), 1, ["claude-work", "claude-home", "codex1", "gemini"]),
        (Wish(name="claude", policy="round-robin"), 2, ["claude-home", "claude-work"]),
        (Wish(tag="FAST"), 0, ["claude-home", "claude-work", "codex1", "gemini"]),
        (Wish(tag="fast", policy="tag-routed"), 1, ["claude-work", "claude-home"]),
        (Wish(tag="cheap", policy="round-robin"), 7, ["claude-home"]),
    ],
)
def test_who_is_tried(wish: Wish, turn: int, expected: list[str]) -> None:
    assert picked(wish, turn) == expected


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish(name="claude", policy="explicit"), "claude has 2 agents: claude-home, claude-work"),
        (Wish(name="claude", policy="failover"), "claude has 2 agents"),
        (Wish(tag="slow"), "no agent carries the tag 'slow'"),
        (Wish(name="codex1", tag="fast"), "exclude each other"),
        (Wish(tag="fast", policy="explicit"), "picks nobody by a tag"),
        (Wish(name="codex1", policy="tag-routed"), "needs a tag"),
    ],
)
def test_what_cannot_be_picked_is_said(wish: Wish, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        pool(wish, FLEET)


def test_who_cannot_be_called_does_not_take_turns() -> None:
    wish = Wish(name="claude", policy="round-robin")
    for turn in range(3):
        assert picked(wish, turn, claude_home="disabled") == ["claude-work"]
    assert not takes_turns(pool(wish, FLEET), stands(FLEET, claude_home="not installed"))
    assert takes_turns(pool(wish, FLEET), stands(FLEET, claude_home="not logged in"))


def told_of(wish: Wish, **statuses: Status) -> list[tuple[str, str]]:
    route = pick(pool(wish, FLEET), FLEET, stands(FLEET, **statuses))
    return [(each.agent, each.error.kind) for each in route.passed_over]


def test_one_that_is_not_installed_is_nobody_to_turn_to_and_is_told_of() -> None:
    wish = Wish(name="claude-work")
    assert picked(wish, codex1="not installed") == ["claude-work", "gemini"]
    assert told_of(wish, codex1="not installed") == [("codex1", "not_installed")]
    assert picked(wish, claude_work="not installed") == ["codex1", "gemini"]
    assert picked(wish, claude_work="cooling down", codex1="not installed", gemini="disabled") == [
        "claude-work"
    ]


def test_one_that_is_disabled_is_not_even_told_of() -> None:
    assert picked(Wish(name="claude-work"), codex1="disabled") == ["claude-work", "gemini"]
    assert told_of(Wish(name="claude-work"), codex1="disabled") == []


def test_a_pool_of_which_nobody_is_installed_is_followed_by_its_chains() -> None:
    nobody: dict[str, Status] = {"claude_home": "not installed", "claude_work": "not installed"}
    assert picked(Wish(name="claude"), **nobody) == ["codex1", "gemini"]
    with pytest.raises(NotInstalledError, match="claude-home is not installed"):
        picked(Wish(name="claude", policy="round-robin"), **nobody)
    with pytest.raises(NotInstalledError, match="claude-home is not installed"):
        picked(Wish(name="claude"), codex1="not installed", gemini="not installed", **nobody)


def test_a_single_one_that_is_not_installed_is_tried_and_tells() -> None:
    assert picked(Wish(name="pi"), pi="not installed") == ["pi"]


def test_a_named_one_that_cannot_be_called_is_an_error_that_says_why() -> None:
    wish = Wish(name="codex1", policy="explicit")
    with pytest.raises(NotInstalledError, match=r"codex1 is disabled \(why\)"):
        picked(wish, codex1="disabled")
    with pytest.raises(ConfigError, match="codex1 is unusable: why"):
        picked(wish, codex1="unusable")


def test_those_that_are_cooling_down_are_passed_over_and_told() -> None:
    route = pick(pool(Wish(name="claude-work"), FLEET), FLEET, stands(FLEET, claude_work="cooling down"))
    assert names(route) == ["codex1", "gemini"]
    assert [(each.agent, each.error) for each in route.passed_over] == [
        ("claude-work", Failure("rate_limit", "why"))
    ]


def test_one_that_is_unusable_is_passed_over_in_a_chain_and_told() -> None:
    route = pick(pool(Wish(name="claude-work"), FLEET), FLEET, stands(FLEET, codex1="unusable"))
    assert names(route) == ["claude-work", "gemini"]
    assert [each.agent for each in route.passed_over] == ["codex1"]


def test_who_comes_after_one_that_is_cooling_down_has_one_turn_only() -> None:
    three = roster(**{name: AgentConfig("claude") for name in "abc"})
    chosen = pool(Wish(name="claude", policy="round-robin"), three)
    firsts = [names(pick(chosen, three, stands(three, a="cooling down"), turn))[0] for turn in range(6)]
    assert firsts == ["b", "c"] * 3


def test_where_all_are_cooling_down_the_one_that_is_ready_first_goes_first() -> None:
    standings = {
        name: Standing(agent=FLEET.get(name), status="cooling down", until=until)
        for name, until in (("claude-home", 30.0), ("claude-work", 20.0))
    }
    route = pick(pool(Wish(name="claude", policy="round-robin"), FLEET), FLEET, standings)
    assert names(route) == ["claude-work", "claude-home"]
    assert route.passed_over == ()


def test_chains_go_on_and_never_in_a_circle() -> None:
    circle = roster(
        a=AgentConfig("claude", failover_to=("b", "c")),
        b=AgentConfig("codex", failover_to=("a", "d")),
        c=AgentConfig("pi", failover_to=("c",)),
        d=AgentConfig("gemini", failover_to=("b",)),
    )
    assert [agent.name for agent in chain([circle.get("a")], circle)] == ["a", "b", "d", "c"]


def test_a_chain_to_nobody_is_an_error_of_the_configuration() -> None:
    broken = roster(a=AgentConfig("claude", failover_to=("nobody",)))
    with pytest.raises(ConfigError, match=r"agents\.a\.failover_to: .*'nobody'"):
        pool(Wish(name="a"), broken)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("Bad Name", AgentConfig("claude"), r"agents\.Bad Name: "),
        ("a.b", AgentConfig("claude"), r"agents\.a\.b: "),
        ("a", AgentConfig("clade"), r"agents\.a\.runtime: .*'clade'"),
        ("codex", AgentConfig("claude"), r"agents\.codex: .*runtime"),
        ("a", AgentConfig("claude", tags=("",)), r"agents\.a\.tags"),
        ("a", AgentConfig("claude", home="relative/path"), r"agents\.a\.home"),
        ("a", AgentConfig("claude", home="~nobody-of-this-name/x"), r"agents\.a\.home"),
    ],
)
def test_an_agent_that_cannot_be_names_its_key(name: str, given: AgentConfig, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Roster(Herd(NOWHERE), {name: given}).get(name)


def test_a_runtimes_name_in_a_chain_stands_for_its_agents() -> None:
    fleet = roster(
        a=AgentConfig("pi", failover_to=("claude",)),
        b=AgentConfig("claude", failover_to=("codex",), sandbox="offline"),
        c=AgentConfig("claude"),
    )
    assert [agent.name for agent in chain([fleet.get("a")], fleet)] == ["a", "b", "c", "codex"]


def test_a_runtimes_name_is_its_only_agent() -> None:
    assert FLEET.get("codex").name == "codex1"
    assert FLEET.get("pi").name == "pi"
    with pytest.raises(UsageError, match="claude has 2 agents"):
        FLEET.get("claude")


def test_an_unknown_name_lists_the_others() -> None:
    with pytest.raises(NotFoundError) as caught:
        FLEET.get("nobody")
    assert "claude-home" in caught.value.hint


NAMES = ("a", "b", "c", "d")
AGENTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.builds(
            AgentConfig,
            st.sampled_from(("claude", "codex")),
            tags=st.lists(st.sampled_from(("x", "Y")), unique=True).map(tuple),
            failover_to=st.lists(st.sampled_from((*NAMES, "pi", "none")), max_size=3).map(tuple),
            disabled=st.booleans(),
        )
        for name in NAMES
    },
)
WISHES = st.builds(
    Wish,
    name=st.none() | st.sampled_from((*NAMES, "claude", "codex", "pi")),
    tag=st.none() | st.sampled_from(("x", "y", "z")),
    policy=st.sampled_from(get_args(Policy)),
).filter(lambda wish: wish.name is not None or wish.tag is not None)


@given(
    AGENTS, WISHES, st.lists(st.sampled_from(get_args(Status)), min_size=9, max_size=9), st.integers(0, 99)
)
def test_whatever_stands_how_the_answer_is_sound(
    agents: dict[str, AgentConfig], wish: Wish, statuses: list[Status], turn: int
) -> None:
    fleet = Roster(Herd(NOWHERE), agents)
    try:
        chosen = pool(wish, fleet)
        reachable = everyone(chosen, fleet)
        standings = {
            agent.name: Standing(agent=agent, status="disabled" if agent.disabled else status, until=1.0)
            for agent, status in zip(reachable, statuses, strict=False)
        }
        route = pick(chosen, fleet, standings, turn)
    except (UsageError, ConfigError, NotFoundError, NotInstalledError):
        return
    found = names(route)
    assert found, "a route has somebody on it"
    assert len(found) == len(set(found))
    assert set(found) <= {agent.name for agent in reachable}
    assert all(standings[name].status != "disabled" for name in found)
    passed = {each.agent for each in route.passed_over}
    assert not passed & set(found)
    assert all(standings[name].status not in ("callable", "not logged in", "disabled") for name in passed)
    able = [name for name in found if standings[name].status not in SKIPPED]
    assert able == found or (len(found) == 1 and standings[found[0]].status == "not installed")
    if wish.policy == "explicit":
        assert len(found) == 1


@given(st.integers(0, 1000))
def test_turns_are_shared_evenly(start: int) -> None:
    wish = Wish(name="claude", policy="round-robin")
    first = [picked(wish, turn)[0] for turn in range(start, start + 10)]
    assert first.count("claude-home") == first.count("claude-work") == 5


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_which_failures_lead_on(kind: ErrorKind) -> None:
    failure = Failure(kind, "")
    before = kind in ("rate_limit", "quota", "auth", "not_installed", "start_failed")
    middle = before or kind in ("crashed", "model", "protocol")
    assert goes_on(failure, answered=False, elsewhere=False) is before
    assert goes_on(failure, answered=True, elsewhere=False) is False
    assert goes_on(failure, answered=True, elsewhere=True) is middle
    assert not goes_on(None, answered=True, elsewhere=True)
