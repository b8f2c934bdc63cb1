"""The events that a hook is called for, and the names they go by."""

from __future__ import annotations

from typing import Literal

from remuda.guard.toolnames import plain

Event = Literal[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SubagentStop",
    "PreCompact",
]

COMMANDS: dict[Event, str] = {
    "SessionStart": "session-start",
    "SessionEnd": "session-stop",
    "UserPromptSubmit": "user-prompt-submit",
    "PreToolUse": "pre-tool-use",
    "PostToolUse": "post-tool-use",
    "Stop": "stop",
    "SubagentStop": "subagent-stop",
    "PreCompact": "pre-compact",
}
"""The native command of each event."""

FILES: dict[Event, str] = {
    "SessionStart": "session_start",
    "SessionEnd": "session_end",
    "UserPromptSubmit": "user_prompt_submit",
    "PreToolUse": "pre_tool_use",
    "PostToolUse": "post_tool_use",
    "Stop": "stop",
    "SubagentStop": "subagent_stop",
    "PreCompact": "pre_compact",
}
"""The file name of each event's hook program."""

_ELSEWHERE: dict[str, Event] = {"userPromptSubmitted": "UserPromptSubmit", "agentStop": "Stop"}
"""Names that only one CLI uses."""

_BY_NAME: dict[str, Event] = {
    **{plain(event): event for event in COMMANDS},
    **{plain(command): event for event, command in COMMANDS.items()},
    **{plain(name): event for name, event in _ELSEWHERE.items()},
}


def event_of(name: str) -> Event | None:
    """The event of a name in any spelling: PreToolUse, preToolUse, pre_tool_use, pre-tool-use."""
    return _BY_NAME.get(plain(name))
