"""Gemini CLI: declaration and commands."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from remuda.core.errors import RefusedError
from remuda.runtimes import providers
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
from remuda.runtimes.gemini import guarded
from remuda.runtimes.gemini.cell import CELL
from remuda.runtimes.gemini.hooks import WIRING
from remuda.runtimes.gemini.stream import LOGIN_HINT, parser
from remuda.runtimes.gemini.usage import TRANSCRIPTS
from remuda.runtimes.login import Logins

VERSION = "0.61.0"
_SYSTEM = "system.md"
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "maxAttempts": 2,
        "retryFetchErrors": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
"""Settings for another model endpoint: the kind of login it takes, to report to nobody, to try twice at most
and only once where nobody listens."""

_ONE_PROCESS = {"GEMINI_CLI_NO_RELAUNCH": "true"}
_UNTRUSTED = {"GEMINI_CLI_TRUST_WORKSPACE": "false"}


def _mode(permission: Permission) -> tuple[str, ...]:
    """Gemini's approval mode. What it would ask about is not even offered to the model with nobody there."""
    return ("--approval-mode", "yolo" if permission == "bypass" else "default")


def _env(turn: Turn) -> dict[str, str]:
    """Another model endpoint needs settings, which Gemini takes from its home, or from files of root's: so it
    gets a home."""
    env = {}
    if turn.system_prompt is not None:
        env["GEMINI_SYSTEM_MD"] = str(turn.scratch / _SYSTEM)
    if turn.endpoint is not None:
        env |= {
            "GEMINI_CLI_HOME": str(turn.keep),
            "GOOGLE_GEMINI_BASE_URL": turn.endpoint,
            "GEMINI_API_KEY": "remuda-endpoint-key",
            "GEMINI_MODEL": "gemini-2.5-flash",
        }
    return env


def _invocation(turn: Turn, *arguments: str) -> Invocation:
    """What all ways to start have in common. Additional instructions become a part of a system prompt that is
    given; for its own, Gemini has no private place to add some."""
    model = ("--model", turn.model) if turn.model else ()
    files: tuple[ScratchFile, ...] = ()
    preamble = turn.append_system_prompt or ""
    if turn.system_prompt is not None:
        files = (ScratchFile(_SYSTEM, "\n\n".join(filter(None, (turn.system_prompt, preamble)))),)
        preamble = ""
    return Invocation(
        arguments=(*arguments, *model, *turn.extra),
        env=_env(turn),
        files=files,
        preamble=preamble,
        keeps=turn.endpoint is not None,
        kept=(ScratchFile(".gemini/settings.json", json.dumps(_SETTINGS)),) if turn.endpoint else (),
    )


def _session(turn: Turn) -> tuple[str, str]:
    return ("--resume", turn.session) if turn.resume else ("--session-id", turn.session)


def _private(turn: Turn, invocation: Invocation, **more: str) -> Invocation:
    """When a model call fails, Gemini writes the whole conversation into the folder for temporary files, for
    everybody to read: so that folder is a private one."""
    env = {**invocation.env, "TMPDIR": str(turn.keep), **more}
    return msgspec.structs.replace(invocation, env=env, keeps=True)


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream, in a folder that Gemini was perhaps never told to trust."""
    leading = ("--output-format", "stream-json", "--skip-trust")
    invocation = _invocation(turn, *leading, *_session(turn), *_mode(turn.permission))
    return _private(turn, invocation, **_ONE_PROCESS)


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface. It starts itself again when a folder becomes trusted, so it has to be two
    processes."""
    return _private(turn, _invocation(turn, *_session(turn), *_mode(turn.permission)))


def connect_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol over stdin and stdout."""
    if reason := guarded.too_young(turn):
        raise RefusedError(reason, "Wait a minute, then try again.")
    return _private(turn, _invocation(turn, "--acp", *_mode(turn.permission)))


def guarded_command(turn: Turn) -> Invocation:
    """A connection on which every tool asks: by a policy of the highest rank, and of the next one. In a
    folder that is not trusted, nothing that lies in it counts."""
    policy = str(turn.scratch / guarded.POLICY)
    asking = ("--approval-mode", "default", "--admin-policy", policy, "--policy", policy)
    invocation = _private(turn, _invocation(turn, "--acp", *asking), **_ONE_PROCESS, **_UNTRUSTED)
    files = (*invocation.files, ScratchFile(guarded.POLICY, guarded.RULES))
    return msgspec.structs.replace(invocation, files=files)


def disarm(prompt: str) -> str:
    """Gemini runs a leading slash as a command of its own, from stdin too; a space in front keeps it text."""
    return f" {prompt}" if prompt.startswith("/") else prompt


def examine(environ: Mapping[str, str]) -> list[str]:
    """With a base URL of the user's own, Gemini no longer guesses which kind of login to use."""
    return [LOGIN_HINT] if "GOOGLE_GEMINI_BASE_URL" in environ else []


RUNTIME = Runtime(
    name="gemini",
    title="Gemini CLI",
    binary="gemini",
    install="npm install -g @google/gemini-cli",
    verified_version=VERSION,
    minimum_version="0.61.0",
    stability="verified",
    channels=(
        Channel(
            "stdin", (), VERSION, note="without --prompt; the text is a part of its own beside the context"
        ),
        Channel("argv", (f"--prompt={PROMPT}",), VERSION, on_request=True),
    ),
    instruction_file="GEMINI.md",
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
        channel=Channel("connection", (), VERSION, note="ACP; a text of its own beside the context"),
        objection=guarded.objection,
        instructions=("GEMINI.md",),
        note="ACP, with a policy by which every tool asks; no agents below it, no MCP servers",
    ),
    wiring=WIRING,
    disarm=disarm,
    examine=examine,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--prompt", "--output-format", "--approval-mode", "--policy", "--admin-policy", "--model"),
                *("--session-id", "--resume", "--skip-trust", "--acp"),
            ),
        ),
    ),
    environment=("GEMINI_*", "GOOGLE_*", "CLOUD_SHELL", "OTLP_GOOGLE_CLOUD_PROJECT", "SEATBELT_PROFILE"),
    keys=((*providers.GOOGLE, "GOOGLE_APPLICATION_CREDENTIALS"),),
    home_variable="GEMINI_CLI_HOME",
    logins=Logins(
        variables=(
            *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
            "CLOUD_SHELL",
        ),
        home="",
        files=(".gemini/oauth_creds.json", ".gemini/gemini-credentials.json"),
    ),
    within=("GEMINI_CLI", "GEMINI_SESSION_ID"),
    nested_markers=(
        *("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD"),
        "GEMINI_PLANS_DIR",
    ),
    patience=7.0,
    conduct=Conduct(
        ask="silent",
        tells_thoughts=False,
        cache_writes=False,
        own_sessions=False,
        startup=2.5,
    ),
    features={
        "headless": Feature("verified"),
        "hooks": Feature(
            "verified", "a crash, a timeout or a silent exit 2 lets the tool run; not with --acp"
        ),
        "connection": Feature("verified", "ACP"),
        "resume": Feature("verified", "the session id can be chosen"),
        "usage": Feature("verified"),
        "sandbox": Feature("documented", "docker, podman, bubblewrap or Seatbelt"),
    },
    notes=(
        "@NAME in a prompt is taken for a file or folder of that name, or else for the first file below the "
        "working folder whose path contains it: its text is added. Gemini cannot be kept from that.",
        "Over a connection a session can be taken up a minute after it began: Gemini would write over it.",
        "For another model endpoint Gemini gets a home of its own, without the user's settings and hooks.",
    ),
)
