"""Hermes: declaration and commands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from remuda.core.errors import RefusedError, UsageError
from remuda.runtimes import providers
from remuda.runtimes.base import (
    Channel,
    Conduct,
    Connect,
    Feature,
    Guard,
    Guarding,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.hermes import guarded, plugin
from remuda.runtimes.hermes.cell import CELL
from remuda.runtimes.hermes.hooks import WIRING
from remuda.runtimes.hermes.stream import parser
from remuda.runtimes.hermes.usage import TRANSCRIPTS
from remuda.runtimes.login import ANY_KEY, OTHERS, Logins

VERSION = "0.19.0"
_ADMINISTRATED = Path("/etc/hermes")
_NOWHERE = "/dev/null"
_MODEL = "gpt-5.4"

_PLAIN_PATH = re.compile(r"/[^'\\$\n]*")
"""A path that means itself in an env file."""

_BOUNDS: dict[str, object] = {
    "approvals": {"mode": "manual", "deny": ["*"]},
    "command_allowlist": [],
    "memory": {"write_approval": True},
    "skills": {"write_approval": True},
}
"""No shell command at all: Hermes asks about dangerous ones only. What it learns waits for a person."""

_GUARDED: dict[str, object] = {
    **_BOUNDS,
    "approvals": {"mode": "manual"},
    "delegation": {"subagent_auto_approve": False},
    "plugins": {"enabled": [], "disabled": []},
}
"""Every tool asks by our plugin, and no other plugin is loaded."""

_ASKING = {
    **dict.fromkeys(("HERMES_YOLO_MODE", "HERMES_EXEC_ASK", "HERMES_SAFE_MODE"), "0"),
    **dict.fromkeys(("HERMES_GATEWAY_SESSION", "HERMES_CRON_SESSION"), "0"),
    "HERMES_ENABLE_PROJECT_PLUGINS": "0",
    "HERMES_ACCEPT_HOOKS": "0",
}
"""What would keep plugins out, answer for the user, or ask elsewhere than over the connection."""


def _endpoint(turn: Turn) -> dict[str, object]:
    """Another model endpoint: nothing is looked up, downloaded or asked for besides, nor is the machine
    explored, which takes a second."""
    return {
        "model": {
            "provider": "custom",
            "base_url": f"{turn.endpoint}/v1",
            "api_key": "remuda-endpoint-key",
            "default": turn.model or _MODEL,
            "context_length": 200_000,
        },
        "auxiliary": {"title_generation": {"enabled": False}},
        "security": {"tirith_enabled": False, "allow_lazy_installs": False},
    }


def _config(turn: Turn, bounds: Mapping[str, object]) -> dict[str, object]:
    """What this turn sets aside of the user's configuration, which stays untouched."""
    config = dict(bounds)
    if turn.endpoint is not None:
        config |= _endpoint(turn)
    elif turn.model:
        config["model"] = {"default": turn.model}
    if agent := _agent(turn):
        config["agent"] = agent
    return config


def _agent(turn: Turn) -> dict[str, object]:
    """Additional instructions go where an embedder describes the surroundings: into the system prompt."""
    agent: dict[str, object] = {} if turn.endpoint is None else {"environment_probe": False}
    if turn.append_system_prompt is not None:
        agent["environment_hint"] = turn.append_system_prompt
    return agent


class _Bounds(msgspec.Struct, frozen=True):
    """What holds a turn: settings, variables that hold in the whole process, and files."""

    config: Mapping[str, object] = {}
    variables: Mapping[str, str] = {}
    files: tuple[ScratchFile, ...] = ()


def _refusing() -> _Bounds:
    """Nobody is there to be asked, so that nothing runs that asks."""
    variables = {"HERMES_YOLO_MODE": "0", "HERMES_EXEC_ASK": "1", "HERMES_WRITE_SAFE_ROOT": _NOWHERE}
    return _Bounds(_BOUNDS, variables)


def _guarded(turn: Turn, guard: Guard) -> _Bounds:
    """Our plugin in the place of those that come with Hermes, where no setting of the user's reaches."""
    place = str(turn.scratch / plugin.FOLDER)
    if not _PLAIN_PATH.fullmatch(place):
        raise RefusedError(
            "Hermes cannot be guarded from a folder with such a name",
            "Set REMUDA_HOME or XDG_RUNTIME_DIR to one without quote, backslash and dollar sign.",
        )
    variables = {**_ASKING, "HERMES_BUNDLED_PLUGINS": place}
    return _Bounds(_GUARDED, variables, plugin.files(turn, guard.note))


