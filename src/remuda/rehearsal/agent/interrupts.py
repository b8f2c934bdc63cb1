"""A turn that can be ended from another thread, without the agent ending with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from remuda.rehearsal.agent.process import Interrupted

Answer = TypeVar("Answer")


class Turns:
    """Runs turns, one at a time, in the main thread; whoever reads the input may break in on one.

    An interruption is a SIGINT to ourselves. It is sent at most once a turn and only while one runs, so that
    it can never hit what comes after.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = False

    def interrupt(self) -> bool:
        """End the running turn; tells whether there was one."""
        with self._lock:
            if self._running:
                self._running = False
                os.kill(os.getpid(), signal.SIGINT)
                return True
        return False

    def run(self, work: Callable[[], Answer]) -> Answer | None:
        """Do the work of a turn; None when it was interrupted. Other signals pass through."""
        try:
            self._set(running=True)
            try:
                return work()
            finally:
                self._set(running=False)
        except Interrupted as interruption:
            if interruption.number != signal.SIGINT:
                raise
            return None

    def _set(self, *, running: bool) -> None:
        with self._lock:
            self._running = running
