"""How a turn is judged when its process has ended by itself."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import ErrorKind
from remuda.core.events import Failure, Usage
from remuda.core.processes import exit_status, killed_by
from remuda.runtimes.base import TurnState
from remuda.sessions.headless import conclude


def test_a_final_word_and_a_zero_exit_are_a_success() -> None:
    state = TurnState(
        session="s", model="m", text="done", usage=Usage(1, 2), cost_usd=0.5, stop_reason="max_tokens"
    )
    result = conclude(state, 0, "noise on stderr")
    assert result.error is None
    assert (result.stop_reason, result.text, result.exit_code) == ("max_tokens", "done", 0)
    assert (result.usage, result.cost_usd, result.model) == (Usage(1, 2), 0.5, "m")
    assert result.runtime_session == "s"


def test_a_failure_that_was_told_is_the_verdict_whatever_the_exit_code() -> None:
    told = Failure("quota", "no more")
    for code in (0, 1, -9):
        result = conclude(TurnState(stop_reason="end_turn", failure=told), code, "401")
        assert (result.error, result.stop_reason) == (told, "error")


def test_trouble_that_was_not_got_over_is_the_verdict() -> None:
    trouble = Failure("rate_limit", "slow down")
    assert conclude(TurnState(session="s", trouble=trouble), 1, "").error == trouble


def test_an_answer_of_a_program_that_failed_afterwards_is_no_success() -> None:
    result = conclude(TurnState(session="s", text="done", stop_reason="end_turn"), 1, "hook failed")
    assert result.error is not None
    assert (result.error.kind, result.text) == ("crashed", "done")


@pytest.mark.parametrize(
    ("code", "session", "stderr", "kind", "told"),
    [
        (0, None, "", "protocol", "ended without a result"),
        (0, "s", "", "protocol", "ended without a result"),
        (3, None, "bad flag", "start_failed", "(exit code 3): bad flag"),
        (3, None, "", "start_failed", "it gave no reason"),
        (1, None, "first\nInvalid API key", "auth", "Invalid API key"),
        (3, "s", "boom", "crashed", "(exit code 3): boom"),
        (255, "s", "", "crashed", "(exit code 255)"),
        (1, "s", "429 Too Many Requests", "rate_limit", "Too Many"),
        (-signal.SIGSEGV, "s", "", "crashed", "killed by signal 11"),
        (-signal.SIGKILL, None, "", "crashed", "killed by signal 9"),
        (128 + signal.SIGTERM, "s", "", "crashed", "killed by signal 15"),
    ],
)
def test_a_program_without_a_final_word(
    code: int, session: str | None, stderr: str, kind: ErrorKind, told: str
) -> None:
    result = conclude(TurnState(session=session), code, stderr)
    assert result.error is not None
    assert result.error.kind == kind
    assert told in result.error.message
    assert result.stop_reason == "error"
    assert result.exit_code == exit_status(code)


@given(st.integers(-64, 255), st.text(), st.booleans())
def test_there_is_always_a_verdict(code: int, stderr: str, started: bool) -> None:
    result = conclude(TurnState(session="s" if started else None), code, stderr)
    assert result.error is not None
    assert result.error.message


@pytest.mark.parametrize(
    ("code", "status", "number"), [(0, 0, None), (1, 1, None), (-9, 137, 9), (130, 130, 2)]
)
def test_exit_statuses_speak_of_signals_as_a_shell_does(code: int, status: int, number: int | None) -> None:
    assert exit_status(code) == status
    assert killed_by(status) == number


def test_a_status_beyond_the_signals_is_the_programs_own() -> None:
    assert killed_by(128) is None
    assert killed_by(255) is None
