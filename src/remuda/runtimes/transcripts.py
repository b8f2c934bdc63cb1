"""The transcript contract: where an agent CLI keeps its conversations, and what they tell.

Reading is the only thing that happens here; nothing is ever written, and nothing that lies in a transcript
makes a reader raise. A reader goes on from a mark, so that what was read once is not read again, and it may
tell the same answer any number of times: the ledger knows it again by its key.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from remuda.core.events import Usage

Line = TypeVar("Line")

CHUNK = 1024 * 1024
"""How many bytes of a file are read at once: enough to be fast, little enough to stay small."""

LONGEST = 256 * 1024 * 1024
"""A line that is longer is given up as damaged."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where transcripts may lie. Only what the environment names is looked at.

    ``kept`` holds the lasting folders of Remuda's own sessions, one per session and named by its id, for
    programs that are given a home there. ``folders`` are working folders of known sessions, for programs
    that keep their transcripts beside the work.
    """

    environ: Mapping[str, str]
    kept: Path | None = None
    folders: tuple[Path, ...] = ()

    def home(self, variable: str | None, default: str) -> Path | None:
        """The folder that a variable names, or one below the user's home; None where there is neither."""
        named = self.environ.get(variable, "") if variable else ""
        if named:
            return Path(named).expanduser().absolute()
        user = self.environ.get("HOME", "")
        return Path(user, default).absolute() if user else None


class Source(msgspec.Struct, frozen=True):
    """A file or database with answers in it, and what its name tells of the session and its folder."""

    path: Path
    session: str = ""
    project: str = ""


class Mark(msgspec.Struct, frozen=True):
    """How far a source has been read: a byte offset or a row number, and what the reader wants to remember
    for the lines that follow (its own struct, encoded), such as the model that was named earlier."""

    position: int = 0
    state: bytes = b""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """One answer of a model, as the transcript tells of it. Flat, for there are very many.

    ``key`` is the same wherever and however often this answer is told: in several lines, in a copy of the
    session, in a file that was read before; of several tellings the one with the most tokens counts. A
    counter that only grows is one answer with one key. ``time`` is milliseconds since the epoch. ``input``
    is what was neither read from nor written to a cache; ``thought`` is part of ``output``. ``cost`` is in
    US dollars, and None unless the runtime itself tells it.
    """

    key: str
    time: int
    session: str
    project: str
    model: str
    input: int = 0
    output: int = 0
    cached_read: int = 0
    cached_write: int = 0
    thought: int = 0
    cost: float | None = None

    @property
    def usage(self) -> Usage:
        """The tokens, as events tell them."""
        return Usage(self.input, self.output, self.cached_read, self.cached_write, self.thought)

    @property
    def tokens(self) -> int:
        """All tokens, by which the fullest of several tellings is found."""
        return self.input + self.output + self.cached_read + self.cached_write


class Batch(msgspec.Struct, frozen=True):
    """What a reader found behind a mark, and the mark to go on from. ``more``: there is more to read now.
    ``skipped`` counts damaged lines or rows; ``trouble`` says why the source could not be read at all."""

    answers: list[Answer]
    mark: Mark
    skipped: int = 0
    more: bool = False
    trouble: str = ""


class Prompts(msgspec.Struct, frozen=True):
    """The user's prompts behind a mark, each exactly as the program received it; the mark to go on from."""

    texts: tuple[str, ...]
    mark: Mark


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose transcript is looked for: by the runtime's own id, or, where that is not known, the
    one that was written last in a folder, not before ``since`` (seconds since the epoch)."""

    session: str | None = None
    cwd: Path | None = None
    since: float = 0.0


class TranscriptSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one transcript comes to. ``model`` is the last one that answered. ``cost_usd`` is what the runtime
    itself told, None if it told nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    model: str = ""
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0
    cost_usd: float | None = None
    answers: int = 0
    skipped: int = 0
    models: tuple[str, ...] = ()


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime's transcripts. All functions are total: a source that is gone is an empty answer.

    ``kind`` tells how to see that there is something new: ``lines`` are appended to files; a ``database`` is
    SQLite, which may be in use; a ``file`` is rewritten whole, and always read from its beginning.
    ``cached`` is how this runtime counts input: cached tokens are ``apart`` from it or ``within`` it. Its
    reader takes them out, so that an `Answer` means the same everywhere. ``tokens``: it tells tokens at all;
    ``counters``: only as one sum per session and model, which is one answer. ``headless``: headless runs
    leave transcripts, too.
    """

    kind: Literal["lines", "database", "file"]
    verified: str
    cached: Literal["apart", "within"]
    sources: Callable[[Places], Iterable[Source]]
    read: Callable[[Source, Mark], Batch]
    find: Callable[[Places, Wanted], Source | None]
    prompts: Callable[[Source, Mark], Prompts]
    tokens: bool = True
    counters: bool = False
    headless: bool = True
    note: str = ""

    def summary(self, path: Path) -> TranscriptSummary | None:
        """What one transcript comes to; None if it is not there or cannot be read."""
        return self.summary_of(Source(path))

    def summary_of(self, source: Source) -> TranscriptSummary | None:
        """What a source comes to; of a database, which holds many sessions, the session that it names."""
        answers: dict[str, Answer] = {}
        mark, skipped, more = Mark(), 0, True
        while more:
            batch = self.read(source, mark)
            if batch.trouble:
                return None
            collect(answers, batch.answers)
            mark, skipped, more = batch.mark, skipped + batch.skipped, batch.more
        one = source.session if self.kind == "database" else ""
        return _summarise([each for each in answers.values() if one in ("", each.session)], skipped)


