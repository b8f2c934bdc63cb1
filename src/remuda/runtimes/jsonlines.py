"""The common ground of runtimes that print one JSON object a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

from remuda.core.events import AnyUpdate
from remuda.runtimes.base import TurnState

Line = TypeVar("Line")
Leftover = Callable[[TurnState, bytes], None]
Read = Callable[[TurnState, Line], Iterable[AnyUpdate]]


class JsonLineParser(Generic[Line]):
    """Decodes each line into the runtime's own line type and hands it to the runtime's reader.

    What does not decode is counted and passed over, so that the lines after it are not lost.
    """

    def __init__(self, line_type: type[Line], read: Read[Line], leftover: Leftover | None = None) -> None:
        self.state = TurnState()
        self._decoder = msgspec.json.Decoder(line_type, strict=False)
        self._read = read
        self._leftover = leftover

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        try:
            decoded = self._decoder.decode(line.decode("utf-8", "replace"))
        except (msgspec.MsgspecError, RecursionError):
            self.state.skipped += bool(line.strip())
            return ()
        return tuple(self._read(self.state, decoded))

    def hear(self, line: bytes) -> None:
        """Standard error tells nothing that the stream does not."""

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended; what the program left in a file may still tell something."""
        if leftover is not None and self._leftover is not None:
            self._leftover(self.state, leftover)
