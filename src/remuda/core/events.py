"""Events: what happens in a turn, shaped as the ``update`` of an ACP ``session/update``, and its result.

The field names of updates are ACP's (camelCase on the wire); the envelope and the result are ours.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.core.errors import ErrorKind

ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolStatus = Literal["pending", "in_progress", "completed", "failed"]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"]


class TextContent(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A text block."""

    text: str


class ToolContent(msgspec.Struct, frozen=True, tag_field="type", tag="content"):
    """What a tool call produced."""

    content: TextContent


class Update(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="sessionUpdate", rename="camel"
):
    """Base of everything that can happen in a turn."""


class MessageChunk(Update, frozen=True, tag="agent_message_chunk"):
    """A piece of the agent's answer."""

    content: TextContent


class ThoughtChunk(Update, frozen=True, tag="agent_thought_chunk"):
    """A piece of the agent's reasoning."""

    content: TextContent


class ToolCall(Update, frozen=True, tag="tool_call"):
    """The agent wants to do something."""

    tool_call_id: str
    title: str
    kind: ToolKind
    status: ToolStatus
    raw_input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ToolCallUpdate(Update, frozen=True, tag="tool_call_update"):
    """What became of a tool call."""

    tool_call_id: str
    status: ToolStatus
    content: list[ToolContent] = []


class Cost(msgspec.Struct, frozen=True):
    """Money, as ACP writes it."""

    amount: float
    currency: str = "USD"


class UsageUpdate(Update, frozen=True, tag="usage_update"):
    """How full the model's context is: tokens used, and the window's size (0 where it is not known)."""

    used: int
    size: int
    cost: Cost | None = None


AnyUpdate = MessageChunk | ThoughtChunk | ToolCall | ToolCallUpdate | UsageUpdate


def message(text: str) -> MessageChunk:
    """A message chunk of plain text."""
    return MessageChunk(content=TextContent(text))


def thought(text: str) -> ThoughtChunk:
    """A thought chunk of plain text."""
    return ThoughtChunk(content=TextContent(text))


def tool_output(call_id: str, status: ToolStatus, text: str = "") -> ToolCallUpdate:
    """The end of a tool call, with its output as text."""
    return ToolCallUpdate(
        tool_call_id=call_id, status=status, content=[ToolContent(TextContent(text))] if text else []
    )


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a turn, counted as the model's provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            *(
                a + b
                for a, b in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
            )
        )


class Failure(msgspec.Struct, frozen=True):
    """Why a turn failed."""

    kind: ErrorKind
    message: str


class Tried(msgspec.Struct, frozen=True):
    """An agent that was called before the one that answered, and why it did not."""

    agent: str
    error: Failure


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent did in a worktree of its own: a branch, and how it differs from where it began."""

    branch: str
    base: str
    path: str
    commits: int = 0
    files: int = 0
    insertions: int = 0
    deletions: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended. An acknowledgement is never a result.

    ``tried`` are the agents that were called in vain before; ``work`` is there for an isolated run.
    """

    stop_reason: StopReason
    text: str
    usage: Usage | None
    cost_usd: float | None
    exit_code: int | None
    error: Failure | None
    model: str | None = None
    runtime_session: str | None = None
    refused: tuple[str, ...] = ()
    tried: tuple[Tried, ...] = ()
    work: Work | None = None

    @classmethod
    def failed(cls, failure: Failure) -> Result:
        """The result of a turn that never began."""
        return cls(stop_reason="error", text="", usage=None, cost_usd=None, exit_code=None, error=failure)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that waits for a person's word: the guard neither allows nor denies it."""

    id: str
    tool: str
    title: str
    reason: str


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the event stream: an update, a question to a person, or the result that ends the turn."""

    v: int
    seq: int
    session: str
    agent: str
    time: str
    update: AnyUpdate | None = None
    question: Question | None = None
    result: Result | None = None
