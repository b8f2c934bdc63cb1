"""The OpenAI Responses dialect."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask, Entry, Reply, Tool, Usage, digest
from remuda.rehearsal.wire import Frame, Schema, Wire, json_frame, pieces, tool
from remuda.rehearsal.wire_openai import error

_Item = dict[str, object]


class _Part(Struct, frozen=True):
    text: str | None = None


class _Input(Struct, frozen=True):
    """An input item of any type; a message may leave its type out."""

    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None
    output: str | list[_Part] | None = None


class _Tool(Struct, frozen=True):
    type: str
    name: str = ""
    parameters: Schema | None = None
    tools: list[_Tool] = []


class _Request(Struct, frozen=True):
    input: str | list[_Input]
    model: str = ""
    stream: bool | None = None
    instructions: str | None = None
    tools: list[_Tool] | None = None


def decode(body: bytes) -> Ask:
    """Read a Responses request."""
    request = msgspec.json.decode(body, type=_Request)
    whole = request.input
    items = [_Input(role="user", content=whole)] if isinstance(whole, str) else whole
    said = digest([entry for item in items for entry in _entries(item)])
    orders = [text for item in items if item.role in ("system", "developer") for text in _texts(item.content)]
    return Ask(
        model=request.model,
        stream=bool(request.stream),
        system="\n".join(filter(None, [request.instructions, *orders])),
        prompt=said.prompt,
        user_texts=said.user_texts,
        turn=said.turn,
        tool_results=said.tool_results,
        tools=tuple(found for each in request.tools or () for found in _tools(each)),
    )


def _entries(item: _Input) -> Iterator[Entry]:
    if item.type.endswith("_output"):
        yield Entry("result", "\n".join(_texts(item.output)))
    elif item.type != "message" or item.role == "assistant":
        yield Entry("assistant")
    elif item.role == "user":
        for text in _texts(item.content):
            yield Entry("user", text)


def _texts(content: str | list[_Part] | None) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part.text for part in content or () if part.text is not None]


def _tools(offered: _Tool) -> Iterator[Tool]:
    """A namespace offers the tools inside it; built-in tools have only a type."""
    if offered.type == "namespace":
        for each in offered.tools:
            yield tool(each.name, each.parameters, offered.name)
    else:
        yield tool(offered.name or offered.type, offered.parameters)


def encode(reply: Reply, ask: Ask) -> bytes | Iterator[Frame]:
    """Write a reply as one response object, or as the event stream of one."""
    if ask.stream:
        return _stream(reply, ask)
    return msgspec.json.encode(_response(reply, ask, _items(reply), _status(reply)))


def _status(reply: Reply) -> str:
    return "incomplete" if reply.stop == "length" else "completed"


def _response(reply: Reply, ask: Ask, output: list[_Item], status: str) -> _Item:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": ask.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if status == "in_progress" else _usage(reply.usage),
    }


def _usage(usage: Usage) -> dict[str, object]:
    """This API counts cached tokens inside the input."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _items(reply: Reply) -> list[_Item]:
    items: list[_Item] = []
    if reply.thought:
        summary = [{"type": "summary_text", "text": reply.thought}]
        items.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": summary})
    if reply.text:
        content = [_text_part(reply.text)]
        message = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": "completed"}
        items.append(message | {"content": content})
    for call in reply.calls:
        function: _Item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": f"call_{call.id}"}
        function |= {"name": call.name, "arguments": call.arguments, "status": "completed"}
        items.append(function | ({"namespace": call.namespace} if call.namespace else {}))
    return items


def _text_part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": []}


def _stream(reply: Reply, ask: Ask) -> Iterator[Frame]:
    """Number the events of the reply and write them as frames."""
    for number, (event, is_text) in enumerate(_events(reply, ask)):
        yield json_frame(event | {"sequence_number": number}, str(event["type"]), text=is_text)


def _events(reply: Reply, ask: Ask) -> Iterator[tuple[_Item, bool]]:
    opening = _response(reply, ask, [], "in_progress")
    yield {"type": "response.created", "response": opening}, False
    yield {"type": "response.in_progress", "response": opening}, False
    for index, item in enumerate(_items(reply)):
        place: _Item = {"item_id": item["id"], "output_index": index}
        begun = {"status": "in_progress"} if "status" in item else {}
        opened = item | begun | _emptied(item)
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}, False
        for event in _inside(item, reply):
            yield event | place, event["type"] == "response.output_text.delta"
        yield {"type": "response.output_item.done", "output_index": index, "item": item}, False
    status = _status(reply)
    yield {"type": f"response.{status}", "response": _response(reply, ask, _items(reply), status)}, False


def _emptied(item: _Item) -> _Item:
    """What an item's opening event shows in place of the content that follows."""
    empty: dict[str, _Item] = {
        "reasoning": {"summary": []},
        "message": {"content": []},
        "function_call": {"arguments": ""},
    }
    return empty[str(item["type"])]


def _inside(item: _Item, reply: Reply) -> Iterator[_Item]:
    match item:
        case {"type": "reasoning"}:
            part = {"type": "summary_text", "text": reply.thought}
            at: _Item = {"summary_index": 0}
            blank = part | {"text": ""}
            yield {"type": "response.reasoning_summary_part.added", "part": blank} | at
            for piece in pieces(reply.thought):
                yield {"type": "response.reasoning_summary_text.delta", "delta": piece} | at
            yield {"type": "response.reasoning_summary_text.done", "text": reply.thought} | at
            yield {"type": "response.reasoning_summary_part.done", "part": part} | at
        case {"type": "message"}:
            at = {"content_index": 0}
            yield {"type": "response.content_part.added", "part": _text_part("")} | at
            for piece in pieces(reply.text):
                yield {"type": "response.output_text.delta", "delta": piece} | at
            yield {"type": "response.output_text.done", "text": reply.text} | at
            yield {"type": "response.content_part.done", "part": _text_part(reply.text)} | at
        case {"type": "function_call", "arguments": str(arguments)}:
            for piece in pieces(arguments):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            yield {"type": "response.function_call_arguments.done", "arguments": arguments}


WIRE = Wire("openai-responses", ("/v1/responses", "/responses"), decode, encode, error)
