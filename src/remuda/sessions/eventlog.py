"""The events of a session that lasts: appended to a private file, numbered, over resumptions, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from remuda.core.events import AnyUpdate, Event, Question, Result
from remuda.core.files import append_line
from remuda.sessions.job import envelope

NAME = "events.jsonl"
ASIDE = "keeper.log"
"""What a keeper says of itself."""


class EventLog:
    """Numbers and keeps what happens in one session."""

    def __init__(self, folder: Path, session: str, agent: str) -> None:
        self._file = folder / NAME
        self._session, self._agent = session, agent
        self._seq = max((event.seq for event in recorded(folder)), default=0)

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self._seq

    def add(self, what: AnyUpdate | Question | Result) -> Event:
        """Put something on record."""
        self._seq += 1
        if isinstance(what, Result):
            event = envelope(self._session, self._agent, self._seq, result=what)
        elif isinstance(what, Question):
            event = envelope(self._session, self._agent, self._seq, question=what)
        else:
            event = envelope(self._session, self._agent, self._seq, update=what)
        append_line(self._file, msgspec.json.encode(event))
        return event


def recorded(folder: Path, since: int = 0) -> Iterator[Event]:
    """The events behind a number; a line that was only half written is passed over."""
    decoder = msgspec.json.Decoder(Event)
    try:
        stream = (folder / NAME).open("rb")
    except OSError:
        return
    with stream:
        for line in stream:
            try:
                event = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            if event.seq > since:
                yield event
