"""Pi: declaration and commands."""

from __future__ import annotations

from remuda.runtimes.base import (
    Channel,
    Conduct,
    Feature,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.pi import extensions
from remuda.runtimes.pi.stream import NODE, parser

VERSION = "0.87.1"
_UNSEEN = "\u200b"


def _permission(turn: Turn) -> tuple[tuple[str, ...], str | None]:
    """The tools Pi offers to the model, and the guard that stands before them. Pi itself never asks: a shell
    command can do anything, so no access bound leaves the shell. A bound always wins over a bypass."""
    reading, writing = extensions.READING, extensions.WRITING
    if turn.access == "read":
        return reading, None
    if turn.access == "workspace":
        return (*reading, *writing), extensions.guard(below=writing)
    if turn.permission == "ask":
        return (*reading, "bash", *writing), extensions.guard(asks=True)
    return (), None


def _model(turn: Turn) -> tuple[str, ...]:
    if turn.endpoint is not None:
        return ("--provider", extensions.PROVIDER, "--model", turn.model or extensions.DEFAULT_MODEL)
    return ("--model", turn.model) if turn.model else ()


def _extensions(turn: Turn, guard: str | None) -> tuple[ScratchFile, ...]:
    endpoint = turn.endpoint and extensions.endpoint(turn.endpoint, turn.model or extensions.DEFAULT_MODEL)
    contents = ((extensions.ENDPOINT, endpoint), (extensions.GUARD, guard))
    return tuple(ScratchFile(name, content) for name, content in contents if content)


def _invocation(turn: Turn, *leading: str) -> Invocation:
    tools, guard = _permission(turn)
    loaded = _extensions(turn, guard)
    flags = (("system-prompt", turn.system_prompt), ("append-system-prompt", turn.append_system_prompt))
    texts = {flag: ScratchFile(f"{flag}.md", text) for flag, text in flags if text is not None}
    return Invocation(
        arguments=(
            *(*leading, "--session" if turn.resume else "--session-id", turn.session),
            *(("--tools", ",".join(tools)) if tools else ()),
            *(part for file in loaded for part in ("--extension", str(turn.scratch / file.name))),
            *(part for flag, file in texts.items() for part in (f"--{flag}", str(turn.scratch / file.name))),
            *(*_model(turn), *turn.extra),
        ),
        env={"PI_OFFLINE": "1"} if turn.endpoint else {},
        files=(*loaded, *texts.values()),
    )


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream."""
    return _invocation(turn, "--mode", "json")


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    return _invocation(turn)


def connect(turn: Turn) -> Invocation:
    """Commands and events over stdin and stdout, in Pi's own protocol."""
    return _invocation(turn, "--mode", "rpc")


def disarm(prompt: str) -> str:
    """Pi runs a leading slash as a command, a skill or a template, and drops a space in front of it; a
    zero-width space keeps it text."""
    return f"{_UNSEEN}{prompt.lstrip()}" if prompt.lstrip().startswith("/") else prompt


RUNTIME = Runtime(
    name="pi",
    title="Pi",
    binary="pi",
    install="npm install -g @earendil-works/pi-coding-agent",
    verified_version=VERSION,
    minimum_version="0.80.4",
    stability="verified",
    channels=(
        Channel(
            *("stdin", (), VERSION),
            arrives="trimmed",
            note="white space at the ends is dropped; on the command line a leading @ would name a file",
        ),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    connect=connect,
    parser=parser,
    disarm=disarm,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--mode", "--session", "--session-id", "--tools", "--extension", "--provider", "--model"),
                *("--system-prompt", "--append-system-prompt"),
            ),
        ),
    ),
    environment=(
        *("PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY"),
        *("AWS_PROFILE", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_*", "GROQ_API_KEY"),
        *("MISTRAL_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY"),
    ),
    home_variable="PI_CODING_AGENT_DIR",
    node=NODE,
    quiet={"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
    nested_markers=(
        *("AI_AGENT", "PI_CODING_AGENT", "PI_SESSION_ID", "PI_SESSION_FILE"),
        *("PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"),
    ),
    conduct=Conduct(builder_writes=False),
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "extensions; those of a project only load when it is trusted"),
        "connection": Feature("verified", "a protocol of its own (--mode rpc)"),
        "resume": Feature("verified", "the session id can be chosen; a session belongs to its folder"),
        "usage": Feature("verified", "cached input is counted apart, whatever the provider"),
        "sandbox": Feature("no"),
    },
    notes=(
        "Pi needs Node 22.19 or newer. The package @mariozechner/pi-coding-agent is its dead predecessor.",
        "Pi has no permissions: Remuda asks, refuses and keeps to the working folder by an extension.",
        "Where ripgrep (rg) or fd is missing, its search tools download them on their first use.",
    ),
)