def collect(known: dict[str, Answer], told: Iterable[Answer]) -> None:
    """Add answers to those that are known; of several tellings of one, the fullest stays."""
    for answer in told:
        before = known.get(answer.key)
        if before is None or answer.tokens > before.tokens:
            known[answer.key] = answer


def _summarise(answers: list[Answer], skipped: int) -> TranscriptSummary:
    total = Usage()
    for answer in answers:
        total += answer.usage
    costs = [answer.cost for answer in answers if answer.cost is not None]
    return TranscriptSummary(
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        model=answers[-1].model if answers else "",
        cached_read_tokens=total.cached_read_tokens,
        cached_write_tokens=total.cached_write_tokens,
        thought_tokens=total.thought_tokens,
        cost_usd=sum(costs) if costs else None,
        answers=len(answers),
        skipped=skipped,
        models=tuple(dict.fromkeys(answer.model for answer in answers)),
    )


class Lines(msgspec.Struct, Generic[Line]):
    """Decoded lines of a file, up to a position between two lines."""

    items: list[Line]
    position: int
    skipped: int = 0
    more: bool = False
    trouble: str = ""


def read_lines(path: Path, position: int, decoder: msgspec.json.Decoder[Line]) -> Lines[Line]:
    """The next lines of a JSONL file. A last line that is still being written is left for the next time; one
    that is whole counts even without its line end, for no beginning of an object is an object."""
    try:
        data, ended = _chunk(path, position)
    except OSError as error:
        return Lines([], position, trouble=error.strerror or "cannot be read")
    cut = data.rfind(b"\n") + 1
    if not cut and not ended:
        return Lines([], position + len(data), 1, more=True)
    found = decode_lines(data[:cut] if cut < len(data) else data, decoder)
    found.position, found.more = position + cut, not ended
    if ended and (tail := data[cut:].strip()):
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            found.items.append(decoder.decode(tail))
            found.position = position + len(data)
    return found


def _chunk(path: Path, position: int) -> tuple[bytes, bool]:
    """Bytes from a position on, with a line end among them if there is any; whether they were the last."""
    with path.open("rb", buffering=0) as stream:
        data, size = b"", CHUNK
        while True:
            stream.seek(position)
            data = stream.read(size) or b""
            ended = len(data) < size
            if ended or b"\n" in data or size >= LONGEST:
                return data, ended
            size *= 4


def decode_lines(data: bytes, decoder: msgspec.json.Decoder[Line]) -> Lines[Line]:
    """Decode whole lines at once; if that fails, one by one, and count those that are damaged."""
    try:
        return Lines(decoder.decode_lines(data), 0)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        found: Lines[Line] = Lines([], 0)
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            found.items.append(decoder.decode(line))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            found.skipped += 1
    return found


def decoded(raw: msgspec.Raw, decoder: msgspec.json.Decoder[Line]) -> Line | None:
    """A part of a line, for programs whose lines differ too much for one struct; None if it has another
    shape."""
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def prompts_in_lines(
    path: Path, mark: Mark, decoder: msgspec.json.Decoder[Line], text: Callable[[Line], str | None]
) -> Prompts:
    """All prompts behind a mark in a file of lines; ``text`` gives the prompt in a line, if it is one."""
    texts: list[str] = []
    position, more = mark.position, True
    while more:
        lines = read_lines(path, position, decoder)
        texts += (found for line in lines.items if (found := text(line)) is not None)
        more, position = lines.more and lines.position > position, lines.position
    return Prompts(tuple(texts), Mark(position))


def newest(paths: Iterable[Path], since: float) -> Path | None:
    """The file that was changed last, not before a time; None where there is none."""
    found: list[tuple[float, Path]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append((path.stat().st_mtime, path))
    when, path = max(found, default=(-1.0, Path()))
    return path if when >= since and found else None


def files_below(folder: Path, suffix: str) -> Iterator[Path]:
    """All files below a folder whose names end like this, in a lasting order. Links to folders are not
    followed."""
    for place, inner, names in os.walk(folder):
        inner.sort()
        yield from (Path(place, name) for name in sorted(names) if name.endswith(suffix))


def latest(sources: Iterable[Source], wanted: Wanted, project: Callable[[Source], str]) -> Source | None:
    """Of the sources whose session began in the wanted folder, the one that was changed last."""
    found: list[tuple[float, Source]] = []
    for source in sources:
        with contextlib.suppress(OSError):
            changed = source.path.stat().st_mtime
            if changed >= wanted.since and project(source) == str(wanted.cwd):
                found.append((changed, source))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def milliseconds(time: str) -> int:
    """An RFC 3339 time as milliseconds since the epoch; 0 if it is none."""
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
