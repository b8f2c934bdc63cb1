"""What passes between a wire dialect and the script: an `Ask` comes in, a `Reply` or a `Fault` goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Stop = Literal["end", "tools", "length"]
Speaker = Literal["user", "assistant", "result"]

NOTES = (
    "<system-reminder>",
    "<system_reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
    "<<<BEGIN_",
)
"""Openings of user-role text that agent CLIs write themselves; never a person's prompt."""


class Tool(Struct, frozen=True):
    """A tool the request offers; `properties` maps each input name to its JSON type ('' when unsaid)."""

    name: str
    properties: dict[str, str] = {}
    namespace: str = ""


class Ask(Struct, frozen=True):
    """One model request, the same whichever dialect it came in.

    `turn` and `tool_results` count from the last real prompt, so a retry asks exactly the same thing again.
    """

    model: str
    stream: bool
    system: str
    prompt: str
    user_texts: tuple[str, ...]
    turn: int
    tool_results: tuple[str, ...]
    tools: tuple[Tool, ...]


class Usage(Struct, frozen=True, forbid_unknown_fields=True):
    """Token counts to report; the defaults are odd on purpose, so that a mix-up shows."""

    input: int = 111
    output: int = 22
    cache_read: int = 5
    cache_write: int = 7


class ToolCall(Struct, frozen=True):
    """A tool call to request; `arguments` is JSON text, which every dialect carries in some form."""

    id: str
    name: str
    arguments: str
    namespace: str = ""


class Reply(Struct, frozen=True):
    """What the scripted model says; `id` is unique and each dialect adds its own prefixes."""

    id: str
    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop: Stop = "end"


class Fault(Struct, frozen=True):
    """An HTTP error to answer with, put into words by the dialect; `code` overrides its usual error code."""

    status: int
    message: str = "The rehearsal answers with an error here, as its scenario says."
    code: str = ""
    headers: dict[str, str] = {}


class Entry(Struct, frozen=True):
    """One step of a conversation, reduced to who spoke and the text."""

    speaker: Speaker
    text: str = ""


class Digest(Struct, frozen=True):
    """The part of an `Ask` that follows from the conversation alone."""

    prompt: str
    user_texts: tuple[str, ...]
    turn: int
    tool_results: tuple[str, ...]


def digest(entries: Sequence[Entry]) -> Digest:
    """Find the last real prompt and count what happened since."""
    texts = [(place, entry.text) for place, entry in enumerate(entries) if entry.speaker == "user"]
    real = [(place, text) for place, text in texts if not text.lstrip().startswith(NOTES)]
    place, prompt = (real or texts or [(-1, "")])[-1]
    since = entries[place + 1 :]
    return Digest(
        prompt=prompt,
        user_texts=tuple(text for _, text in texts),
        turn=_runs(since),
        tool_results=tuple(entry.text for entry in since if entry.speaker == "result"),
    )


def _runs(entries: Sequence[Entry]) -> int:
    """Assistant turns: neighbouring assistant entries are pieces of one turn."""
    speakers = [entry.speaker for entry in entries]
    return sum(
        now == "assistant" and before != "assistant"
        for before, now in zip([None, *speakers], speakers, strict=False)
    )
