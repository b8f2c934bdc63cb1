"""Gemini CLI: declaration and commands."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

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
from remuda.runtimes.gemini.stream import LOGIN_HINT, parser

VERSION = "0.61.0"
_SYSTEM = "system.md"
_BOUND = "bound.toml"
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

_READING = (
    *("list_directory", "read_file", "read_many_files", "grep_search", "glob", "google_web_search"),
    *("update_topic", "write_todos", "complete_task", "invoke_agent"),
)
_ALLOWED: dict[Access, tuple[str, ...]] = {
    "read": _READING,
    "workspace": (*_READING, "replace", "write_file"),
}


def _bound(access: Access) -> str:
    """A policy with the tools of an access bound and no other: Gemini cannot bound a shell to a folder."""
    return (
        f'[[rule]]\ntoolName = {json.dumps(_ALLOWED[access])}\ndecision = "allow"\npriority = 999\n\n'
        '[[rule]]\ntoolName = "*"\ndecision = "deny"\npriority = 998\n'
    )


def _permission(turn: Turn) -> tuple[str, ...]:
    """Gemini's approval modes. What a mode would ask about is not even offered to the model when nobody is
    there. A bound is a policy of the highest rank, and of the next one in case an administrator has some."""
    if turn.access is None:
        return ("--approval-mode", _mode(turn.permission))
    file = str(turn.scratch / _BOUND)
    mode = "auto_edit" if turn.access == "workspace" else "default"
    return ("--approval-mode", mode, "--admin-policy", file, "--policy", file)


def _mode(permission: Permission) -> str:
    return "yolo" if permission == "bypass" else "default"


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


def _invocation(turn: Turn, *leading: str) -> Invocation:
    """What all ways to start have in common. Additional instructions become a part of a system prompt that is
    given; for its own, Gemini has no private place to add some."""
    session = ("--resume", turn.session) if turn.resume else ("--session-id", turn.session)
    model = ("--model", turn.model) if turn.model else ()
    files = [ScratchFile(_BOUND, _bound(turn.access))] if turn.access else []
    preamble = turn.append_system_prompt or ""
    if turn.system_prompt is not None:
        files.append(ScratchFile(_SYSTEM, "\n\n".join(filter(None, (turn.system_prompt, preamble)))))
        preamble = ""
    return Invocation(
        arguments=(*leading, *session, *_permission(turn), *model, *turn.extra),
        env=_env(turn),
        files=tuple(files),
        preamble=preamble,
        keeps=turn.endpoint is not None,
        kept=(ScratchFile(".gemini/settings.json", json.dumps(_SETTINGS)),) if turn.endpoint else (),
    )


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream, in a folder that Gemini need not have been told to trust.

    When a model call fails, Gemini writes the whole conversation into the folder for temporary files, for
    everybody to read: so that folder is a private one.
    """
    invocation = _invocation(turn, "--output-format", "stream-json", "--skip-trust")
    private = {"TMPDIR": str(turn.keep), "GEMINI_CLI_NO_RELAUNCH": "true"}
    return msgspec.structs.replace(invocation, env={**invocation.env, **private}, keeps=True)


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    return _invocation(turn)


def connect(turn: Turn) -> Invocation:
    """The Agent Client Protocol over stdin and stdout."""
    return _invocation(turn, "--acp")


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
    connect=connect,
    parser=parser,
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
    home_variable="GEMINI_CLI_HOME",
    nested_markers=(
        *("GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR", "GEMINI_CWD"),
        "GEMINI_PLANS_DIR",
    ),
    patience=7.0,
    conduct=Conduct(
        ask="silent",
        builder_writes=False,
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
        "For another model endpoint Gemini gets a home of its own, without the user's settings and hooks.",
    ),
)
