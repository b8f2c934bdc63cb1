"""Amplifier: declaration and commands, after its documentation. No release of it has been verified."""

from __future__ import annotations

from remuda.core.errors import RefusedError, UsageError
from remuda.runtimes import providers
from remuda.runtimes.amplifier.cell import CELL
from remuda.runtimes.amplifier.stream import parser
from remuda.runtimes.amplifier.usage import TRANSCRIPTS
from remuda.runtimes.base import (
    PROMPT,
    UNVERIFIED,
    Channel,
    Conduct,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Runtime,
    Turn,
)


def _check_bounds(turn: Turn) -> None:
    """Amplifier runs every tool that its bundle brings, without asking; no option restricts it."""
    if turn.access is not None:
        raise RefusedError(
            "Amplifier has no option that holds it to reading or to its working folder",
            "Use another agent for this capability, or run Amplifier without one and --permission bypass.",
        )


def _model(turn: Turn) -> tuple[str, ...]:
    """A model may be given with its provider in front, as Amplifier itself writes it."""
    provider, _, model = (turn.model or "").rpartition("/")
    if turn.endpoint is not None:
        provider, model = "openai", turn.model or "gpt-5.4"
    return (
        *(("--provider", provider) if provider else ()),
        *(("--model", model) if model else ()),
    )


def _env(turn: Turn) -> dict[str, str]:
    """Another model endpoint, as the OpenAI provider reads it, and no end of the run where a module of the
    bundle cannot be fetched."""
    if turn.endpoint is None:
        return {}
    return {
        "OPENAI_BASE_URL": f"{turn.endpoint}/v1",
        "OPENAI_API_KEY": "remuda-endpoint-key",
        "AMPLIFIER_ALLOW_PARTIAL_BUNDLE": "1",
    }


def _invocation(turn: Turn, *leading: str) -> Invocation:
    if turn.system_prompt is not None:
        raise UsageError(
            "Amplifier has no way to replace its system prompt for one run",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    _check_bounds(turn)
    resume = ("--resume", turn.session) if turn.resume else ()
    return Invocation(arguments=("run", *leading, *_model(turn), *resume, *turn.extra), env=_env(turn))


def print_command(turn: Turn) -> Invocation:
    """One headless turn. Amplifier has no place for additional instructions, so they precede the prompt."""
    invocation = _invocation(turn, "--mode", "single", "--output-format", "json-trace")
    if turn.permission == "ask":
        raise RefusedError(
            "Amplifier never asks before it acts: with nobody there, nothing would be held back",
            "Use --permission bypass if that is what you want, or another agent.",
        )
    return Invocation(
        arguments=invocation.arguments, env=invocation.env, preamble=turn.append_system_prompt or ""
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    return _invocation(turn, "--mode", "chat")


def disarm(prompt: str) -> str:
    """A prompt that begins with /goal is a command, white space in front or not; a word keeps it text."""
    return f"Task: {prompt}" if prompt.strip().lower().startswith("/goal ") else prompt


RUNTIME = Runtime(
    name="amplifier",
    title="Amplifier",
    binary="amplifier",
    install="uv tool install git+https://github.com/microsoft/amplifier",
    verified_version=UNVERIFIED,
    minimum_version="0.1.0",
    stability="experimental",
    channels=(
        Channel(
            *("stdin", (), None),
            arrives="contained",
            note="documented, not verified; files named with an @ in the prompt are added to it",
        ),
        Channel(
            *("argv", ("--", PROMPT), None),
            on_request=True,
            arrives="contained",
            note="documented, not verified",
        ),
    ),
    rejects=frozenset({"tempfile"}),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(
        by="nothing",
        note="it runs every tool of its bundle unasked, has no connection that asks, and a hook module that "
        "fails lets the tool run",
    ),
    disarm=disarm,
    help_checks=(
        HelpCheck(
            ("run", "--help"),
            ("--provider", "--model", "--mode", "--resume", "--output-format", "json-trace"),
        ),
    ),
    environment=(
        *("AMPLIFIER_*", "ANTHROPIC_*", "OPENAI_*", "AZURE_OPENAI_*", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
        *("OLLAMA_*", "VLLM_*"),
    ),
    keys=(
        *(providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE),
        *(("AZURE_OPENAI_API_KEY",), ("VLLM_API_KEY",)),
    ),
    conduct=Conduct(
        refuses=frozenset({"ask", "read", "workspace"}),
        builder_writes=False,
        system_prompt=False,
        tells_thoughts=False,
        usage=False,
    ),
    features={
        "headless": Feature("documented"),
        "hooks": Feature("no", "Python modules of a bundle only, and one that fails lets the tool run"),
        "connection": Feature("no"),
        "resume": Feature("documented", "the session id cannot be chosen"),
        "usage": Feature("no", "it prints no token counts"),
        "sandbox": Feature("no"),
    },
    notes=(
        "Unverified: written after the documentation and source of the app CLI; no release could be tested.",
        "It runs only with --permission bypass, as nothing restricts its tools.",
        "It repeats failing model calls without a word: set --timeout.",
        "Another endpoint is taken up by a provider-openai with no base_url in ~/.amplifier/settings.yaml.",
    ),
)
