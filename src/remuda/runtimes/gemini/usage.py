"""Gemini's transcripts: a JSONL file per session, in a folder per project that has the project's path in it.

An answer is written again, with the same id, when its tools have run. Lines with ``$set`` patch the
conversation, and repeat all of it when a session is continued: what they hold was told before. Cached input
is part of the input it tells; thoughts are not part of the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path

import msgspec

from remuda.runtimes.transcripts import (
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    decoded,
    latest,
    milliseconds,
    prompts_in_lines,
    read_lines,
)

_CHATS = ".gemini/tmp/*/chats"
_ROOT = ".project_root"
_LONGEST_PATH = 65536


class _Tokens(msgspec.Struct, gc=False):
    input: int | None = 0
    output: int | None = 0
    cached: int | None = 0
    thoughts: int | None = 0
    tool: int | None = 0


class _Line(msgspec.Struct, gc=False, rename="camel"):
    """A message, or what is known of the session as a whole."""

    type: str | None = ""
    id: str | None = ""
    timestamp: str | None = ""
    session_id: str | None = ""
    model: str | None = ""
    tokens: _Tokens | None = None


class _Known(msgspec.Struct):
    """What the first line tells of those that follow, and the file's folder of the project."""

    session: str = ""
    project: str = ""


_LINE = msgspec.json.Decoder(_Line)
_KNOWN = msgspec.json.Decoder(_Known)


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    lines = read_lines(source.path, mark.position, _LINE)
    known = _KNOWN.decode(mark.state) if mark.state else _Known(source.session, _project(source))
    answers: list[Answer] = []
    for line in lines.items:
        if line.session_id:
            known.session = line.session_id
        if line.type == "gemini" and line.tokens:
            answers.append(_answer(line, line.tokens, known))
    mark = Mark(lines.position, msgspec.json.encode(known))
    return Batch(answers, mark, lines.skipped, lines.more, lines.trouble)


def _answer(line: _Line, tokens: _Tokens, known: _Known) -> Answer:
    cached, thoughts = tokens.cached or 0, tokens.thoughts or 0
    return Answer(
        line.id or f"{known.session}:{line.timestamp}",
        milliseconds(line.timestamp or ""),
        known.session,
        known.project,
        line.model or "",
        max(0, (tokens.input or 0) - cached) + (tokens.tool or 0),
        (tokens.output or 0) + thoughts,
        cached,
        0,
        thoughts,
    )


def _project(source: Source) -> str:
    """The project that a transcript belongs to; a file in one of the folders above names it."""
    if source.project:
        return source.project
    for folder in list(source.path.parents)[1:3]:
        try:
            with (folder / _ROOT).open("rb") as file:
                return file.read(_LONGEST_PATH).decode().strip()
        except (OSError, UnicodeDecodeError):
            continue
    return ""


def _folders(places: Places) -> Iterator[Path]:
    """The folders of chats: those of the user's home, and of homes that sessions of Remuda's were given."""
    if home := places.home("GEMINI_CLI_HOME", ""):
        yield from sorted(home.glob(_CHATS))
    if places.kept:
        yield from sorted(places.kept.glob(f"*/{_CHATS}"))


def sources(places: Places) -> Iterator[Source]:
    """All sessions, and those of their subagents."""
    for folder in _folders(places):
        yield from (Source(path) for path in sorted(folder.glob("**/*.jsonl")))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The session of an id, or the one that was written last for a folder."""
    if wanted.session:
        return _conversation(_folders(places), wanted.session)
    begun = (Source(path) for folder in _folders(places) for path in folder.glob("session-*.jsonl"))
    found = latest(begun, wanted, _project)
    return _conversation([found.path.parent], _session(found.path)) if found else None


def _conversation(folders: Iterable[Path], session: str) -> Source | None:
    """The file of a session. One that is continued goes on with its first file, but may leave another one
    that has no more than the surroundings in it: the larger one is it."""
    named = f"session-*-{escape(session[:8])}.jsonl"
    files = [path for folder in folders for path in folder.glob(named) if _session(path) == session]
    path = max(files, key=_size, default=None)
    return Source(path, session, _project(Source(path))) if path else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _session(path: Path) -> str:
    """The session's id, which the first line tells."""
    lines = read_lines(path, 0, _LINE)
    return next((line.session_id for line in lines.items if line.session_id), "")


class _Part(msgspec.Struct):
    text: str | None = None


class _Said(msgspec.Struct, rename="camel"):
    """What prompts need of any line."""

    type: str | None = ""
    content: msgspec.Raw = msgspec.Raw(b"null")
    display_content: msgspec.Raw = msgspec.Raw(b"null")


_SAID = msgspec.json.Decoder(_Said)
_CONTENT: msgspec.json.Decoder[str | list[_Part] | None] = msgspec.json.Decoder(str | list[_Part] | None)


def _text(line: _Said) -> str | None:
    """What the user said; where files that it names were added, it is also kept without them."""
    if line.type != "user":
        return None
    content = decoded(line.display_content, _CONTENT) or decoded(line.content, _CONTENT)
    if content is None or isinstance(content, str):
        return content
    texts = [part.text for part in content if part.text is not None]
    return "".join(texts) if texts else None


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark; what tools answered is none of it."""
    return prompts_in_lines(source.path, mark, _SAID, _text)


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified="0.61.0",
    cached="within",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    note="no cache writes; sessions of versions that wrote .json files are not read",
)
