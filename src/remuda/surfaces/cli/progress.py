"""Shows a running turn: readable lines for people, JSON lines for programs."""

from __future__ import annotations

import sys
from typing import TextIO

import msgspec

from remuda.core.events import Event, MessageChunk, Result, ThoughtChunk, ToolCall, ToolCallUpdate, Usage

_DIM, _BOLD, _RED, _PLAIN = "\033[2m", "\033[1m", "\033[31m", "\033[0m"


class JsonLines:
    """Every event as one line of JSON on standard output."""

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()

    def event(self, event: Event) -> None:
        line = self._encoder.encode(event).replace(b"\n", b" ")  # raw input may have been laid out over lines
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


class Progress:
    """Thoughts, tool calls and the closing summary go to ``talk``; the answer goes to standard output."""

    def __init__(self, talk: TextIO) -> None:
        import os

        self._talk = talk
        self._colour = talk.isatty() and not os.environ.get("NO_COLOR")
        self._live = talk.isatty() and sys.stdout.isatty()
        self._open: str | None = None

    def _paint(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self._colour else text

    def _say(self, text: str) -> None:
        self._close()
        self._talk.write(f"{text}\n")
        self._talk.flush()

    def _close(self) -> None:
        """End the line that chunks were written on."""
        if self._open is not None:
            self._talk.write(f"{_PLAIN if self._colour and self._open == 'thought' else ''}\n")
            self._open = None

    def event(self, event: Event) -> None:
        match event.update:
            case MessageChunk(content=content):
                self._chunk(content.text)
            case ThoughtChunk(content=content):
                self._thought(content.text)
            case ToolCall() as call:
                self._say(self._paint(_BOLD, f"→ {call.title}") + f" {_input(call)}")
            case ToolCallUpdate(status=status, content=content) if status in ("completed", "failed"):
                text = _short(content[0].content.text) if content else ""
                self._say(f"  {'✓' if status == 'completed' else '✗'} {self._paint(_DIM, text)}")
        if event.question is not None:
            asked = event.question
            self._say(
                self._paint(_BOLD, f"? {asked.tool} waits for your word ({asked.id})")
                + f": {_short(asked.title, 2000)} — {asked.reason}. 'remuda session approve' or 'reject'."
            )
        if event.result is not None:
            self._result(event, event.result)

    def _chunk(self, text: str) -> None:
        """Stream the answer as it grows, if somebody watches."""
        if self._live:
            if self._open != "message":
                self._close()
            sys.stdout.write(printable(text, keep="\n\t"))
            sys.stdout.flush()
            self._open = None if text.endswith("\n") else "message"

    def _thought(self, text: str) -> None:
        """Chunks of a thought follow each other on one line."""
        if self._open != "thought":
            self._close()
            self._talk.write(f"{_DIM if self._colour else ''}· ")
            self._open = "thought"
        self._talk.write(printable(text))
        self._talk.flush()

    def _result(self, event: Event, result: Result) -> None:
        if not self._live and result.text:
            sys.stdout.write(result.text.rstrip("\n") + "\n")
            sys.stdout.flush()
        if result.error is not None:
            self._say(
                self._paint(_RED, f"✗ {event.agent} failed ({result.error.kind})")
                + f": {result.error.message}"
            )
        for each in result.tried:
            self._say(self._paint(_DIM, f"  tried before: {each.agent} ({each.error.kind})"))
        if result.work is not None:
            work = result.work
            changed = f"{work.files} file(s) changed (+{work.insertions} -{work.deletions})"
            self._say(f"  {work.commits} commit(s), {changed} on the branch {work.branch}")
            self._say(f"  in {_short(work.path)}")
        if result.refused:
            self._say(
                f"! {len(result.refused)} tool call(s) refused: {', '.join(result.refused)}. "
                "Allow more by another --capability, or without one by --permission bypass."
            )
        if result.error is None or result.usage is not None:
            self._say(self._paint(_DIM, _summary(event, result)))


def _summary(event: Event, result: Result) -> str:
    parts = [event.agent]
    if result.model:
        parts.append(result.model)
    if result.usage is not None:
        parts.append(_tokens(result.usage))
    if result.cost_usd is not None:
        parts.append(f"${result.cost_usd:.4f}")
    return f"— {' · '.join(parts)} · session {event.session}"


def _tokens(usage: Usage) -> str:
    cached = f" (+{usage.cached_read_tokens} cached)" if usage.cached_read_tokens else ""
    return f"{usage.input_tokens} tokens in{cached}, {usage.output_tokens} out"


def _input(call: ToolCall) -> str:
    """The telling part of a tool's input: its command or path, else the JSON."""
    if isinstance(call.raw_input, msgspec.UnsetType):
        return ""
    try:
        fields = msgspec.json.decode(call.raw_input, type=dict[str, object])
    except msgspec.MsgspecError:
        return ""
    telling = next(
        (fields[key] for key in ("command", "file_path", "path", "pattern", "url") if key in fields), None
    )
    text = telling if isinstance(telling, str) else bytes(call.raw_input).decode("utf-8", "replace")
    return "" if text == call.title else _short(text)


def _short(text: str, limit: int = 160) -> str:
    """One line, no control characters, at most ``limit`` long."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def printable(text: str, keep: str = "") -> str:
    """Text that cannot steer the terminal."""
    return "".join(char if char.isprintable() or char in keep else " " for char in text)
