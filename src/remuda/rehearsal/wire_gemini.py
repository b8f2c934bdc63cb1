"""The Gemini API dialect: the path names the model and what is wanted of it, the body is the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask, Entry, Fault, Reply, Usage, digest
from remuda.rehearsal.wire import Frame, Schema, Wire, json_frame, pieces, tool

API = "gemini"

_PATH = re.compile(r"/v1(?:beta\d*)?/models/(?P<model>[^:]+):(?P<verb>\w+)")
_STREAMS = {"generateContent": False, "streamGenerateContent": True}
_STOPS = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_DAILY_QUOTA = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
}
"""What this API says beside a 429 when waiting does not help."""


class _FunctionResponse(Struct, frozen=True):
    response: dict[str, object] = {}


class _Part(Struct, frozen=True, rename="camel"):
    text: str | None = None
    function_response: _FunctionResponse | None = None


class _Content(Struct, frozen=True):
    role: str = "user"
    parts: list[_Part] = []


class _Function(Struct, frozen=True, rename="camel"):
    name: str
    parameters: Schema | None = None
    parameters_json_schema: Schema | None = None


class _Tool(Struct, frozen=True, rename="camel"):
    function_declarations: list[_Function] = []


class _Request(Struct, frozen=True, rename="camel"):
    contents: list[_Content]
    system_instruction: _Content | None = None
    tools: list[_Tool] = []


def wire_at(path: str) -> Wire | None:
    """The dialect as it is spoken at a path, if it is: asking a model for an answer, whole or as a stream."""
    found = _PATH.fullmatch(path)
    if found is None or found["verb"] not in _STREAMS:
        return None
    return Wire(API, (path,), partial(decode, found["model"], _STREAMS[found["verb"]]), encode, error)


def counts_at(path: str) -> bool:
    """Whether a path asks for a token count."""
    found = _PATH.fullmatch(path)
    return found is not None and found["verb"] == "countTokens"


def decode(model: str, stream: bool, body: bytes) -> Ask:
    """Read a request to generate content."""
    request = msgspec.json.decode(body, type=_Request)
    said = digest([entry for content in request.contents for entry in _entries(content)])
    functions = [function for each in request.tools for function in each.function_declarations]
    return Ask(
        model=model,
        stream=stream,
        system="\n".join(_texts(request.system_instruction)) if request.system_instruction else "",
        prompt=said.prompt,
        user_texts=said.user_texts,
        turn=said.turn,
        tool_results=said.tool_results,
        tools=tuple(tool(each.name, each.parameters_json_schema or each.parameters) for each in functions),
    )


def _entries(content: _Content) -> Iterator[Entry]:
    if content.role == "model":
        yield Entry("assistant")
        return
    for part in content.parts:
        if part.function_response is not None:
            yield Entry("result", _outcome(part.function_response.response))
        elif part.text is not None:
            yield Entry("user", part.text)


def _texts(content: _Content) -> list[str]:
    return [part.text for part in content.parts if part.text is not None]


def _outcome(response: dict[str, object]) -> str:
    """A function's answer is an object; its text is under one of two customary keys."""
    said = response.get("output", response.get("error"))
    return said if isinstance(said, str) else msgspec.json.encode(response).decode()


def encode(reply: Reply, ask: Ask) -> bytes | Iterator[Frame]:
    """Write a reply as one response, or as a stream of them that belong together."""
    if ask.stream:
        return _stream(reply, ask)
    return msgspec.json.encode(_response(reply, ask, _parts(reply), last=True))


def _parts(reply: Reply) -> list[dict[str, object]]:
    thought: list[dict[str, object]] = [{"text": reply.thought, "thought": True}] if reply.thought else []
    text: list[dict[str, object]] = [{"text": reply.text}] if reply.text else []
    return [*thought, *text, *_calls(reply)]


def _calls(reply: Reply) -> list[dict[str, object]]:
    return [
        {
            "functionCall": {
                "id": f"call_{call.id}",
                "name": call.name,
                "args": msgspec.Raw(call.arguments.encode()),
            }
        }
        for call in reply.calls
    ]


def _response(reply: Reply, ask: Ask, parts: list[dict[str, object]], *, last: bool) -> dict[str, object]:
    candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}, "index": 0}
    response: dict[str, object] = {
        "candidates": [candidate],
        "modelVersion": ask.model,
        "responseId": reply.id,
    }
    if not last:
        return response
    candidate["finishReason"] = _STOPS[reply.stop]
    return response | {"usageMetadata": _usage(reply.usage)}


def _usage(usage: Usage) -> dict[str, object]:
    """This API counts cached tokens inside the prompt, and has no count of cache writes."""
    return {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output,
        "cachedContentTokenCount": usage.cache_read,
    }


def _stream(reply: Reply, ask: Ask) -> Iterator[Frame]:
    def frame(parts: list[dict[str, object]], *, last: bool = False, text: bool = False) -> Frame:
        return json_frame(_response(reply, ask, parts, last=last), text=text)

    for piece in pieces(reply.thought):
        yield frame([{"text": piece, "thought": True}])
    for piece in pieces(reply.text):
        yield frame([{"text": piece}], text=True)
    yield frame(_calls(reply), last=True)


def error(fault: Fault) -> bytes:
    """The error body, with the status word Google pairs with the number unless the code is such a word."""
    usual = _STATUSES.get(fault.status, "UNKNOWN" if fault.status < 500 else "INTERNAL")
    status = fault.code if fault.code in _STATUSES.values() else usual
    problem: dict[str, object] = {"code": fault.status, "message": fault.message, "status": status}
    if fault.code == "insufficient_quota":
        problem["details"] = [_DAILY_QUOTA]
    return msgspec.json.encode({"error": problem})


def count(body: bytes) -> bytes:
    """The answer to a token count: a rough one, four bytes a token."""
    return msgspec.json.encode({"totalTokens": max(1, len(body) // 4)})
