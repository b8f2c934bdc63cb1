"""What is said to tmux and what it says in control mode; pure.

Commands travel on standard input, never as arguments of a process, and are read by tmux's own parser:
:func:`quoted` makes one word of any text. What comes back in control mode is lines: replies between
``%begin`` and ``%end`` or ``%error``, and notifications; :class:`Reader` makes values of them and never
raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from remuda.core.children import Lines
from remuda.core.errors import UsageError

LONGEST_LINE = 4 * 1024 * 1024
LONGEST_REPLY = 16 * 1024 * 1024
"""Bytes of a reply that are kept; what follows is dropped."""

_PLAIN = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+=./:,@%#{}()[]<>!?&|*^;'`"
)
_DCS, _ST = b"\x1bP1000p", b"\x1b\\"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PANE = re.compile(r"%[0-9]{1,9}")
_ESCAPE = re.compile(rb"\\[0-3][0-7]{2}")
_BYTES = {f"\\{number:03o}".encode(): bytes((number,)) for number in range(256)}

KEYS = frozenset(
    (
        *("Enter", "Escape", "Tab", "BTab", "Space", "BSpace", "Up", "Down", "Left", "Right", "Home", "End"),
        *("PageUp", "PageDown", "PPage", "NPage", "IC", "DC", "Insert", "Delete"),
        *(f"F{number}" for number in range(1, 13)),
    )
)
"""The keys that have names; every printable character of ASCII is a key as well."""

_KEY = re.compile(r"((?:[CMS]-)*)(.+)", re.DOTALL)


def quoted(text: str) -> str:
    """Any text as one word for tmux's parser, on one line.

    Inside double quotes only the backslash, the dollar sign and the quote mean something; line ends and other
    control characters would be changed or end the command, so all of these become octal escapes.
    """
    data = encoded(text)
    if b"\0" in data:
        raise UsageError("a text for tmux cannot hold a NUL character")
    parts = (chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)
    return f'"{"".join(parts)}"'


def encoded(text: str) -> bytes:
    """A text as UTF-8; one that is none is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError("a text for tmux must be valid UTF-8") from None


def command(words: Iterable[str]) -> str:
    """A command and its arguments as tmux reads them."""
    return " ".join(quoted(word) for word in words)


def sequence(commands: Iterable[Sequence[str]]) -> str:
    """Commands of which none runs behind one that failed."""
    return " ; ".join(command(words) for words in commands) + "\n"


def session_target(name: str) -> str:
    """The target that means this session and no other: ``b1`` is not ``b10``."""
    return f"={checked_name(name)}:"


def pane_target(session: str, pane: str) -> str:
    """The target that means this pane, if it is in this session."""
    if not _PANE.fullmatch(pane):
        raise UsageError(f"{pane!r} is not the id of a tmux pane")
    return f"={checked_name(session)}:.{pane}"


def checked_name(name: str) -> str:
    """A session's name that nothing in tmux reads as anything else."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:120]!r} cannot be the name of a tmux session",
            "Use up to 100 letters, digits, dashes and underscores, beginning with a letter or digit.",
        )
    return name


def checked_keys(names: Iterable[str]) -> tuple[str, ...]:
    """Key names that tmux knows; it would type out any other, letter by letter."""
    keys = tuple(names)
    for name in keys:
        match = _KEY.fullmatch(name)
        base = match[2] if match else ""
        if base not in KEYS and not (len(base) == 1 and "!" <= base <= "~"):
            raise UsageError(
                f"{name[:40]!r} is not the name of a key",
                "Names are those of tmux: Enter, Escape, Up, C-c, M-x, F1.",
            )
    return keys


class Reply(msgspec.Struct, frozen=True):
    """What a command gave. ``ours`` tells whether it came over this connection's input."""

    number: int
    ok: bool
    ours: bool
    lines: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Output(msgspec.Struct, frozen=True):
    """What a pane's program wrote. A character of UTF-8 may be split between two of them."""

    pane: str
    data: bytes


class Paused(msgspec.Struct, frozen=True):
    """tmux has stopped to send a pane's output, because it was too much."""

    pane: str


class Changed(msgspec.Struct, frozen=True):
    """A value that was subscribed to."""

    name: str
    pane: str
    value: str


class Switched(msgspec.Struct, frozen=True):
    """This connection looks at another session now."""

    session: str


class Closed(msgspec.Struct, frozen=True):
    """A window has gone."""

    window: str


class Exit(msgspec.Struct, frozen=True):
    """The connection is over; tmux may say why."""

    reason: str = ""


Message = Reply | Output | Paused | Changed | Switched | Closed | Exit


def unescaped(data: bytes) -> bytes:
    """A pane's output as its program wrote it."""
    return _ESCAPE.sub(lambda match: _BYTES[match[0]], data) if b"\\" in data else data


class Reader:
    """Makes messages of what a control client prints."""

    def __init__(self) -> None:
        self._lines = Lines(LONGEST_LINE)
        self._guard: bytes | None = None
        self._body: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Message]:
        """The messages that these bytes complete."""
        for line in self._lines.feed(chunk):
            message = self._read(line.removesuffix(b"\r"))
            if message is not None:
                yield message

    def _read(self, line: bytes) -> Message | None:
        if self._guard is not None:
            return self._inside(line)
        line = line.removeprefix(_ST).removeprefix(_DCS)
        name, _, rest = line.partition(b" ")
        if name == b"%begin":
            if _numbers(rest) is not None:
                self._guard, self._body, self._size = rest, [], 0
            return None
        return _notification(name, rest)

    def _inside(self, line: bytes) -> Message | None:
        """A line of a reply, or its end: the one that repeats the numbers of its beginning."""
        name, _, rest = line.partition(b" ")
        if name in (b"%end", b"%error") and rest == self._guard:
            numbers = _numbers(rest) or (0, 0)
            self._guard = None
            body, self._body = tuple(self._body), []
            return Reply(numbers[0], name == b"%end", bool(numbers[1] & 1), body)
        self._size += len(line) + 1
        if self._size <= LONGEST_REPLY:
            self._body.append(_text(line))
        return None


def _numbers(rest: bytes) -> tuple[int, int] | None:
    """A reply's number and flags, out of its time, number and flags."""
    fields = rest.split(b" ")
    if len(fields) < 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    return int(fields[1]), int(fields[2]) if len(fields) > 2 else 1


def _notification(name: bytes, rest: bytes) -> Message | None:
    first, _, behind = rest.partition(b" ")
    match name:
        case b"%output":
            return Output(_text(first), unescaped(behind))
        case b"%extended-output":
            return Output(_text(first), unescaped(behind.partition(b" : ")[2] or _after_colon(behind)))
        case b"%pause":
            return Paused(_text(first))
        case b"%exit":
            return Exit(_text(rest))
        case b"%session-changed":
            return Switched(_text(behind))
        case b"%window-close" | b"%unlinked-window-close":
            return Closed(_text(first))
        case b"%subscription-changed":
            head, _, value = behind.partition(b" : ")
            fields = head.split(b" ")
            return Changed(_text(first), _text(fields[3]) if len(fields) > 3 else "", _text(value))
        case _:
            return None


def _after_colon(behind: bytes) -> bytes:
    """Output that is empty, or whose colon has nothing in front of it."""
    return behind.removeprefix(b": ") if behind.startswith(b": ") else b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
