"""The terminal of an interactive session: what is said scrolls above, two lines at the bottom stay ours.

The bottom lines lie outside of the region that scrolls and what is said is stripped of control characters: no
answer of a model can draw over the line that tells the state.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from types import FrameType

PROMPT = "rehearsal ▸ "
_KEPT = 8192
_PASTES, _PASTES_NOT = "\033[?2004h", "\033[?2004l"
_SAVE, _RESTORE = "\0337", "\0338"


class Screen:
    """Draws on a terminal that is in raw input mode while this is open."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._before: list[int | list[bytes | int]] = []
        self._said = ""
        self._composed = self._status = ""
        self._composing = False
        self._busy = self._resized = False

    def open(self) -> None:
        """Take the terminal over."""
        self._before = termios.tcgetattr(self._source)
        attributes = termios.tcgetattr(self._source)
        attributes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.ISTRIP)
        attributes[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._source, termios.TCSANOW, attributes)
        signal.signal(signal.SIGWINCH, self._on_resize)
        self._put(self._whole() + _PASTES)

    def close(self) -> None:
        """Give the terminal back, the cursor below what was said."""
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        back = _RESTORE if self._composing else ""
        with contextlib.suppress(OSError, termios.error):
            self._put(f"{_PASTES_NOT}{back}{_SAVE}\033[r{_RESTORE}\r\n\033[J")
            termios.tcsetattr(self._source, termios.TCSANOW, self._before)

    def say(self, text: str) -> None:
        """Show more of what happens."""
        shown = "".join(char for char in text if char in "\n\t" or char.isprintable())
        self._said = (self._said + shown)[-_KEPT:]
        self._put(shown)

    def work(self, status: str) -> None:
        """Show that nothing can be written now, and why."""
        back = _RESTORE if self._composing else ""
        self._composed, self._status, self._composing = "", status, False
        self._put(back + self._footer())

    def compose(self, text: str, status: str) -> None:
        """Show the text that is being written."""
        back = _RESTORE if self._composing else ""
        self._composed, self._status, self._composing = text, status, True
        self._put(back + self._footer())

    def _size(self) -> tuple[int, int]:
        columns, rows = os.get_terminal_size(self._sink)
        return (columns, rows) if rows > 3 and columns > 0 else (80, 24)

    def _footer(self) -> str:
        """Both lines at the bottom; the cursor ends up in the text that is being written, if one is."""
        columns, rows = self._size()
        room = max(4, (columns - len(PROMPT)) // 2 - 1)
        line = self._composed.replace("\n", "⏎").replace("\t", " ")
        line = "".join(char for char in line[-room:] if char.isprintable())
        composer = f"{PROMPT}{line}" if self._composing else ""
        drawn = (
            f"{_SAVE}\033[{rows};1H\033[2K{self._status[: columns - 1]}\033[{rows - 1};1H\033[2K{composer}"
        )
        return drawn if self._composing else drawn + _RESTORE

    def _whole(self) -> str:
        """Everything, drawn anew."""
        _, rows = self._size()
        said = self._said[-rows * 40 :]
        return f"\033[r\033[2J\033[1;{rows - 2}r\033[H{said}{self._footer()}"

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        self._resized = True
        if not self._busy:
            self._put("")

    def _put(self, text: str) -> None:
        """Write at once; a change of size that comes meanwhile is answered behind it."""
        self._busy = True
        try:
            self._write(text)
            while self._resized:
                self._resized = False
                self._write(self._whole())
        finally:
            self._busy = False

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._sink, data) :]
