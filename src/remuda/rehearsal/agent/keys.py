"""What a terminal sends, read as keys; what is pasted in brackets stays as it is, byte for byte."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal["text", "enter", "escape", "break", "end", "erase", "clear"]

_PASTE, _PASTED = b"\x1b[200~", b"\x1b[201~"
_CONTROLS: dict[int, Kind] = {
    0x03: "break",
    0x04: "end",
    0x08: "erase",
    0x0A: "enter",
    0x0D: "enter",
    0x15: "clear",
    0x7F: "erase",
}


class Key(Struct, frozen=True):
    """A key that was pressed; `text` is what came in, typed or pasted."""

    kind: Kind
    text: bytes = b""


class Keys:
    """Reads a terminal's bytes as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._left = bytearray()
        self._pasting = False

    @property
    def open(self) -> bool:
        """Whether the last byte is an escape that may stand for a key or begin a sequence."""
        return not self._pasting and self._left == b"\x1b"

    def feed(self, data: bytes) -> list[Key]:
        """The keys that are complete now."""
        self._left += data
        keys: list[Key] = []
        while self._left and (taken := self._paste() if self._pasting else self._typed()) is not None:
            keys += taken
        return keys

    def flush(self) -> list[Key]:
        """Nothing more came: an escape that is waiting was a key."""
        if not self.open:
            return []
        del self._left[:1]
        return [Key("escape"), *self.feed(b"")]

    def _paste(self) -> list[Key] | None:
        """What was pasted so far; the last bytes stay back while they may belong to the end mark."""
        end = self._left.find(_PASTED)
        size = end if end >= 0 else max(0, len(self._left) - len(_PASTED) + 1)
        text = self._take(size)
        if end >= 0:
            self._take(len(_PASTED))
            self._pasting = False
        return [Key("text", text)] if text else [] if end >= 0 else None

    def _typed(self) -> list[Key] | None:
        """One key, or a run of text."""
        first = self._left[0]
        if first == 0x1B:
            return self._sequence()
        if first in _CONTROLS:
            del self._left[:1]
            return [Key(_CONTROLS[first])]
        size = next((at for at, byte in enumerate(self._left) if _ends_text(byte)), len(self._left))
        if size == 0:
            del self._left[:1]
            return []
        return [Key("text", self._take(size))]

    def _sequence(self) -> list[Key] | None:
        """A key that sends an escape; those that mean nothing here are passed over."""
        if len(self._left) == 1:
            return None
        if self._left[1] not in b"[O":
            del self._left[:1]
            return [Key("escape")]
        end = next((at for at, byte in enumerate(self._left[2:], 3) if 0x40 <= byte <= 0x7E), None)
        if end is None:
            return None
        self._pasting = self._take(end) == _PASTE
        return []

    def _take(self, size: int) -> bytes:
        taken = bytes(self._left[:size])
        del self._left[:size]
        return taken


def _ends_text(byte: int) -> bool:
    return byte == 0x7F or (byte < 0x20 and byte != 0x09)
