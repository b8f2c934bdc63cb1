"""What the runtimes declare about their places, and where those are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.runtimes import registry
from remuda.runtimes.base import Runtime
from remuda.runtimes.cell import Place
from remuda.runtimes.openclaw.cell import GATEWAY

HOME = Path("/users/someone")
HOST = re.compile(r"\.?[a-z0-9-]+(\.[a-z0-9-]+)+")
RUNTIMES = [*registry.all_runtimes()]
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)
def test_every_runtime_says_what_it_needs(runtime: Runtime) -> None:
    cell = runtime.cell
    assert cell.state
    assert runtime.built_in or cell.hosts
    assert all(HOST.fullmatch(host) for host in cell.hosts)


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)
def test_no_place_is_the_home_itself(runtime: Runtime) -> None:
    for place in (*runtime.cell.state, *runtime.cell.reads, *runtime.cell.private):
        path = place.at({"HOME": str(HOME)})
        assert (path is None) == (place.usual is None)
        assert path is None or HOME in path.parents
        assert ".." not in f"{place.usual}/{place.below}".split("/")
        assert place.blank is None or place.kind == "file"


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)
def test_a_home_of_its_own_is_where_everything_is(runtime: Runtime) -> None:
    """An agent with a home of its own does not get to see the one that others of its kind use."""
    if runtime.home_variable is None:
        return
    environ = {"HOME": str(HOME), runtime.home_variable: "/elsewhere"}
    named = [place for place in runtime.cell.state if place.variable == runtime.home_variable]
    assert named
    for place in named:
        path = place.at(environ)
        assert path is not None
        assert path.is_relative_to("/elsewhere")


def test_a_variable_wins_and_a_tilde_is_understood() -> None:
    place = Place(".config", "BASE", "below")
    assert place.at({"HOME": "/h"}) == Path("/h/.config/below")
    assert place.at({"HOME": "/h", "BASE": ""}) == Path("/h/.config/below")
    assert place.at({"HOME": "/h", "BASE": "/b"}) == Path("/b/below")
    assert place.at({"HOME": "/h", "BASE": "~/b"}) == Path("/h/b/below")
    assert Place(None, "BASE", "below").at({"HOME": "/h"}) is None
    assert Place(".own").at({"HOME": "relative"}) is None
    assert Place(".own").at({}) is None


@given(home=names, named=names)
def test_a_place_is_absolute_or_nowhere(home: str, named: str) -> None:
    path = Place(".own", "BASE", "below").at({"HOME": home, "BASE": named})
    assert path is None or path.is_absolute()


def test_work_that_is_done_elsewhere_is_objected_to() -> None:
    """OpenClaw's connection is a bridge to the user's gateway, unless the session has one of its own."""
    objection = registry.get("openclaw").cell.objection
    assert objection(("/bin/openclaw", "acp"))
    assert objection(("/bin/python", "-I", str(GATEWAY), "config", "/bin/openclaw", "--", "acp")) is None
    assert objection(("/bin/openclaw", "agent", "exec", "--json")) is None
