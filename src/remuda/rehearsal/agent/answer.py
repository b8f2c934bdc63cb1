"""An answer of the model, put together from the events of its stream."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from remuda.rehearsal.agent.lines import Emit, Said, Thought
from remuda.rehearsal.agent.messages import Block, Message, Text, Thinking, ToolUse, Usage


class Answer(Struct, frozen=True):
    """What the model said, why it stopped, and what that took."""

    message: Message
    stop_reason: str
    usage: Usage


class Trouble(Struct, frozen=True):
    """An error in the API's words."""

    message: str
    type: str = ""


class _Counts(Struct, frozen=True):
    """Token counts as an event gives them: those it does not mention stay as they were."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Opening(Struct, frozen=True):
    type: str
    id: str = ""
    name: str = ""


class _Delta(Struct, frozen=True):
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Started(Struct, frozen=True):
    usage: _Counts = _Counts()


class StreamEvent(Struct, frozen=True):
    """Any event of the stream; events of a type unknown here carry nothing that is read."""

    type: str
    index: int = 0
    message: _Started | None = None
    content_block: _Opening | None = None
    delta: _Delta | None = None
    usage: _Counts | None = None
    error: Trouble | None = None


class _Part:
    """A block that is still arriving."""

    def __init__(self, opening: _Opening) -> None:
        self.opening = opening
        self.content: list[str] = []
        self.signature = ""

    def block(self) -> Block | None:
        """The finished block; None for a kind that is of no use here, or for an empty one."""
        content = "".join(self.content)
        match self.opening.type:
            case "tool_use":
                arguments = msgspec.json.decode(content or "{}", type=dict[str, object])
                return ToolUse(self.opening.id, self.opening.name, arguments)
            case "text" if content:
                return Text(content)
            case "thinking" if content:
                return Thinking(content, self.signature)
        return None


class Assembly:
    """Collects the events of one answer and passes its words on as they come."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._parts: dict[int, _Part] = {}
        self._usage = Usage()
        self._stop_reason = ""
        self.has_spoken = False

    def add(self, event: StreamEvent) -> None:
        """Take in one event."""
        if event.message:
            self._count(event.message.usage)
        if event.usage:
            self._count(event.usage)
        if event.content_block:
            self._parts[event.index] = _Part(event.content_block)
        if event.delta:
            self._stop_reason = event.delta.stop_reason or self._stop_reason
            self._extend(event.index, event.delta)

    def _extend(self, index: int, delta: _Delta) -> None:
        part = self._parts.get(index)
        if part is None:
            return
        part.content.append(delta.text or delta.thinking or delta.partial_json)
        part.signature += delta.signature
        if delta.text or delta.thinking:
            self.has_spoken = True
            self._emit(Said(delta.text) if delta.text else Thought(delta.thinking))

    def _count(self, counts: _Counts) -> None:
        said = {name: count for name, count in msgspec.structs.asdict(counts).items() if count is not None}
        self._usage = msgspec.structs.replace(self._usage, **said)

    def finish(self) -> Answer:
        """The whole answer; raises `msgspec.DecodeError` when a tool call's input is not a JSON object."""
        blocks = [self._parts[index].block() for index in sorted(self._parts)]
        content = tuple(block for block in blocks if block is not None)
        return Answer(Message("assistant", content), self._stop_reason, self._usage)
