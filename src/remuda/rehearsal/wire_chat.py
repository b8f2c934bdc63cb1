"""The OpenAI Chat Completions dialect."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask, Entry, Reply, Usage, digest
from remuda.rehearsal.wire import Frame, Schema, Wire, json_frame, pieces, tool
from remuda.rehearsal.wire_openai import error

_STOPS = {"end": "stop", "tools": "tool_calls", "length": "length"}


class _Part(Struct, frozen=True):
    text: str | None = None


class _Message(Struct, frozen=True):
    role: str
    content: str | list[_Part] | None = None


class _Function(Struct, frozen=True):
    name: str
    parameters: Schema | None = None


class _Tool(Struct, frozen=True):
    function: _Function | None = None
    custom: _Function | None = None


class _Request(Struct, frozen=True):
    messages: list[_Message]
    model: str = ""
    stream: bool | None = None
    tools: list[_Tool] | None = None


def decode(body: bytes) -> Ask:
    """Read a Chat Completions request."""
    request = msgspec.json.decode(body, type=_Request)
    said = digest([entry for message in request.messages for entry in _entries(message)])
    orders = [message for message in request.messages if message.role in ("system", "developer")]
    functions = [each.function or each.custom for each in request.tools or ()]
    return Ask(
        model=request.model,
        stream=bool(request.stream),
        system="\n".join(text for message in orders for text in _texts(message)),
        prompt=said.prompt,
        user_texts=said.user_texts,
        turn=said.turn,
        tool_results=said.tool_results,
        tools=tuple(tool(each.name, each.parameters) for each in functions if each),
    )


def _entries(message: _Message) -> Iterator[Entry]:
    if message.role == "assistant":
        yield Entry("assistant")
    elif message.role == "tool":
        yield Entry("result", "\n".join(_texts(message)))
    elif message.role == "user":
        for text in _texts(message):
            yield Entry("user", text)


def _texts(message: _Message) -> list[str]:
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content or () if part.text is not None]


def encode(reply: Reply, ask: Ask) -> bytes | Iterator[Frame]:
    """Write a reply as one completion, or as the chunks of one."""
    if ask.stream:
        return _stream(reply, ask)
    message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _STOPS[reply.stop]}
    envelope = _envelope(reply, ask, "chat.completion")
    return msgspec.json.encode(envelope | {"choices": [choice], "usage": _usage(reply.usage)})


def _envelope(reply: Reply, ask: Ask, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 0, "model": ask.model}


def _calls(reply: Reply) -> list[dict[str, object]]:
    return [
        {
            "id": f"call_{call.id}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.calls
    ]


def _usage(usage: Usage) -> dict[str, object]:
    """This API counts cached tokens inside the prompt, and has no count of cache writes."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }


def _stream(reply: Reply, ask: Ask) -> Iterator[Frame]:
    envelope = _envelope(reply, ask, "chat.completion.chunk")

    def chunk(delta: dict[str, object], finish: str | None = None, *, text: bool = False) -> Frame:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json_frame(envelope | {"choices": [choice]}, text=text)

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.thought):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(reply.text):
        yield chunk({"content": piece}, text=True)
    for index, call in enumerate(_calls(reply)):
        yield chunk({"tool_calls": [{"index": index} | call]})
    yield chunk({}, _STOPS[reply.stop])
    yield json_frame(envelope | {"choices": [], "usage": _usage(reply.usage)})
    yield Frame(b"[DONE]")


WIRE = Wire("openai-chat", ("/v1/chat/completions", "/chat/completions"), decode, encode, error)
