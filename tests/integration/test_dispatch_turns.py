"""Turns and cooldowns in the shared database, of both kinds: every process gets the next."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.postgres import SharedStore

from remuda.core import clock
from remuda.core.events import Failure
from remuda.operations.cooling import note_end
from remuda.operations.requests import RunRequest
from remuda.operations.routing import route
from remuda.operations.world import World, open_world

AGENTS = """
[agents.a]
runtime = "rehearsal"
tags = ["x"]
[agents.b]
runtime = "rehearsal"
tags = ["X"]
[agents.c]
runtime = "rehearsal"
failover_to = ["a"]
"""


def world(folder: Path, store: SharedStore, more: str = "") -> World:
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "config.toml").write_text(more + AGENTS)
    return open_world({"REMUDA_HOME": str(folder), "PATH": "/bin", **store.environ}, folder)


def firsts(here: World, times: int, **asked: str) -> Counter[str]:
    """Whose turn it was, asked from many threads at once."""
    request = RunRequest(prompt="hi", **asked)  # type: ignore[arg-type]
    with ThreadPoolExecutor(6) as pool:
        return Counter(pool.map(lambda _: route(here, request).candidates[0].name, range(times)))


def test_turns_are_even_however_many_ask(tmp_path: Path, shared_store: SharedStore) -> None:
    here = world(tmp_path, shared_store)
    assert firsts(here, 12, agent="rehearsal") == {"a": 4, "b": 4, "c": 4}
    assert firsts(here, 6, tag="x") == {"a": 3, "b": 3}


@pytest.mark.parametrize(
    ("mode", "asked", "expected"),
    [
        ("auto", {"tag": "x"}, ["a", "b"]),
        ("failover", {"tag": "x"}, ["a", "b"]),
        ("explicit", {"tag": "x"}, ["a", "b"]),
        ("tag-routed", {"agent": "c"}, ["c", "a"]),
        ("explicit", {"agent": "c"}, ["c"]),
        ("explicit", {"agent": "c", "policy": "failover"}, ["c", "a"]),
    ],
)
def test_a_configured_policy_gives_way_to_what_is_asked(
    tmp_path: Path, mode: str, asked: dict[str, str], expected: list[str]
) -> None:
    here = world(tmp_path, SharedStore(tmp_path, None, None), f'dispatch.mode = "{mode}"\n')
    way = route(here, RunRequest(prompt="hi", **asked))  # type: ignore[arg-type]
    assert [agent.name for agent in way.candidates] == expected


async def test_whoever_is_limited_is_passed_over_until_it_answers(
    tmp_path: Path, shared_store: SharedStore
) -> None:
    here = world(tmp_path, shared_store)
    limited = Failure("quota", "You are out of credit. Try again in 2 hours.")
    await note_end(here, here.roster.get("a"), limited)
    assert firsts(here, 4, tag="x") == {"b": 4}
    way = route(here, RunRequest(prompt="hi", agent="c"))
    assert [agent.name for agent in way.candidates] == ["c"]
    [passed] = way.passed_over
    assert (passed.agent, passed.error.kind) == ("a", "quota")
    until = passed.error.message.partition("until ")[2].partition(": ")[0]
    assert 7000 < clock.seconds(until) - clock.now() < 7300
    await note_end(here, here.roster.get("a"), None)
    assert firsts(here, 4, tag="x") == {"a": 2, "b": 2}
