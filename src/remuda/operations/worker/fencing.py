"""Ends a worker's agents in time where its database is out of reach, whatever the worker itself waits for."""

from __future__ import annotations

import os
import time
from threading import Thread

from remuda.core import log, reaper
from remuda.core.errors import EXIT_FAILED
from remuda.dispatch.tasks import scheduling


class FencedError(Exception):
    """The database was out of reach for so long that others may have taken over what we do."""


class Fence:
    """Knows when the last sign of life was given. A worker that has given none for too long ends by itself;
    one that does not come to that is ended by a thread, with its agents, before others take its tasks."""

    def __init__(self, worker: str, lease: float) -> None:
        self._worker = worker
        self._lease = lease
        self.seen = time.monotonic()

    def is_due(self) -> bool:
        """Whether the worker has to end."""
        return scheduling.fenced(time.monotonic() - self.seen, self._lease)

    def watch(self) -> None:
        """Begin to watch."""
        self.seen = time.monotonic()
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """One that was suspended for long has a moment to give a sign of life when it goes on."""
        while True:
            time.sleep(max(self._left(), 0.0))
            if self._left() <= 0:
                time.sleep(scheduling.moment(self._lease, -self._left()))
                if self._left() <= 0:
                    self._end()

    def _left(self) -> float:
        return self.seen + scheduling.last_moment(self._lease) - time.monotonic()

    def _end(self) -> None:
        log.warn("the worker gives no sign of life: it is ended, with its agents", worker=self._worker)
        reaper.sweep(self._worker, grace=0.0)
        os._exit(EXIT_FAILED)
