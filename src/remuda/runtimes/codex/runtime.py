"""Codex: declaration and commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from remuda.runtimes.base import (
    PROMPT,
    Channel,
    Conduct,
    Connect,
    Connection,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Permission,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.codex.cell import CELL
from remuda.runtimes.codex.guarded import objection, settings
from remuda.runtimes.codex.hooks import WIRING
from remuda.runtimes.codex.stream import parser
from remuda.runtimes.codex.usage import TRANSCRIPTS
from remuda.runtimes.login import Logins

VERSION = "0.166.0"
_ENDPOINT_KEY = "REMUDA_ENDPOINT_KEY"
_QUIET = ("-c", "analytics.enabled=false", "-c", 'otel.metrics_exporter="none"')


def _permission(permission: Permission) -> tuple[str, ...]:
    """Codex's own sandbox, or nothing that holds it."""
    if permission == "bypass":
        return ("--dangerously-bypass-approvals-and-sandbox",)
    return ("-s", "read-only")


def _endpoint(turn: Turn) -> tuple[str, ...]:
    """Another model endpoint, as a provider of its own; the vendor's plugin service is left alone then.

    Codex says nothing while it repeats a request, only when it begins its turn again: so it repeats little.
    """
    if turn.endpoint is None:
        return ()
    provider = {
        "name": json.dumps("remuda"),
        "base_url": json.dumps(f"{turn.endpoint}/v1"),
        "env_key": json.dumps(_ENDPOINT_KEY),
        "wire_api": json.dumps("responses"),
        "request_max_retries": "1",
    }
    table = ", ".join(f"{key} = {value}" for key, value in provider.items())
    model = () if turn.model else ("-c", 'model="gpt-5.4"')
    return (
        "-c",
        'model_provider="remuda"',
        "-c",
        f"model_providers.remuda={{{table}}}",
        *model,
        "--disable",
        "plugins",
    )


def _common(turn: Turn) -> tuple[tuple[str, ...], tuple[ScratchFile, ...]]:
    arguments = [*_QUIET, *_endpoint(turn)]
    if turn.model:
        arguments += ["-m", turn.model]
    if turn.system_prompt is None:
        return tuple(arguments), ()
    path = turn.scratch / "instructions.md"
    arguments += ["-c", f"model_instructions_file={json.dumps(str(path))}"]
    return tuple(arguments), (ScratchFile(path.name, turn.system_prompt),)


def _env(turn: Turn) -> dict[str, str]:
    return {} if turn.endpoint is None else {_ENDPOINT_KEY: "remuda-endpoint-key"}


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream. Codex has no file for additional instructions, and on the
    command line every user of the machine could read them, so they precede the prompt."""
    common, files = _common(turn)
    resume = ("resume", turn.session) if turn.resume else ()
    return Invocation(
        arguments=(
            *("exec", "--json", "--skip-git-repo-check", *_permission(turn.permission)),
            *(*common, *turn.extra, *resume),
        ),
        env=_env(turn),
        files=files,
        preamble=turn.append_system_prompt or "",
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface, without the daemon that would outlive it."""
    common, files = _common(turn)
    resume = ("resume", turn.session) if turn.resume else ()
    asks = ("-a", "on-request") if turn.permission == "ask" else ()
    return Invocation(
        arguments=(*resume, "--no-daemon", *_permission(turn.permission), *asks, *common, *turn.extra),
        env=_env(turn),
        files=files,
    )


def connect_command(turn: Turn) -> Invocation:
    """The app server: threads, turns and approvals over stdin and stdout. Model, permissions and instructions
    are given over the connection. What is typed into a running program asks nobody, so where somebody is to
    be asked there are no terminals to type into."""
    asking = () if turn.permission == "bypass" else ("-c", "features.unified_exec_tty=false")
    arguments = ("app-server", *_QUIET, *_endpoint(turn), *asking, *turn.extra)
    return Invocation(arguments=arguments, env=_env(turn))


def guarded_command(turn: Turn) -> Invocation:
    """The same with the guard in it."""
    guarding = settings(turn, turn.guard) if turn.guard is not None else ()
    return Invocation(arguments=("app-server", *_QUIET, *_endpoint(turn), *guarding), env=_env(turn))


def connection(turn: Turn) -> Connection:
    """The connection of a session, and of a guarded turn."""
    from remuda.runtimes.codex.connection import CodexConnection

    return CodexConnection(turn)


def examine(environ: Mapping[str, str]) -> list[str]:
    """Codex cannot set up its sandbox when its home lies below the folder for temporary files."""
    home = environ.get("CODEX_HOME")
    temporary = Path(environ.get("TMPDIR") or "/tmp").resolve()  # noqa: S108 - read only to compare
    if home and Path(home).resolve().is_relative_to(temporary):
        return ["CODEX_HOME lies below the folder for temporary files: Codex's sandbox will not work there"]
    return []


RUNTIME = Runtime(
    name="codex",
    title="Codex",
    binary="codex",
    install="npm install -g @openai/codex",
    verified_version=VERSION,
    minimum_version="0.160.0",
    stability="verified",
    channels=(
        Channel("stdin", ("-",), VERSION, note="codex exec - reads the prompt from stdin, byte for byte"),
        Channel("argv", ("--", PROMPT), VERSION, on_request=True),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    connect=Connect(
        protocol="app-server",
        command=connect_command,
        connection=connection,
        acknowledges="the answer to the request that begins the turn",
        verified=VERSION,
    ),
    parser=parser,
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel("connection", (), VERSION, note="app-server, byte for byte"),
        objection=objection,
        needs_hooks=True,
        instructions=("AGENTS.md",),
        note="asks about every command and file; a hook stands behind that",
    ),
    wiring=WIRING,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    examine=examine,
    help_checks=(
        HelpCheck(
            ("exec", "--help"),
            (
                *("--json", "--model", "--sandbox", "--config", "--disable", "--skip-git-repo-check"),
                "--dangerously-bypass-approvals-and-sandbox",
            ),
        ),
        HelpCheck(("--help",), ("exec", "resume", "app-server", "--no-daemon")),
    ),
    environment=("OPENAI_*", "CODEX_HOME", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "RUST_LOG"),
    keys=(("OPENAI_API_KEY", "CODEX_API_KEY"),),
    home_variable="CODEX_HOME",
    logins=Logins(variables=("CODEX_API_KEY", "OPENAI_API_KEY"), home=".codex", files=("auth.json",)),
    within=("CODEX_THREAD_ID", "CODEX_SESSION_ID"),
    nested_markers=(
        *("CODEX_SANDBOX*", "CODEX_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
        *("CODEX_VERSION", "CODEX_MANAGED_*"),
    ),
    conduct=Conduct(ask="silent", tells_model=False),
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "only when trusted; skipped without a word otherwise"),
        "connection": Feature("verified", "app-server (experimental)"),
        "resume": Feature("verified", "the session id cannot be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("verified", "bundled bubblewrap: read-only, workspace-write"),
    },
    notes=(
        "Under guard, those who only read work in Codex's read-only sandbox, and builders in none: Codex "
        "runs an approved command that its sandbox stops a second time without it.",
        "In a person's own session, what was approved runs without Codex's sandbox, once.",
        "Under guard, web search, pictures, sub-agents, plugins and terminals are off, for they ask nobody.",
    ),
)
