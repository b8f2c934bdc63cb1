"""What every conversation with an agent's process has in common: words that wait to be sent, and an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.events import AnyUpdate, Failure
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.base import TurnState


class Dialogue:
    """One turn that is spoken over the standard streams. After its end nothing is said any more."""

    state: TurnState

    def __init__(self) -> None:
        self._outbox = bytearray()
        self._prompted = self._over = False

    def say(self) -> bytes | None:
        """What to send now; None closes the connection, once the turn is over."""
        if self._over:
            return None
        words = bytes(self._outbox)
        self._outbox.clear()
        return words

    def _fail(self, reason: Failure) -> None:
        self.state.failure = reason
        self._over = True

    def _break_off(self) -> None:
        """The output has ended. In the middle of a turn the agent's last words may quote the prompt, so they
        are not repeated."""
        if self._prompted and not self._over and self.state.failure is None:
            self.state.failure = self.state.trouble or Failure("crashed", "the agent went away in mid-turn")


class RpcDialogue(Dialogue, ABC):
    """A turn in JSON-RPC, in which we have one request open at a time. What fails without telling why is
    blamed on the start first, and on the model once it was asked."""

    def __init__(self, state: TurnState) -> None:
        super().__init__()
        self.state = state
        self._ident = 0
        self._then: Callable[[msgspec.Raw], None] = _ignored
        self._blame: ErrorKind = "start_failed"

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        found, noise = wire.frames(line)
        self.state.skipped += noise
        return [update for frame in found for update in self._take(frame)]

    def finish(self, _leftover: bytes | None) -> None:
        """The output has ended."""
        self._break_off()

    @abstractmethod
    def _take(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        """The updates in one message."""

    def _request(
        self, method: str, params: Mapping[str, object], then: Callable[[msgspec.Raw], None]
    ) -> None:
        self._ident += 1
        self._then = then
        self._outbox += wire.request(self._ident, method, params)


def _ignored(_result: msgspec.Raw) -> None:
    """Nothing was asked yet."""
