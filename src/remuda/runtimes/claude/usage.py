"""Claude Code's transcripts: a JSONL file per session below ``projects/``, others for its subagents.

One answer of the model is several lines, one per content block, with the same message and request; sessions
that were continued or forked repeat the lines of the first one. Input is counted without what was cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from glob import escape
from pathlib import Path

import msgspec

from remuda.runtimes.claude.command import VERSION
from remuda.runtimes.transcripts import (
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    files_below,
    milliseconds,
    newest,
    prompts_in_lines,
    read_lines,
)

_INVENTED = "<synthetic>"
"""The model of messages that the program wrote itself."""


class _Details(msgspec.Struct, gc=False):
    thinking_tokens: int = 0


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    output_tokens_details: _Details | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = ""
    model: str | None = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct, gc=False, rename="camel"):
    """What usage needs of any line; all else, the texts above all, is passed over undecoded."""

    type: str | None = ""
    message: _Message | str | None = None
    request_id: str | None = ""
    session_id: str | None = ""
    timestamp: str | None = ""
    cwd: str | None = ""
    cost: float | None = msgspec.field(default=None, name="costUSD")


class _Begun(msgspec.Struct):
    """What a file's first lines tell of those that follow: the folder that the session began in."""

    project: str = ""


_LINE = msgspec.json.Decoder(_Line)
_BEGUN = msgspec.json.Decoder(_Begun)


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, _LINE)
    begun = _BEGUN.decode(mark.state) if mark.state else _Begun(source.project)
    session = source.session or source.path.stem
    answers: list[Answer] = []
    last: _Message | None = None
    for line in lines.items:
        if not begun.project and line.cwd:
            begun.project = line.cwd
        if line.type != "assistant" or not isinstance(line.message, _Message) or not line.message.usage:
            continue
        if line.message != last:
            last = line.message
            answers.append(_answer(line, last, line.message.usage, session, begun.project))
    mark = Mark(lines.position, msgspec.json.encode(begun))
    return Batch(answers, mark, lines.skipped, lines.more, lines.trouble)


def _answer(line: _Line, message: _Message, usage: _Usage, session: str, project: str) -> Answer:
    time = line.timestamp or ""
    details = usage.output_tokens_details
    return Answer(
        f"{message.id}:{line.request_id or ''}" if message.id else f"{session}:{time}",
        milliseconds(time),
        line.session_id or session,
        project,
        "" if message.model == _INVENTED else message.model or "",
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
        details.thinking_tokens if details else 0,
        line.cost,
    )


def projects(places: Places) -> Path | None:
    """The folder that holds one folder per working folder."""
    home = places.home("CLAUDE_CONFIG_DIR", ".claude")
    return home / "projects" if home else None


def sources(places: Places) -> Iterator[Source]:
    """All sessions, and those of their subagents."""
    if folder := projects(places):
        yield from (Source(path) for path in files_below(folder, ".jsonl"))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last for a folder."""
    folder = projects(places)
    if folder is None:
        return None
    if wanted.session:
        path = next(folder.glob(f"*/{escape(wanted.session)}.jsonl"), None)
    else:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(wanted.cwd or ""))
        path = newest((folder / slug).glob("*.jsonl"), wanted.since)
    return Source(path, path.stem) if path else None


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Spoken(msgspec.Struct):
    content: str | list[_Block] = ""


class _Prompt(msgspec.Struct, rename="camel"):
    """What prompts need of any line."""

    type: str | None = ""
    message: _Spoken | str | None = None
    is_meta: bool | None = False
    is_sidechain: bool | None = False


_PROMPT = msgspec.json.Decoder(_Prompt)


def _text(line: _Prompt) -> str | None:
    if line.type != "user" or line.is_meta or line.is_sidechain or not isinstance(line.message, _Spoken):
        return None
    content = line.message.content
    if isinstance(content, str):
        return content
    texts = [block.text for block in content if block.type == "text"]
    return "".join(texts) if texts else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark; what tools answered is none of it."""
    return prompts_in_lines(source.path, mark, _PROMPT, _text)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified=VERSION,
    cached="apart",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
)
