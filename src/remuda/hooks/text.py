"""Text that may go to a terminal, a log or a JSON document, whatever it was made from."""

from __future__ import annotations


def printable(text: str, most: int) -> str:
    """One line without control characters and halves of characters, cut where it is too long."""
    line = "".join(each if each.isprintable() else " " for each in text[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"
