"""Aider's transcripts: a Markdown file beside the work, or in the lasting folder of a session of Remuda's.

There is no list of the folders that Aider worked in, so only those that are known are looked at. The numbers
are Aider's own: rounded from a thousand on, and estimated by its own tokenizer where it streams, as it does
unless told otherwise. An answer has the time at which its chat began, as no other is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from remuda.runtimes.transcripts import (
    CHUNK,
    Answer,
    Batch,
    Mark,
    Places,
    Prompts,
    Source,
    Transcripts,
    Wanted,
    latest,
)

HISTORY = "chat.history.md"
"""The name of the file that Remuda's own runs keep."""

ABOUT = "session.json"
"""What lies beside it, as Aider itself notes neither."""

_USUAL = ".aider.chat.history.md"
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_MODEL = re.compile(r"> (?:Main model|Model): (\S+) with ")
_NUMBER = r"(\d+(?:\.\d)?k?)"
_TOKENS = re.compile(
    rf"> Tokens: {_NUMBER} sent(?:, {_NUMBER} cache write)?(?:, {_NUMBER} cache hit)?, {_NUMBER} received\."
    r"(?: Cost: \$(\d+\.\d+) message, \$\d+\.\d+ session\.)?  "
)
_COST = re.compile(r"> Cost: \$(\d+\.\d+) message, \$\d+\.\d+ session\.  ")
_ASKED = "#### "
_BREAK = "  "


class _Chat(msgspec.Struct):
    """What was told of the chat that goes on: when it began, its model, and how many answers it has."""

    started: str = ""
    model: str = ""
    answers: int = 0


_CHAT = msgspec.json.Decoder(_Chat)


class About(msgspec.Struct, frozen=True):
    """The session that a history of Remuda's own belongs to, and its folder."""

    session: str = ""
    folder: str = ""

    @property
    def text(self) -> str:
        """It, as a file."""
        return msgspec.json.encode(self).decode()


class _Text(msgspec.Struct):
    """Whole lines of a file, up to a position."""

    lines: list[str]
    position: int
    more: bool = False
    trouble: str = ""


def _lines(path: Path, position: int) -> _Text:
    """The next lines; one that is still being written is left for the next time."""
    try:
        with path.open("rb", buffering=0) as stream:
            stream.seek(position)
            data = stream.read(CHUNK) or b""
    except OSError as error:
        return _Text([], position, trouble=error.strerror or "cannot be read")
    more = len(data) == CHUNK
    cut = data.rfind(b"\n") + 1 or (len(data) if more else 0)
    return _Text(data[:cut].decode(errors="replace").split("\n"), position + cut, more)


def _count(number: str | None) -> int:
    """Tokens as Aider prints them."""
    if not number:
        return 0
    return round(float(number[:-1]) * 1000) if number.endswith("k") else int(float(number))


def _time(started: str) -> int:
    """Aider notes the time of the place that it is in."""
    try:
        return round(datetime.fromisoformat(started).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return 0


def read(source: Source, mark: Mark) -> Batch:
    """The answers behind a mark."""
    text = _lines(source.path, mark.position)
    chat = _CHAT.decode(mark.state) if mark.state else _Chat()
    answers: list[Answer] = []
    for line in text.lines:
        if found := _STARTED.fullmatch(line):
            chat = _Chat(found[1])
        elif found := _MODEL.match(line):
            chat.model = found[1]
        elif found := _TOKENS.fullmatch(line):
            chat.answers += 1
            answers.append(_answer(found, chat, source))
        elif answers and (found := _COST.fullmatch(line)):
            answers[-1] = msgspec.structs.replace(answers[-1], cost=float(found[1]))
    return Batch(answers, Mark(text.position, msgspec.json.encode(chat)), 0, text.more, text.trouble)


def _answer(found: re.Match[str], chat: _Chat, source: Source) -> Answer:
    sent, written, cached, received = (_count(number) for number in found.groups()[:4])
    session = source.session or str(source.path.parent)
    return Answer(
        f"{session}:{chat.started}:{chat.answers}",
        _time(chat.started),
        session,
        source.project,
        chat.model,
        max(0, sent - written - cached),
        received,
        cached,
        written,
        0,
        float(found[5]) if found[5] else None,
    )


def _top(folder: Path) -> Path:
    """The folder where Aider keeps its history: the top of the repository."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def _kept(path: Path) -> Source:
    """A history of a run of Remuda's."""
    try:
        about = msgspec.json.decode(path.with_name(ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        about = About(path.parent.name)
    return Source(path, about.session, about.folder)


def sources(places: Places) -> Iterator[Source]:
    """The histories of Remuda's own runs, the one that the environment names, and those of known folders."""
    if places.kept:
        yield from map(_kept, sorted(places.kept.glob(f"*/{HISTORY}")))
    if named := places.environ.get("AIDER_CHAT_HISTORY_FILE"):
        path = Path(named).expanduser()
        if path.is_absolute() and path.is_file():
            yield Source(path)
    for top in dict.fromkeys(_top(folder) for folder in places.folders):
        if (top / _USUAL).is_file():
            yield Source(top / _USUAL, project=str(top))


def find(places: Places, wanted: Wanted) -> Source | None:
    """The history of a session of Remuda's, or the one that was written last for a folder."""
    if wanted.session:
        return next((source for source in sources(places) if source.session == wanted.session), None)
    if wanted.cwd is None:
        return None
    top = str(_top(wanted.cwd))
    here = Places(environ=places.environ, kept=places.kept, folders=(wanted.cwd,))
    return latest(sources(here), wanted, lambda source: _folder(source, wanted.cwd, top))


def _folder(source: Source, cwd: Path | None, top: str) -> str:
    """A source's folder, where one of a whole repository, or of none, stands for every folder."""
    return str(cwd) if source.project in ("", top) else source.project


def prompts(source: Source, mark: Mark) -> Prompts:
    """What the user said behind a mark; lines that follow each other are one prompt."""
    position, more, lines = mark.position, True, [""]
    while more:
        text = _lines(source.path, position)
        lines[-1:] = [lines[-1] + text.lines[0], *text.lines[1:]] if text.lines else lines[-1:]
        more, position = text.more and text.position > position, text.position
    said: list[list[str]] = []
    before = ""
    for line in lines:
        if line.startswith(_ASKED) and line.endswith(_BREAK):
            if not before:
                said.append([])
            if said and (before.startswith(_ASKED) or not before):
                said[-1].append(line.removeprefix(_ASKED).removesuffix(_BREAK))
        before = line
    return Prompts(tuple("\n".join(part) for part in said if part), Mark(position))


TRANSCRIPTS = Transcripts(
    kind="lines",
    verified="0.86.2",
    cached="within",
    sources=sources,
    read=read,
    find=find,
    prompts=prompts,
    note="only of known folders; Aider's own numbers, rounded from 1000 on and estimated where it streams",
)
