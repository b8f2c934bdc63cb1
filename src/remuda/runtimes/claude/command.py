"""Claude Code's command lines: what the headless, the interactive and the guarded one share."""

from __future__ import annotations

from remuda.runtimes.base import Permission, ScratchFile, Turn, system_prompt_files

VERSION = "2.1.325"

CONVERSATION = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--permission-prompt-tool", "stdio"),
)
"""Prompts, events and requests for permission over both standard streams."""


def common(turn: Turn, permission: Permission) -> tuple[tuple[str, ...], tuple[ScratchFile, ...]]:
    """Session, permissions, model and system prompts."""
    mode = "bypassPermissions" if permission == "bypass" else "default"
    arguments = ["--resume" if turn.resume else "--session-id", turn.session, "--permission-mode", mode]
    if turn.model:
        arguments += ["--model", turn.model]
    prompts, files = system_prompt_files(turn)
    return (*arguments, *prompts, *turn.extra), files


def environment(turn: Turn) -> dict[str, str]:
    """Another model endpoint, with a key that is worth nothing anywhere else."""
    if turn.endpoint is None:
        return {}
    return {"ANTHROPIC_BASE_URL": turn.endpoint, "ANTHROPIC_API_KEY": "remuda-endpoint-key"}
