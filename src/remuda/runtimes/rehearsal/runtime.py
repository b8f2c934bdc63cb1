"""The rehearsal agent: built in, needs no account, no network and no model."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from remuda import __version__
from remuda.runtimes.base import (
    PROMPT,
    PROMPT_FILE,
    Channel,
    Conduct,
    Feature,
    Invocation,
    Runtime,
    Turn,
    system_prompt_files,
)
from remuda.runtimes.rehearsal.stream import parser


def _mode(turn: Turn) -> str:
    if turn.access == "read":
        return "read-only"
    return "bypass" if turn.permission == "bypass" and turn.access is None else "default"


def _invocation(turn: Turn, *leading: str) -> Invocation:
    arguments = [*leading, "--resume" if turn.resume else "--session-id", turn.session]
    arguments += ["--permission-mode", _mode(turn)]
    if turn.model:
        arguments += ["--model", turn.model]
    prompts, files = system_prompt_files(turn)
    env = (
        {}
        if turn.endpoint is None
        else {"REHEARSAL_BASE_URL": turn.endpoint, "REHEARSAL_API_KEY": "rehearsal"}
    )
    return Invocation(arguments=(*arguments, *prompts, *turn.extra), env=env, files=files)


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream."""
    return _invocation(turn, "-p", "--output-format", "stream-json")


def spawn_command(turn: Turn) -> Invocation:
    """A plain read-and-answer loop on the terminal."""
    return _invocation(turn)


def locate(_binary: str, _environ: Mapping[str, str]) -> tuple[str, ...]:
    """It is a module of ours, always there."""
    return (sys.executable, "-I", "-m", "remuda.rehearsal.agent")


RUNTIME = Runtime(
    name="rehearsal",
    title="Rehearsal agent",
    binary="remuda.rehearsal.agent",
    install="built in",
    verified_version=__version__,
    minimum_version=__version__,
    stability="verified",
    channels=(
        Channel("stdin", (), __version__),
        Channel("tempfile", ("--prompt-file", PROMPT_FILE), __version__),
        Channel("argv", ("--", PROMPT), __version__, on_request=True),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    parser=parser,
    locate=locate,
    built_in=True,
    environment=("REHEARSAL_*",),
    conduct=Conduct(builder_writes=False),
    home_variable="REHEARSAL_HOME",
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "as Claude Code's"),
        "connection": Feature("no"),
        "resume": Feature("verified", "the session id can be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("no"),
    },
)
