"""Pi: declaration and commands."""

from __future__ import annotations

from remuda.runtimes import providers
from remuda.runtimes.base import (
    Channel,
    Connect,
    Connection,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.login import ANY_KEY, OTHERS, Logins
from remuda.runtimes.pi import extensions, guarded
from remuda.runtimes.pi.cell import CELL
from remuda.runtimes.pi.hooks import WIRING
from remuda.runtimes.pi.stream import NODE, parser
from remuda.runtimes.pi.usage import TRANSCRIPTS

VERSION = "0.87.1"
_UNSEEN = "\u200b"


def _permission(turn: Turn) -> tuple[tuple[str, ...], ScratchFile | None]:
    """The tools Pi offers to the model, and the extension that stands before them: Pi itself never asks."""
    tools = (*extensions.READING, "bash", *extensions.WRITING)
    if turn.guard is not None:
        asking = ScratchFile(extensions.APPROVAL, extensions.approval())
        return tools if turn.guard.binding else (), asking
    if turn.permission == "ask":
        return tools, ScratchFile(extensions.GUARD, extensions.guard())
    return (), None


def _model(turn: Turn) -> tuple[str, ...]:
    if turn.endpoint is not None:
        return ("--provider", extensions.PROVIDER, "--model", turn.model or extensions.DEFAULT_MODEL)
    return ("--model", turn.model) if turn.model else ()


def _extensions(turn: Turn, guard: ScratchFile | None) -> tuple[ScratchFile, ...]:
    """What is loaded, the guard first: one that does not load keeps the others from running."""
    loaded = (guard,) if guard else ()
    if turn.endpoint is None:
        return loaded
    endpoint = extensions.endpoint(turn.endpoint, turn.model or extensions.DEFAULT_MODEL)
    return (*loaded, ScratchFile(extensions.ENDPOINT, endpoint))


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


def connect_command(turn: Turn) -> Invocation:
    """Commands and events over stdin and stdout, in Pi's own protocol, with the user's own extensions and
    tools. Ours asks before each tool, unless nobody wants to be asked."""
    return _invocation(turn, "--mode", "rpc")


def connection(turn: Turn) -> Connection:
    """The connection of a session, and of a guarded turn."""
    from remuda.runtimes.pi.connection import PiConnection

    return PiConnection(turn)


def guarded_command(turn: Turn) -> Invocation:
    """A connection on which every tool call asks."""
    return _invocation(turn, "--mode", "rpc", *guarded.FLAGS)


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
    connect=Connect(
        protocol="rpc",
        command=connect_command,
        connection=connection,
        acknowledges="the answer to the command that carries it",
        verified=VERSION,
    ),
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel("connection", (), VERSION, note="a protocol of its own (--mode rpc)"),
        objection=guarded.objection,
        note="an extension asks before every tool call; other extensions are not loaded",
    ),
    wiring=WIRING,
    disarm=disarm,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--mode", "--session", "--session-id", "--tools", "--extension", "--provider", "--model"),
                *("--system-prompt", "--append-system-prompt", *guarded.FLAGS),
            ),
        ),
    ),
    environment=(
        *("PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY"),
        *("AWS_PROFILE", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_*", "GROQ_API_KEY"),
        *("MISTRAL_API_KEY", "XAI_API_KEY", "DEEPSEEK_API_KEY"),
    ),
    keys=(
        *(providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE, *providers.OTHERS),
        *(("AZURE_OPENAI_API_KEY",), ("AWS_BEARER_TOKEN_BEDROCK",)),
    ),
    home_variable="PI_CODING_AGENT_DIR",
    logins=Logins(
        variables=ANY_KEY,
        home=".pi/agent",
        files=("auth.json", "models.json", "settings.json", "extensions"),
        elsewhere=OTHERS,
    ),
    node=NODE,
    quiet={"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
    within=("PI_SESSION_ID",),
    nested_markers=(
        *("AI_AGENT", "PI_CODING_AGENT", "PI_SESSION_ID", "PI_SESSION_FILE"),
        *("PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"),
    ),
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
        "Pi has no permissions: Remuda asks and refuses by an extension.",
        "Where ripgrep (rg) or fd is missing, its search tools download them on their first use.",
    ),
)
