"""GitHub Copilot CLI: declaration and commands."""

from __future__ import annotations

from remuda.core.errors import UsageError
from remuda.runtimes.base import (
    PROMPT,
    Access,
    Channel,
    Conduct,
    Feature,
    HelpCheck,
    Invocation,
    Permission,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.copilot.stream import parser

VERSION = "1.0.102"
_USAGE_FILE = "copilot-usage.json"
_INSTRUCTIONS = "remuda.instructions.md"


def _permission(permission: Permission, access: Access | None) -> tuple[str, ...]:
    """Copilot's own switches. An access bound always wins over a bypass, which would lift it."""
    if access == "read":
        return ("--available-tools=view,grep,glob",)
    if access == "workspace":
        return ("--allow-tool=write",)
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


def _invocation(turn: Turn, *leading: str) -> Invocation:
    if turn.system_prompt is not None:
        raise UsageError(
            "Copilot has no way to replace its system prompt",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    session = f"--resume={turn.session}" if turn.resume else f"--session-id={turn.session}"
    model = () if turn.model is None else ("--model", turn.model)
    files: tuple[ScratchFile, ...] = ()
    if turn.append_system_prompt is not None:
        files = (ScratchFile(_INSTRUCTIONS, f"---\napplyTo: '**'\n---\n{turn.append_system_prompt}\n"),)
    return Invocation(
        arguments=(*leading, session, *_permission(turn.permission, turn.access), *model, *turn.extra),
        env=_env(turn),
        files=files,
    )


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream. The stream has no token counts: a file gets them."""
    usage = str(turn.scratch / _USAGE_FILE)
    return _invocation(turn, "--output-format", "json", "--no-ask-user", "--usage-output-file", usage)


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    return _invocation(turn)


def connect(turn: Turn) -> Invocation:
    """The Agent Client Protocol over stdin and stdout."""
    return _invocation(turn, "--acp")


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
    connect=connect,
    parser=parser,
    leaves=_USAGE_FILE,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--prompt", "--output-format", "--usage-output-file", "--session-id", "--resume"),
                *("--model", "--allow-all-tools", "--allow-tool", "--available-tools", "--acp"),
            ),
        ),
    ),
    environment=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"),
    home_variable="COPILOT_HOME",
    quiet={"COPILOT_AUTO_UPDATE": "false"},
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
