"""The gate's order, and what may never be left out of it."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.dispatch.gate import CHECKS, Check, Look, Objection, danger, first_objection


def looks(failing: set[Check], seen: list[Check]) -> dict[Check, Look]:
    def look(check: Check) -> Look:
        def at_it() -> Objection | None:
            seen.append(check)
            return Objection(check) if check in failing else None

        return at_it

    return {check: look(check) for check in CHECKS}


def test_the_order_is_the_documented_one() -> None:
    assert CHECKS == ("danger", "sandbox", "secrets", "capability", "limits", "trust")


@pytest.mark.parametrize(("first", "second"), [*combinations(CHECKS, 2)])
def test_of_two_objections_the_first_counts_and_nothing_behind_it_is_looked_at(
    first: Check, second: Check
) -> None:
    seen: list[Check] = []
    assert first_objection(looks({first, second}, seen)) == Objection(first)
    assert seen == [*CHECKS[: CHECKS.index(first) + 1]]


@given(st.sets(st.sampled_from(CHECKS)), st.sets(st.sampled_from(CHECKS)))
def test_only_what_is_wholly_in_order_passes(failing: set[Check], missing: set[Check]) -> None:
    given_looks = {check: look for check, look in looks(failing, []).items() if check not in missing}
    assert (first_objection(given_looks) is None) == (not failing and not missing)


@pytest.mark.parametrize(
    ("profile", "confirmed", "passes"),
    [
        (None, False, True),
        ("workspace", False, True),
        ("danger-full-access", True, True),
        ("danger-full-access", False, False),
        ("Danger-Full-Access", False, False),
    ],
)
def test_danger_needs_a_word_of_its_own(profile: str | None, confirmed: bool, passes: bool) -> None:
    objection = danger(profile, confirmed)
    assert (objection is None) is passes
    if objection is not None:
        assert objection.message == (
            "--sandbox danger-full-access requires --unsafe-yes confirmation. "
            "This profile bypasses all sandbox restrictions."
        )
