"""Entries of a conversation in the format that Pi writes and OpenClaw took over: one JSON object each, the
first of them about the session. Cached input is counted apart from input whatever the provider."""

from __future__ import annotations

import msgspec

from remuda.runtimes.transcripts import Answer, decoded, milliseconds


class _Cost(msgspec.Struct, gc=False):
    total: float | None = None


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    reasoning: int | None = 0
    cost: _Cost | None = None


class _Message(msgspec.Struct, gc=False, rename="camel"):
    role: str | None = ""
    model: str | None = ""
    usage: _Usage | None = None
    response_id: str | None = ""


class Entry(msgspec.Struct, gc=False):
    """What all entries have in common; ``id`` and ``cwd`` of the first are those of the session."""

    type: str | None = ""
    id: str | None = ""
    timestamp: str | None = ""
    cwd: str | None = ""
    message: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct):
    type: str | None = ""
    text: str | None = ""


class _Spoken(msgspec.Struct):
    role: str | None = ""
    content: str | list[_Block] | None = None


ENTRY = msgspec.json.Decoder(Entry)
_MESSAGE = msgspec.json.Decoder(_Message)
_SPOKEN = msgspec.json.Decoder(_Spoken)


def answer(entry: Entry, session: str, project: str) -> Answer | None:
    """The answer that an entry tells of, if it does. A forked session repeats the entries of the first one,
    so the key is the provider's own name of the answer. A model without known prices costs 0, which is no
    price."""
    if entry.type != "message":
        return None
    message = decoded(entry.message, _MESSAGE)
    if message is None or message.role != "assistant" or message.usage is None:
        return None
    usage = message.usage
    found = Answer(
        message.response_id or f"{entry.id}:{entry.timestamp}",
        milliseconds(entry.timestamp or ""),
        session,
        project,
        message.model or "",
        usage.input or 0,
        usage.output or 0,
        usage.cache_read or 0,
        usage.cache_write or 0,
        usage.reasoning or 0,
        (usage.cost.total or None) if usage.cost else None,
    )
    return found if found.tokens else None


def prompt(entry: Entry) -> str | None:
    """What the user said in an entry, if it is that."""
    if entry.type != "message":
        return None
    spoken = decoded(entry.message, _SPOKEN)
    if spoken is None or spoken.role != "user" or spoken.content is None:
        return None
    if isinstance(spoken.content, str):
        return spoken.content
    texts = [block.text or "" for block in spoken.content if block.type == "text"]
    return "".join(texts) if texts else None
