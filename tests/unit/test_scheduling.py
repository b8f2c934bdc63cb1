"""What a worker decides about a task that another one had begun, and about itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remuda.dispatch.tasks.model import Attempt, Claimed, Held, Phase, Task
from remuda.dispatch.tasks.scheduling import TAKEOVERS, beat, course, fenced, last_moment, moment

PHASES: tuple[Phase, ...] = ("claimed", "starting", "answering", "ended")


def claimed(phases: list[Phase], takeovers: int) -> Claimed:
    attempts = tuple(
        Attempt(task="T", number=number, agent="a", worker=f"w{number}", phase=phase, began_at=0.0)
        for number, phase in enumerate(phases, 1)
    )
    task = Task(
        id="T", state="running", prompt="p", request="{}", created_at=0.0, takeovers=takeovers, worker="w"
    )
    return Claimed(task, Held("T", "w", len(phases) + 1), attempts)


@given(st.lists(st.sampled_from(PHASES), max_size=5), st.integers(0, 6), st.booleans())
def test_only_what_certainly_was_never_begun_is_begun(
    phases: list[Phase], takeovers: int, resumable: bool
) -> None:
    chosen = course(claimed(phases, takeovers), resumable)
    untouched = all(phase == "claimed" for phase in phases)
    assert (chosen.way == "fresh") == untouched
    if chosen.way == "resume":
        assert resumable
        assert takeovers <= TAKEOVERS
        assert chosen.earlier is not None
        assert chosen.earlier.phase != "claimed"
    if chosen.way == "give_up":
        assert chosen.reason


def test_the_session_of_the_last_agent_is_the_one_to_go_on_with() -> None:
    chosen = course(claimed(["ended", "answering", "claimed"], 1), resumable=True)
    assert chosen.earlier is not None
    assert chosen.earlier.number == 2


@given(st.floats(2, 3600))
def test_a_worker_ends_its_agents_before_others_believe_it_dead(lease: float) -> None:
    assert not fenced(beat(lease) * 2, lease)
    assert fenced(lease * 0.75, lease)
    assert last_moment(lease) + moment(lease, 0) < lease
    assert moment(lease, lease) >= lease / 3
