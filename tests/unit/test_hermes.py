"""What Hermes is told to do and to leave, and what its log says about the model."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import RefusedError, UsageError
from remuda.core.events import Failure
from remuda.runtimes.base import Invocation, Turn, TurnState
from remuda.runtimes.hermes.runtime import disarm, print_command, spawn_command
from remuda.runtimes.hermes.stream import hear, model

TURN = Turn(cwd=Path("/work"), scratch=Path("/scratch"), keep=Path("/keep"), session="s")
LOG = b"2026-11-15 20:15:02 [WARNING] agent.conversation_loop: "


def turn(**changes: object) -> Turn:
    return msgspec.structs.replace(TURN, **changes)


def written(invocation: Invocation) -> tuple[dict[str, object], str]:
    """The configuration and the variables that are laid over the user's own."""
    config, variables = invocation.files
    assert (config.name, variables.name) == ("config.yaml", ".env")
    return json.loads(config.content), variables.content


def test_a_bypass_needs_no_configuration_of_its_own() -> None:
    assert print_command(turn(permission="bypass")) == Invocation(
        arguments=("acp",), env={"HERMES_YOLO_MODE": "1"}
    )


@pytest.mark.parametrize("changes", [{}, {"access": "read"}, {"access": "read", "permission": "bypass"}])
def test_without_leave_nothing_is_run_or_written(changes: dict[str, object]) -> None:
    invocation = print_command(turn(**changes))
    config, variables = written(invocation)
    assert config["approvals"] == {"mode": "manual", "deny": ["*"]}
    assert "HERMES_YOLO_MODE='0'\n" in variables
    assert "HERMES_WRITE_SAFE_ROOT='/dev/null'\n" in variables
    assert ("HERMES_SAFE_MODE" in variables) == ("access" in changes)
    assert invocation.env["HERMES_MANAGED_DIR"] == "/scratch"
    assert "HERMES_HOME" not in invocation.env


def test_a_builder_writes_below_its_folder() -> None:
    assert "HERMES_WRITE_SAFE_ROOT='/work'\n" in written(print_command(turn(access="workspace")))[1]


@pytest.mark.parametrize("cwd", ["/a:/", "/it's", "/a\n", "/${HOME}", "/a\\"])
def test_a_folder_whose_name_would_mean_something_else_is_refused(cwd: str) -> None:
    with pytest.raises(RefusedError):
        print_command(turn(cwd=Path(cwd), access="workspace"))


def test_an_endpoint_has_a_home_of_its_own() -> None:
    invocation = print_command(turn(endpoint="http://127.0.0.1:1", permission="bypass", model="m"))
    config, _ = written(invocation)
    assert config["model"] == {
        "provider": "custom",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key": "remuda-endpoint-key",
        "default": "m",
        "context_length": 200_000,
    }
    assert invocation.env["HERMES_HOME"] == "/keep"
    assert invocation.keeps


def test_instructions_are_added_but_not_replaced() -> None:
    config, _ = written(print_command(turn(append_system_prompt="Be brief.")))
    assert config["agent"] == {"environment_hint": "Be brief."}
    with pytest.raises(UsageError):
        print_command(turn(system_prompt="Be brief."))


def test_a_person_answers_for_themselves() -> None:
    assert spawn_command(turn(resume=True)) == Invocation(arguments=("--resume", "s"))


@pytest.mark.parametrize("prompt", ["/help", " \n/reset all"])
def test_a_command_is_only_text(prompt: str) -> None:
    assert disarm(prompt) == f"Task: {prompt}"
    assert disarm(f"Say {prompt}") == f"Say {prompt}"


def heard(*lines: bytes) -> TurnState:
    state = TurnState()
    for line in lines:
        hear(state, line)
    return state


TROUBLE = LOG + b"API call failed (attempt 1/3) error_type=X model=m summary=HTTP 500: Oh no"


def test_the_log_tells_of_trouble_and_of_its_end() -> None:
    assert heard(TROUBLE).trouble == Failure("model", "HTTP 500: Oh no")
    assert heard(TROUBLE, LOG + b"API call #1: model=m provider=custom in=1 out=2").trouble is None
    final = heard(LOG + b"Non-retryable client error: Error code: 401 - \xff").failure
    assert final is not None
    assert final.kind == "auth"


def test_what_a_prompt_says_is_not_taken_for_the_log() -> None:
    quoted = b"2026-11-15 20:15:02 [INFO] acp_adapter.server: Prompt on session s: API call failed (attempt 1"
    state = heard(quoted, b"Non-retryable client error: 401")
    assert state.trouble is state.failure is None


def test_a_model_is_named_without_its_provider() -> None:
    assert [model(name) for name in ("custom:m-1", "openrouter:a/b:free", "plain")] == [
        "m-1",
        "a/b:free",
        "plain",
    ]
