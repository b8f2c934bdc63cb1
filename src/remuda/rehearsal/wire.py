"""What a wire dialect is, and the few things all dialects share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask, Fault, Reply, Tool


class Frame(Struct, frozen=True):
    """One server-sent event; `text` marks a piece of the answer's text, the frames a scenario can pace."""

    data: bytes
    event: str = ""
    text: bool = False

    def render(self) -> bytes:
        """The event as it goes over the wire."""
        name = f"event: {self.event}\n".encode() if self.event else b""
        return name + b"data: " + self.data + b"\n\n"


class Wire(Struct, frozen=True):
    """A dialect of model API. Pure: bytes in, bytes or frames out.

    `decode` raises `ValueError` or `RecursionError`, as msgspec does, for a body that is not of the dialect.
    """

    api: str
    paths: tuple[str, ...]
    decode: Callable[[bytes], Ask]
    encode: Callable[[Reply, Ask], bytes | Iterator[Frame]]
    error: Callable[[Fault], bytes]


class Schema(Struct, frozen=True):
    """The part of a tool's JSON Schema that matters here."""

    properties: dict[str, object] = {}


def tool(name: str, schema: Schema | None, namespace: str = "") -> Tool:
    """A tool with the JSON type of each of its properties."""
    properties = schema.properties if schema else {}
    return Tool(name, {key: _json_type(value) for key, value in properties.items()}, namespace)


def _json_type(schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), None)
    return kind.lower() if isinstance(kind, str) else ""


def json_frame(payload: dict[str, object], event: str = "", *, text: bool = False) -> Frame:
    """A frame that carries one JSON object."""
    return Frame(msgspec.json.encode(payload), event, text)


def pieces(text: str, most: int = 64, least_width: int = 12) -> Iterator[str]:
    """Cut a text into at most `most` pieces, as a streaming model would send it."""
    width = max(least_width, -(-len(text) // most))
    for start in range(0, len(text), width):
        yield text[start : start + width]
