"""Who calls whom: chains as text, circles, depth."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.environment import ORIGIN
from remuda.dispatch.origin import Link, SelfDispatchError, check, here, joined, parsed, written
from remuda.runtimes import registry

WORDS = st.text("abcdefghij0123456789-_", min_size=1, max_size=12)
CHAINS = st.lists(st.builds(Link, WORDS, WORDS), max_size=5).map(tuple)
CLAUDE = registry.get("claude")


@given(CHAINS)
def test_a_chain_survives_its_text(chain: tuple[Link, ...]) -> None:
    assert parsed(written(chain)) == chain


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    assert all(link.agent or link.session or ":" in text for link in parsed(text))


@given(st.lists(CHAINS, max_size=4))
def test_nobody_of_any_chain_is_forgotten(chains: list[tuple[Link, ...]]) -> None:
    found = joined(map(written, chains))
    assert set(found) == {link for chain in chains for link in chain}
    assert found[len(found) - max(map(len, chains), default=0) :] in (*chains, ())


def test_those_within_each_other_are_one_chain() -> None:
    assert joined(["a:1/b:2", "a:1", "", "a:1/b:2"]) == parsed("a:1/b:2")
    assert joined(["x:1/y:1", "a:1"]) == parsed("a:1/x:1/y:1")


@pytest.mark.parametrize(
    ("chain", "agent", "environ", "nested", "refused"),
    [
        ("", "claude", {}, False, None),
        ("codex:1", "claude", {}, False, None),
        ("claude:1", "claude", {}, False, "would loop"),
        ("claude:1/codex:2", "claude", {}, False, "would loop"),
        ("claude:1", "claude", {}, True, None),
        ("claude-work:1", "claude", {}, False, None),
        ("", "claude", {"CLAUDE_CODE_SESSION_ID": "x"}, False, "would loop"),
        ("", "claude", {"CLAUDE_CODE_SESSION_ID": ""}, False, None),
        ("", "claude", {"CLAUDECODE": "1"}, False, None),
        ("", "claude", {"CODEX_THREAD_ID": "x"}, False, None),
        ("", "claude-work", {"CLAUDE_CODE_SESSION_ID": "x"}, False, "would loop"),
        ("", "claude", {"CLAUDE_CODE_SESSION_ID": "x"}, True, None),
        ("a:1/b:2/c:3", "claude", {}, False, "3 agents have called each other already"),
        ("a:1/b:2/c:3", "claude", {}, True, "3 agents have called each other already"),
    ],
)
def test_circles_and_depth(
    chain: str, agent: str, environ: dict[str, str], nested: bool, refused: str | None
) -> None:
    def look() -> None:
        check(parsed(chain), agent, CLAUDE, environ, most=3, nested=nested)

    if refused is None:
        look()
        return
    with pytest.raises(SelfDispatchError, match=refused) as caught:
        look()
    assert caught.value.exit_code == 5


@pytest.mark.parametrize("name", [runtime.name for runtime in registry.all_runtimes() if runtime.within])
def test_every_runtime_that_marks_its_sessions_is_recognised(name: str) -> None:
    runtime = registry.get(name)
    for variable in runtime.within:
        assert any(
            variable == marker or variable.startswith(marker.rstrip("*")) for marker in runtime.nested_markers
        ), "an agent's own children must not take it over"
        with pytest.raises(SelfDispatchError):
            check((), name, runtime, {variable: "1"}, most=3, nested=False)


def test_an_agent_that_keeps_it_from_its_tools_is_found_above_them() -> None:
    """Three processes: one with the chain, a shell without any environment, and the one that asks."""
    code = "import os; from remuda.dispatch.origin import here, written; print(written(here(os.environ)))"
    inner = f'exec env -i {sys.executable} -c "{code}"'
    ended = subprocess.run(
        ["sh", "-c", f"env -i sh -c '{inner}; true'; true"],
        env={"PATH": os.environ["PATH"], ORIGIN: "claude:1/codex:2"},
        capture_output=True,
        text=True,
    )
    assert ended.stdout.strip() == "claude:1/codex:2", ended.stderr


def test_what_a_request_brings_along_counts_as_well() -> None:
    assert here({ORIGIN: "a:1"}, "a:1/b:2") == (Link("a", "1"), Link("b", "2"))
