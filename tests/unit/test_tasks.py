"""What tasks are, without a database: states, requests as they are kept, and what an end means to scripts."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from remuda.core.errors import ErrorKind, RefusedError, UsageError
from remuda.core.events import Failure, Result
from remuda.dispatch.tasks.model import FINAL, STEPS, Attempt, Phase, TaskState, begun, may_become
from remuda.operations.agentsecrets import may_be_secret
from remuda.operations.requests import RunRequest
from remuda.operations.task.requests import Seconds, TaskShown, check, cwd_of, packed, unpacked
from remuda.surfaces.cli.tasknames import exit_code_of

TEXT = st.text(st.characters(exclude_categories=("Cs",)))
REQUESTS = st.builds(
    RunRequest,
    prompt=TEXT,
    agent=st.none() | TEXT,
    permission=st.sampled_from(["ask", "bypass"]),
    cwd=st.none() | st.just(Path("/somewhere/else")),
    worktree=st.none() | st.just(Path("/a b/ü")),
    timeout=st.none() | st.floats(0, 1e6),
    env=st.dictionaries(TEXT, TEXT),
    extra=st.lists(TEXT).map(tuple),
    nested=st.booleans(),
    isolated=st.booleans(),
)


def attempt(number: int, phase: Phase) -> Attempt:
    return Attempt(task="t", number=number, agent="a", worker="w", phase=phase, began_at=0.0)


def shown(state: TaskState, error: Failure | None = None, result: Result | None = None) -> TaskShown:
    given = {field.name: None for field in msgspec.structs.fields(TaskShown)}
    return TaskShown(**{**given, "state": state, "error": error, "result": result})


@given(REQUESTS)
def test_a_request_is_kept_whole_and_its_prompt_apart(request: RunRequest) -> None:
    text = packed(request)
    assert unpacked(request.prompt, text) == request
    assert cwd_of(text) == (str(request.cwd) if request.cwd else None)
    assert msgspec.json.decode(text)["prompt"] == ""


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError):
        packed(RunRequest(prompt="p", model="\udc80"))


def test_every_step_is_known_and_ends_are_final() -> None:
    assert set(STEPS) > FINAL
    for state, steps in STEPS.items():
        assert bool(steps) == (state not in FINAL)
        assert not may_become(state, state)


@given(st.lists(st.sampled_from(["claimed", "starting", "answering", "ended"])))
def test_what_was_begun_is_the_last_that_was_not_only_claimed(phases: list[Phase]) -> None:
    attempts = tuple(attempt(number, phase) for number, phase in enumerate(phases, 1))
    last = begun(attempts)
    rest = phases[last.number :] if last else phases
    assert set(rest) <= {"claimed"}
    assert last is None or last.phase != "claimed"


@pytest.mark.parametrize(
    ("state", "kind", "code"),
    [
        ("succeeded", None, 0),
        ("failed", "model", 1),
        ("failed", "timeout", 3),
        ("failed", "refused", 5),
        ("failed", "not_installed", 6),
        ("cancelled", "cancelled", 130),
        ("interrupted", "crashed", 1),
        ("interrupted", None, 1),
        ("expired", "timeout", 3),
    ],
)
def test_an_end_has_an_exit_code(state: TaskState, kind: ErrorKind | None, code: int) -> None:
    error = Failure(kind, "why") if kind else None
    assert exit_code_of(shown(state, error)) == code
    if error:
        assert exit_code_of(shown(state, error, Result.failed(error))) == code


def test_an_agent_that_was_shot_gives_its_signal() -> None:
    failure = Failure("crashed", "it was killed")
    result = msgspec.structs.replace(Result.failed(failure), exit_code=137)
    assert exit_code_of(shown("failed", failure, result)) == 137


@pytest.mark.parametrize("name", ["API_KEY", "my_token", "X_SECRET_Y", "REMUDA_DATABASE_URL", "pgpassword"])
def test_names_that_may_be_secret(name: str) -> None:
    assert may_be_secret([name, "LANG"]) == [name]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "1", True])
def test_numbers_that_are_none(value: object) -> None:
    with pytest.raises(UsageError) as raised:
        check("expires", Seconds | None, value)
    assert not isinstance(raised.value, RefusedError)
