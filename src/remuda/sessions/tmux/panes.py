"""What tmux tells about its panes; pure but for one look at a process."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec

PID = "@remuda_pid"
"""A pane's own option that keeps its process id: newer versions of tmux forget that of a dead program."""

_FIELDS = (
    *("session_name", "pane_id", PID, "pane_dead", "pane_dead_status", "pane_dead_signal"),
    *("pane_width", "pane_height", "cursor_x", "cursor_y", "alternate_on", "pid", "pane_title"),
)
FORMAT = "|".join(f"#{{{field}}}" for field in _FIELDS)


class Size(msgspec.Struct, frozen=True):
    """Columns and rows of a pane."""

    width: int = 160
    height: int = 48


class Pane(msgspec.Struct, frozen=True):
    """A pane: the session it is in, its id, and the process it was started with."""

    session: str
    id: str
    pid: int


class Ending(msgspec.Struct, frozen=True):
    """How a pane's program has ended: by an exit code or by a signal. A tmux older than 3.3 does not tell the
    signal; both are None then, as they are before the system has told."""

    code: int | None = None
    signal: int | None = None


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A pane as it is now. ``ending`` is None while its program runs."""

    pane: Pane
    size: Size
    cursor: tuple[int, int]
    alternate: bool
    title: str
    ending: Ending | None = None
    text: str = ""


def _number(text: str) -> int | None:
    """A number that tmux tells; None for anything else."""
    return int(text) if len(text) < 12 and text.isascii() and text.isdigit() else None


def _signal(text: str) -> int | None:
    """A signal that newer versions of tmux name and older ones number."""
    if (number := _number(text)) is not None:
        return number
    name = text.upper().removeprefix("SIG")
    return next((item.value for item in signal.Signals if item.name == f"SIG{name}"), None)


def zombie(pid: int) -> bool:
    """Whether a process has ended and nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False


class Row(msgspec.Struct, frozen=True):
    """A line of ``list-panes``: a pane, and the process id of the server."""

    view: View
    server: int

    @property
    def missed(self) -> bool:
        """Whether the program has ended and tmux does not know, or not how."""
        ending = self.view.ending
        if ending is not None and (ending.code is not None or ending.signal is not None):
            return False
        return zombie(self.view.pane.pid)


def row_of(line: str) -> Row | None:
    """What a line of ``list-panes`` tells; None for any other line."""
    fields = line.split("|", len(_FIELDS) - 1)
    if len(fields) < len(_FIELDS):
        return None
    session, pane, _, dead, status, killed, width, height, x, y, alternate, _, title = fields
    pid, server = _number(fields[2]), _number(fields[11])
    if pid is None or server is None:
        return None
    view = View(
        pane=Pane(session, pane, pid),
        size=Size(_number(width) or 0, _number(height) or 0),
        cursor=(_number(x) or 0, _number(y) or 0),
        alternate=alternate == "1",
        title=title,
        ending=Ending(_number(status), _signal(killed)) if dead == "1" else None,
    )
    return Row(view, server)


def rows(said: str) -> tuple[Row, ...]:
    return tuple(row for line in said.splitlines() if (row := row_of(line)) is not None)


def views(said: str) -> tuple[View, ...]:
    return tuple(row.view for row in rows(said))
