"""Claude Code: declaration and commands."""

from __future__ import annotations

from remuda.runtimes.base import (
    PROMPT,
    Channel,
    Conduct,
    Connect,
    Connection,
    Feature,
    HelpCheck,
    Invocation,
    Runtime,
    Turn,
)
from remuda.runtimes.claude.cell import CELL
from remuda.runtimes.claude.command import CONVERSATION, VERSION, common, environment
from remuda.runtimes.claude.guarded import GUARDING
from remuda.runtimes.claude.hooks import WIRING
from remuda.runtimes.claude.stream import parser
from remuda.runtimes.claude.usage import TRANSCRIPTS
from remuda.runtimes.login import Logins


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream."""
    arguments, files = common(turn, turn.permission)
    return Invocation(
        arguments=("-p", "--output-format", "stream-json", "--verbose", *arguments),
        env=environment(turn),
        files=files,
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    arguments, files = common(turn, turn.permission)
    return Invocation(arguments=arguments, env=environment(turn), files=files)


def connect_command(turn: Turn) -> Invocation:
    """Several turns in one process, with permission requests answered over stdin."""
    arguments, files = common(turn, turn.permission)
    return Invocation(arguments=(*CONVERSATION, *arguments), env=environment(turn), files=files)


def connection(turn: Turn) -> Connection:
    """The usual stream, and the guard's answers."""
    from remuda.runtimes.control import ControlConnection

    return ControlConnection(turn, lambda: parser(turn, ""))


def disarm(prompt: str) -> str:
    """Claude runs a leading slash as a command of its own, from stdin too; a space in front keeps it text."""
    return f" {prompt}" if prompt.startswith("/") else prompt


RUNTIME = Runtime(
    name="claude",
    title="Claude Code",
    binary="claude",
    install="npm install -g @anthropic-ai/claude-code",
    verified_version=VERSION,
    minimum_version="2.1.0",
    stability="verified",
    channels=(
        Channel("stdin", (), VERSION, note="claude -p reads the prompt from stdin, byte for byte"),
        Channel("argv", ("--", PROMPT), VERSION, on_request=True),
    ),
    instruction_file=".claude/CLAUDE.md",
    print_command=print_command,
    spawn_command=spawn_command,
    connect=Connect(
        protocol="stream-json",
        command=connect_command,
        connection=connection,
        acknowledges="the hook for prompts, before the model is called",
        verified=VERSION,
    ),
    parser=parser,
    guarding=GUARDING,
    wiring=WIRING,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    disarm=disarm,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--print", "--output-format", "--verbose", "--permission-mode", "--model"),
                *("--input-format", "--setting-sources", "--settings", "--strict-mcp-config"),
                *("--session-id", "--resume", "--system-prompt", "--append-system-prompt"),
            ),
        ),
    ),
    environment=(
        *("ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_*", "CLAUDE_ENV_FILE", "IS_SANDBOX"),
        *("DISABLE_*", "MAX_*_TOKENS", "BASH_*_MS", "BASH_MAX_OUTPUT_LENGTH", "API_TIMEOUT_MS", "MCP_*"),
    ),
    keys=(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),),
    home_variable="CLAUDE_CONFIG_DIR",
    quiet={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    logins=Logins(
        variables=(
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        ),
        home=".claude",
        files=(".credentials.json",),
    ),
    within=("CLAUDE_CODE_SESSION_ID",),
    nested_markers=(
        *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_EXECPATH"),
        *("CLAUDE_CODE_MESSAGING_*", "CLAUDE_CODE_SESSION_*", "CLAUDE_CODE_SSE_PORT", "CLAUDE_EFFORT"),
        *("CLAUDE_PID", "CLAUDE_PROJECT_DIR", "AI_AGENT"),
    ),
    needs_beacon=True,
    conduct=Conduct(bypass_as_root={"IS_SANDBOX": "1"}, quota="rate_limit"),
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "settings.json; exit 2 denies, a crash or a timeout does not"),
        "connection": Feature("verified", "stream-json with control requests"),
        "resume": Feature("verified", "the session id can be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("documented"),
    },
    notes=("As root, --permission bypass needs IS_SANDBOX=1 in the environment.",),
)
