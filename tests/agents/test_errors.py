"""Every way a model endpoint fails gives the same error kind, soon, whatever the runtime's own patience."""

from __future__ import annotations

import socket

import pytest
from tests.agents.lab import Ended, Lab

from remuda.core.errors import ErrorKind, exit_code_for

SECRET = "keep-this-out-of-errors"
SOON = 10.0
SHORT_PATIENCE = "run.retry_patience = 1.5"
KINDS: dict[str, ErrorKind] = {
    "rehearse-401": "auth",
    "rehearse-429": "rate_limit",
    "rehearse-overloaded": "model",
}


def check_failure(lab: Lab, ended: Ended, kind: ErrorKind) -> None:
    """The right kind and exit code, within 10 seconds, and not a word of the prompt."""
    error = ended.result.error
    assert error is not None
    assert error.kind == kind, error
    assert error.message.strip()
    assert SECRET not in error.message + ended.stderr
    assert ended.result.stop_reason == "error"
    assert ended.code == exit_code_for(kind)
    assert ended.seconds < lab.within(SOON)


@pytest.mark.parametrize("word", KINDS)
def test_a_failing_model(lab: Lab, word: str) -> None:
    lab.rehearse("errors")
    lab.configure(SHORT_PATIENCE)
    check_failure(lab, lab.run(f"{word} {SECRET}"), KINDS[word])


def test_an_answer_that_breaks_off(lab: Lab) -> None:
    lab.rehearse("errors")
    lab.configure(SHORT_PATIENCE)
    ended = lab.run(f"rehearse-drop {SECRET}")
    if lab.runtime.conduct.drop == "fails":
        check_failure(lab, ended, "model")
    else:
        assert len(lab.prompts()) > 1
        assert ended.seconds < lab.within(SOON)


def test_a_used_up_quota(lab: Lab) -> None:
    lab.rehearse("errors")
    lab.configure(SHORT_PATIENCE)
    check_failure(lab, lab.run(f"rehearse-quota {SECRET}"), lab.runtime.conduct.quota)


def test_a_broken_model_with_the_usual_patience(lab: Lab) -> None:
    """Agents retry this one longest."""
    lab.rehearse("errors")
    check_failure(lab, lab.run(f"rehearse-500 {SECRET}"), "model")


def test_nobody_listens_with_the_usual_patience(lab: Lab) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        lab.env["REMUDA_ENDPOINT"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
        check_failure(lab, lab.run(f"Hello. {SECRET}"), "model")


def test_one_failure_is_got_over(lab: Lab) -> None:
    lab.rehearse("errors")
    ended = lab.run("rehearse-recover")
    assert ended.code == 0, ended.stderr
    assert ended.result.text == "Recovered after one failure."
