"""The conversation with the model, in the shapes of the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct


class Usage(Struct, frozen=True):
    """Token counts of one or more model calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
        )


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    """Something said."""

    text: str


class Thinking(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Something thought; it goes back to the model with its signature, as the API asks."""

    thinking: str
    signature: str = ""


class ToolUse(Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A tool call the model wants."""

    id: str
    name: str
    input: dict[str, object]


class ToolResult(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """The answer to a tool call."""

    tool_use_id: str
    content: str
    is_error: bool = False


Block = Text | Thinking | ToolUse | ToolResult


class Message(Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]

    @property
    def text(self) -> str:
        """Everything said in the message."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The tool calls of the message."""
        return tuple(block for block in self.content if isinstance(block, ToolUse))


def unanswered(messages: Iterable[Message]) -> tuple[ToolResult, ...]:
    """Results for calls that an interruption left open: the API takes no further message without them."""
    last = next(reversed(tuple(messages)), None)
    calls = last.calls if last else ()
    return tuple(ToolResult(call.id, "Interrupted before it ended.", is_error=True) for call in calls)


class ToolSpec(Struct, frozen=True):
    """A tool as offered to the model."""

    name: str
    description: str
    input_schema: dict[str, object]


class Request(Struct, frozen=True, omit_defaults=True):
    """One model request; always streamed."""

    model: str
    max_tokens: int
    stream: bool
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
