"""The escape sequences of ``$'…'``, ``echo -e`` and ``printf``."""

from __future__ import annotations

_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_HEX = frozenset("0123456789abcdefABCDEF")
_OCTAL = frozenset("01234567")
_LENGTHS = {"x": 2, "u": 4, "U": 8}


def ansi(text: str) -> str:
    """The text of ``$'…'``, which ends at a NUL."""
    return _decode(text, octal=False).partition("\0")[0]


def echo(text: str) -> str:
    """What ``echo -e`` and ``printf %b`` make of a text, up to ``\\c``."""
    return _decode(text.partition("\\c")[0], octal=True)


def _decode(text: str, octal: bool) -> str:
    """``octal``: a zero may stand before three octal digits."""
    pieces: list[str] = []
    at = 0
    while (found := text.find("\\", at)) >= 0:
        pieces.append(text[at:found])
        piece, at = _one(text, found + 1, octal)
        pieces.append(piece)
    pieces.append(text[at:])
    joined = "".join(pieces)
    if joined.isascii():
        return joined
    try:
        return joined.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # half a character, which no shell would be given
        return joined


def _one(text: str, at: int, octal: bool) -> tuple[str, int]:
    """The character of the escape sequence at a place behind its backslash, and where it ends."""
    char = text[at : at + 1]
    if char in _SIMPLE:
        return _SIMPLE[char], at + 1
    if char in _LENGTHS:
        end = _run(text, at + 1, _LENGTHS[char], _HEX)
        return (
            (_character(text[at + 1 : end], 16, char == "x"), end) if end > at + 1 else ("\\" + char, at + 1)
        )
    if char in _OCTAL:
        start = at + 1 if octal and char == "0" else at
        end = _run(text, start, 3, _OCTAL)
        return _character(text[start:end] or "0", 8, byte=True), end
    if char == "c" and at + 1 < len(text):
        return chr(ord(text[at + 1]) & 0x1F), at + 2
    return "\\" + char, at + 1


def _run(text: str, at: int, most: int, digits: frozenset[str]) -> int:
    end = at
    while end < len(text) and end - at < most and text[end] in digits:
        end += 1
    return end


def _character(digits: str, base: int, byte: bool) -> str:
    """A character by its number; a byte that is none of its own is put together with others later."""
    number = int(digits, base)
    if byte:
        number &= 0xFF
        return chr(number) if number < 0x80 else chr(0xDC00 + number)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