def _invocation(turn: Turn, arguments: tuple[str, ...], bounds: _Bounds) -> Invocation:
    """The command in a configuration of its own, laid over the user's as an administrator's would be."""
    if turn.system_prompt is not None:
        raise UsageError(
            "Hermes has no way to replace its system prompt for one run",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    config = _config(turn, bounds.config)
    env = dict(bounds.variables)
    files = bounds.files
    if config:
        if _ADMINISTRATED.is_dir():
            raise RefusedError(
                f"the rules in {_ADMINISTRATED} leave no room for this run's own",
                "Leave out the model, the capability and the endpoint, and use --permission bypass.",
            )
        env["HERMES_MANAGED_DIR"] = str(turn.scratch)
        lines = "".join(f"{name}='{value}'\n" for name, value in bounds.variables.items())
        files = (*files, ScratchFile("config.yaml", json.dumps(config)), ScratchFile(".env", lines))
    if turn.endpoint is not None:
        env["HERMES_HOME"] = str(turn.keep)
    return Invocation(arguments=arguments, env=env, files=files, keeps=turn.endpoint is not None)


def print_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol: the only way in for long prompts, and the only one that asks us."""
    bypass = _Bounds(variables={"HERMES_YOLO_MODE": "1"})
    return _invocation(turn, ("acp", *turn.extra), bypass if turn.permission == "bypass" else _refusing())


def connect_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol with a person to be asked: about edits and dangerous commands, as Hermes has
    it, and not elsewhere than over the connection."""
    asking = {"HERMES_EXEC_ASK": "0"}
    variables = {**asking, "HERMES_YOLO_MODE": "1"} if turn.permission == "bypass" else asking
    return _invocation(turn, ("acp", *turn.extra), _Bounds(variables=variables))


def guarded_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol, with every tool asking."""
    assert turn.guard is not None
    return _invocation(turn, ("acp",), _guarded(turn, turn.guard))


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface, where a person answers for themselves."""
    resume = ("--resume", turn.session) if turn.resume else ()
    variables = {"HERMES_YOLO_MODE": "1"} if turn.permission == "bypass" else {}
    return _invocation(turn, (*resume, *turn.extra), _Bounds(variables=variables))


def disarm(prompt: str) -> str:
    """Hermes runs a leading slash as a command of its own, white space in front or not."""
    return f"Task: {prompt}" if prompt.lstrip().startswith("/") else prompt


def examine(environ: Mapping[str, str]) -> list[str]:
    """An administrator's rules and ours are laid over the user's in the same way: only one can be."""
    place = environ.get("HERMES_MANAGED_DIR")
    return [f"the rules in {place} are set aside for runs that Remuda bounds itself"] if place else []


RUNTIME = Runtime(
    name="hermes",
    title="Hermes",
    binary="hermes",
    install="pip install 'hermes-agent[acp]'",
    verified_version=VERSION,
    minimum_version="0.19.0",
    stability="verified",
    channels=(
        Channel(
            *("connection", (), VERSION),
            arrives="trimmed",
            note="ACP; white space at the ends is dropped",
        ),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    connect=Connect(
        protocol="acp",
        command=connect_command,
        connection=guarded.connection,
        acknowledges="the first update of the turn, a question in it, or its result",
        verified=VERSION,
    ),
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel("connection", (), VERSION, arrives="trimmed", note="ACP, with a note in front"),
        note="a plugin asks before every tool call and no other is loaded; a command leaves no state for the "
        "next; patches of many files, and terminals in other places, are refused",
    ),
    wiring=WIRING,
    disarm=disarm,
    examine=examine,
    version_arguments=("acp", "--version"),
    version_pattern=r"\d+\.\d+\.\d+",
    help_checks=(HelpCheck(("--help",), ("acp", "--resume")), HelpCheck(("acp", "--help"), ("--version",))),
    environment=(
        *("HERMES_*", "OPENROUTER_*", "OPENAI_*", "ANTHROPIC_*", "NOUS_*", "GEMINI_*", "GOOGLE_API_KEY"),
        *("DEEPSEEK_*", "XAI_*", "MISTRAL_*", "GROQ_*", "TERMINAL_*", "TIRITH_*"),
    ),
    keys=(("NOUS_API_KEY",), providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE, *providers.OTHERS),
    home_variable="HERMES_HOME",
    logins=Logins(
        variables=ANY_KEY,
        home=".hermes",
        files=("auth.json", "config.yaml", ".env"),
        elsewhere=(*OTHERS, ".config/gh", ".qwen"),
    ),
    quiet={"HERMES_DISABLE_LAZY_INSTALLS": "1"},
    within=("HERMES_SESSION_ID", "HERMES_UI_SESSION_ID"),
    nested_markers=("HERMES_SESSION_*", "HERMES_UI_SESSION_ID", "HERMES_REAL_HOME", "HERMES_INTERACTIVE"),
    conduct=Conduct(
        model_argument=None,
        system_prompt=False,
        cache_writes=False,
        own_sessions=False,
        drop="goes on",
        startup=4.0,
    ),
    features={
        "headless": Feature("verified", "ACP"),
        "hooks": Feature("verified", "config.yaml; every failure of a hook lets the call through"),
        "connection": Feature("verified", "ACP"),
        "resume": Feature("verified", "the session id cannot be chosen"),
        "usage": Feature("verified", "no cache writes"),
        "sandbox": Feature("no"),
    },
    notes=(
        "Hermes asks about edits and dangerous commands only; a headless run without a bypass runs no shell "
        "command at all.",
        "Over a connection Hermes waits a minute for a person's word, and takes silence for a no.",
        "A turn that is interrupted while a tool runs jams the session: the next one goes on in a copy of "
        "it, with another session id.",
        "In a terminal Hermes looks for updates when it starts; it has no setting against that.",
    ),
)
