"""The rehearsal agent: built in, needs no account, no network and no model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from remuda import __version__
from remuda.runtimes.base import (
    PROMPT,
    PROMPT_FILE,
    Channel,
    Connect,
    Connection,
    Feature,
    Guarding,
    Invocation,
    Permission,
    Runtime,
    Turn,
    system_prompt_files,
)
from remuda.runtimes.places import lies_below
from remuda.runtimes.rehearsal.cell import CELL
from remuda.runtimes.rehearsal.hooks import WIRING
from remuda.runtimes.rehearsal.stream import parser
from remuda.runtimes.rehearsal.usage import TRANSCRIPTS

_CONVERSATION = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")


def _invocation(turn: Turn, permission: Permission, *leading: str) -> Invocation:
    arguments = [*leading, "--resume" if turn.resume else "--session-id", turn.session]
    arguments += ["--permission-mode", "bypass" if permission == "bypass" else "default"]
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
    return _invocation(turn, turn.permission, "-p", "--output-format", "stream-json")


def guarded_command(turn: Turn) -> Invocation:
    """One turn over a connection, in the mode that asks. The folder's settings do not count."""
    return _invocation(turn, "ask", *_CONVERSATION, "--setting-sources", "user")


def connect_command(turn: Turn) -> Invocation:
    """Several turns over a connection."""
    return _invocation(turn, turn.permission, *_CONVERSATION)


def connection(turn: Turn) -> Connection:
    """The usual stream, and the guard's answers."""
    from remuda.runtimes.control import ControlConnection

    return ControlConnection(turn, lambda: parser(turn, ""))


def objection(turn: Turn) -> str | None:
    """Whether the folder speaks as the user."""
    home = turn.environ.get("REHEARSAL_HOME") or Path(turn.environ.get("HOME") or "/", ".rehearsal")
    file = Path(home, "settings.json")
    if file.exists() and lies_below(file, turn.cwd):
        return f"the user's settings of the rehearsal agent, {file}, lie in the folder that is worked on"
    return None


def spawn_command(turn: Turn) -> Invocation:
    """A plain read-and-answer loop on the terminal."""
    return _invocation(turn, turn.permission)


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
    connect=Connect(
        protocol="stream-json",
        command=connect_command,
        connection=connection,
        acknowledges="the hook for prompts, before the model is called",
        verified=__version__,
    ),
    parser=parser,
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel("connection", (), __version__),
        objection=objection,
    ),
    wiring=WIRING,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    locate=locate,
    built_in=True,
    environment=("REHEARSAL_*",),
    keys=(("REHEARSAL_API_KEY",),),
    home_variable="REHEARSAL_HOME",
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "as Claude Code's"),
        "connection": Feature("verified", "as Claude Code's"),
        "resume": Feature("verified", "the session id can be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("no"),
    },
)
