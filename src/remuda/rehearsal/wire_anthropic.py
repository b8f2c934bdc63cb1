"""The Anthropic Messages dialect."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask, Entry, Fault, Reply, Usage, digest
from remuda.rehearsal.wire import Frame, Schema, Wire, json_frame, pieces, tool

COUNT_PATHS = ("/v1/messages/count_tokens",)

_STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class _Block(Struct, frozen=True):
    type: str = "text"
    text: str | None = None
    content: str | list[_Block] | None = None


class _Message(Struct, frozen=True):
    role: str
    content: str | list[_Block]


class _Tool(Struct, frozen=True):
    name: str
    input_schema: Schema | None = None


class _Request(Struct, frozen=True):
    messages: list[_Message]
    model: str = ""
    stream: bool | None = None
    system: str | list[_Block] | None = None
    tools: list[_Tool] | None = None


def decode(body: bytes) -> Ask:
    """Read a Messages request."""
    request = msgspec.json.decode(body, type=_Request)
    said = digest([entry for message in request.messages for entry in _entries(message)])
    asides = [_flat(message.content) for message in request.messages if message.role == "system"]
    return Ask(
        model=request.model,
        stream=bool(request.stream),
        system="\n".join(filter(None, [_flat(request.system), *asides])),
        prompt=said.prompt,
        user_texts=said.user_texts,
        turn=said.turn,
        tool_results=said.tool_results,
        tools=tuple(tool(each.name, each.input_schema) for each in request.tools or ()),
    )


def _entries(message: _Message) -> Iterator[Entry]:
    if message.role == "assistant":
        yield Entry("assistant")
    elif message.role == "user":
        blocks = [_Block(text=message.content)] if isinstance(message.content, str) else message.content
        for block in blocks:
            if block.type == "tool_result":
                yield Entry("result", _flat(block.content))
            elif block.type == "text":
                yield Entry("user", block.text or "")


def _flat(content: str | list[_Block] | None) -> str:
    if isinstance(content, list):
        return "\n".join(block.text for block in content if block.text is not None)
    return content or ""


def encode(reply: Reply, ask: Ask) -> bytes | Iterator[Frame]:
    """Write a reply as one message, or as the event stream of one."""
    if ask.stream:
        return _stream(reply, ask)
    message = _message(reply, ask, _blocks(reply))
    message |= {"stop_reason": _STOPS[reply.stop], "usage": _usage(reply.usage)}
    return msgspec.json.encode(message)


def _message(reply: Reply, ask: Ask, content: list[dict[str, object]]) -> dict[str, object]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(reply.usage) | {"output_tokens": 1},
    }


def _blocks(reply: Reply) -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = []
    if reply.thought:
        blocks.append({"type": "thinking", "thinking": reply.thought, "signature": "rehearsal"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        arguments = msgspec.Raw(call.arguments.encode())
        blocks.append({"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": arguments})
    return blocks


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


def _stream(reply: Reply, ask: Ask) -> Iterator[Frame]:
    yield _event("message_start", message=_message(reply, ask, []))
    for index, block in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=block | _emptied(block))
        for delta in _deltas(block):
            is_text = delta["type"] == "text_delta"
            yield _event("content_block_delta", text=is_text, index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": _STOPS[reply.stop], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=_usage(reply.usage))
    yield _event("message_stop")


def _emptied(block: dict[str, object]) -> dict[str, object]:
    """What a block's opening event shows in place of the content that follows in deltas."""
    empty: dict[str, dict[str, object]] = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
    }
    return empty[str(block["type"])]


def _deltas(block: dict[str, object]) -> Iterator[dict[str, object]]:
    match block:
        case {"type": "thinking", "thinking": str(thought), "signature": str(signature)}:
            for piece in pieces(thought):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": signature}
        case {"type": "text", "text": str(text)}:
            for piece in pieces(text):
                yield {"type": "text_delta", "text": piece}
        case {"type": "tool_use", "input": msgspec.Raw() as arguments}:
            for piece in pieces(bytes(arguments).decode()):
                yield {"type": "input_json_delta", "partial_json": piece}


def _event(kind: str, *, text: bool = False, **fields: object) -> Frame:
    return json_frame({"type": kind, **fields}, kind, text=text)


def error(fault: Fault) -> bytes:
    """The error body; `code` counts only when it is one of this API's own `…_error` types."""
    usual = _ERRORS.get(fault.status, "api_error" if fault.status >= 500 else "invalid_request_error")
    kind = fault.code if fault.code.endswith("_error") else usual
    return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": fault.message}})


def count(body: bytes) -> bytes:
    """The answer to a token count: a rough one, four bytes a token."""
    return msgspec.json.encode({"input_tokens": max(1, len(body) // 4)})


WIRE = Wire("anthropic-messages", ("/v1/messages",), decode, encode, error)
