"""GitHub Copilot CLI: declaration and commands."""

from __future__ import annotations

import msgspec

from remuda.core.errors import UsageError
from remuda.runtimes.base import (
    PROMPT,
    Channel,
    Conduct,
    Connect,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Permission,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.copilot import guarded
from remuda.runtimes.copilot.cell import CELL
from remuda.runtimes.copilot.hooks import WIRING
from remuda.runtimes.copilot.stream import parser
from remuda.runtimes.copilot.usage import TRANSCRIPTS
from remuda.runtimes.login import Logins

VERSION = "1.0.102"
_USAGE_FILE = "copilot-usage.json"
_INSTRUCTIONS = "remuda.instructions.md"


def _permission(permission: Permission) -> tuple[str, ...]:
    return ("--allow-all-tools",) if permission == "bypass" else ()


def _env(turn: Turn) -> dict[str, str]:
    """Additional instructions come from a folder; another model endpoint is a provider of one's own."""
    env = {}
    if turn.append_system_prompt is not None:
        env["COPILOT_CUSTOM_INSTRUCTIONS_DIRS"] = str(turn.scratch)
    if turn.endpoint is not None:
        env |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{turn.endpoint}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "remuda-endpoint-key",
            "COPILOT_MODEL": turn.model or "gpt-5.4",
        }
    return env


def _invocation(turn: Turn, *arguments: str) -> Invocation:
    if turn.system_prompt is not None:
        raise UsageError(
            "Copilot has no way to replace its system prompt",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    model = () if turn.model is None else ("--model", turn.model)
    files: tuple[ScratchFile, ...] = ()
    if turn.append_system_prompt is not None:
        files = (ScratchFile(_INSTRUCTIONS, f"---\napplyTo: '**'\n---\n{turn.append_system_prompt}\n"),)
    return Invocation(arguments=(*arguments, *model, *turn.extra), env=_env(turn), files=files)


def _session(turn: Turn) -> str:
    return f"--resume={turn.session}" if turn.resume else f"--session-id={turn.session}"


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream. The stream has no token counts: a file gets them."""
    usage = ("--usage-output-file", str(turn.scratch / _USAGE_FILE))
    leading = ("--output-format", "json", "--no-ask-user", *usage, _session(turn))
    return _invocation(turn, *leading, *_permission(turn.permission))


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    return _invocation(turn, _session(turn), *_permission(turn.permission))


def connect_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol over stdin and stdout."""
    return _invocation(turn, "--acp", *_permission(turn.permission))


def guarded_command(turn: Turn) -> Invocation:
    """A connection with nothing but tools that ask, and with the guard's hook in a plugin of its own."""
    assert turn.guard is not None
    tools = f"--available-tools={','.join(guarded.TOOLS)}"
    invocation = _invocation(
        turn, "--acp", "--no-ask-user", "--disable-builtin-mcps", tools, "--plugin-dir", str(turn.scratch)
    )
    return msgspec.structs.replace(
        invocation,
        env={**invocation.env, "COPILOT_ALLOW_ALL": "false"},
        files=(*invocation.files, *guarded.plugin(turn.guard)),
    )


RUNTIME = Runtime(
    name="copilot",
    title="GitHub Copilot CLI",
    binary="copilot",
    install="npm install -g @github/copilot",
    verified_version=VERSION,
    minimum_version="1.0.70",
    stability="verified",
    channels=(
        Channel(
            *("stdin", (), VERSION),
            arrives="trimmed",
            note="without -p; a line with the date goes in front, white space at the end is dropped",
        ),
        Channel("argv", (f"--prompt={PROMPT}",), VERSION, on_request=True, arrives="trimmed"),
    ),
    instruction_file=".github/copilot-instructions.md",
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
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel(
            *("connection", (), VERSION),
            arrives="trimmed",
            note="ACP; lines with the date and a note go in front, white space at the end is dropped",
        ),
        objection=guarded.objection,
        needs_hooks=True,
        note="ACP, with the shell and edits only, and a hook that tells why a call is refused",
    ),
    wiring=WIRING,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    leaves=_USAGE_FILE,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--prompt", "--output-format", "--usage-output-file", "--session-id", "--resume"),
                *("--model", "--allow-all-tools", "--available-tools", "--plugin-dir", "--acp"),
            ),
        ),
    ),
    environment=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"),
    keys=(("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"), ("COPILOT_PROVIDER_API_KEY",)),
    home_variable="COPILOT_HOME",
    logins=Logins(
        variables=(
            *("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_*"),
            "XDG_CONFIG_HOME",
        ),
        home=".copilot",
        files=("config.json",),
        elsewhere=(".config/gh", ".config/github-copilot"),
    ),
    quiet={"COPILOT_AUTO_UPDATE": "false"},
    within=("COPILOT_AGENT_SESSION_ID",),
    nested_markers=(
        *("COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION"),
        *("COPILOT_CLI_RESOLVED_DIST_DIR", "COPILOT_LOADER_PID", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR"),
    ),
    needs_beacon=True,
    conduct=Conduct(system_prompt=False, cache_writes=False),
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "user level; repository hooks only in a trusted folder"),
        "connection": Feature("verified", "ACP"),
        "resume": Feature("verified", "the session id can be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("no"),
    },
    notes=("Copilot blanks out the values of its own secrets wherever they occur in its output.",),
)
