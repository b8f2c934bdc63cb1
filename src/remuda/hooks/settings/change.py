"""A settings file with edits carried out, and without them again: pure, from bytes to bytes.

What was done is kept as splices of the text. As long as nobody else has changed the file, undoing them gives
back what was there byte for byte; otherwise only the entries themselves are taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from remuda.hooks.settings import jsonedit, tomledit, yamledit
from remuda.hooks.settings.edits import Edit, ListEntry, OwnFile, TableValue, Trouble


class Splice(msgspec.Struct, frozen=True):
    """``old`` was replaced by ``new`` at a place of the text, counted in characters."""

    place: int
    old: str
    new: str


class Step(msgspec.Struct, frozen=True):
    """An edit as it was carried out; ``before`` is how many of its keys were there already."""

    edit: Edit
    splice: Splice
    before: int | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a file: digests of it before (None if it was not there) and after."""

    path: str
    before: str | None
    after: str
    steps: tuple[Step, ...]


def digest(data: bytes) -> str:
    """What a content is recognised by."""
    return sha256(data).hexdigest()


def put(
    path: str, data: bytes | None, edits: Sequence[Edit], known: Change | None
) -> tuple[bytes, Change | None]:
    """The file with all edits carried out, and what that changed; ``known`` is what was done to it earlier,
    which is undone first. Where everything is in place, nothing changes."""
    if data is not None and all(holds(data, edit) for edit in edits):
        return data, known
    base = None if data is None else take(data, edits, known)
    text = "" if base is None else _text(base)
    steps: list[Step] = []
    for edit in edits:
        after, before = _put(text, edit)
        steps.append(Step(edit, _splice(text, after), before))
        text = after
    result = text.encode()
    was = None if base is None else digest(base)
    return result, Change(path=path, before=was, after=digest(result), steps=tuple(steps))


def take(data: bytes, edits: Sequence[Edit], known: Change | None) -> bytes | None:
    """The file without the edits; None if it was not there before them and nothing else is in it now."""
    if known is not None and digest(data) == known.after:
        return _undone(data, known)
    steps = known.steps if known else tuple(Step(edit, Splice(0, "", "")) for edit in edits)
    text = _text(data)
    for step in reversed(steps):
        text = _take(text, step)
    made = isinstance(edits[0], OwnFile) if known is None else known.before is None
    return None if made and "".join(text.split()) in ("", "{}") else text.encode()


def _undone(data: bytes, known: Change) -> bytes | None:
    text = _text(data)
    for step in reversed(known.steps):
        place, old, new = step.splice.place, step.splice.old, step.splice.new
        text = text[:place] + old + text[place + len(new) :]
    return None if known.before is None else text.encode()


def _splice(before: str, after: str) -> Splice:
    """The one place where two texts differ."""
    place = _same(before, after)
    old, new = before[place:], after[place:]
    behind = _same(old[::-1], new[::-1])
    return Splice(place, old[: len(old) - behind], new[: len(new) - behind])


def _same(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Trouble("it is not UTF-8", data.count(b"\n", 0, error.start) + 1) from None


def holds(data: bytes, edit: Edit) -> bool:
    """Whether an edit is in place."""
    text = _text(data)
    if isinstance(edit, OwnFile):
        return text == edit.content
    if isinstance(edit, TableValue):
        return tomledit.holds(text, edit)
    return yamledit.holds(text, edit) if _is_yaml(edit) else jsonedit.holds(text, edit)


def position(data: bytes, edit: ListEntry) -> int | None:
    """Which item of its list an entry of a JSON document is."""
    return jsonedit.position(_text(data), edit)


def _is_yaml(edit: ListEntry) -> bool:
    return edit.path.suffix in (".yaml", ".yml")


def _put(text: str, edit: Edit) -> tuple[str, int | None]:
    if isinstance(edit, OwnFile):
        return edit.content, None
    if isinstance(edit, TableValue):
        return tomledit.put(text, edit), None
    return yamledit.put(text, edit) if _is_yaml(edit) else jsonedit.put(text, edit)


def _take(text: str, step: Step) -> str:
    edit = step.edit
    if isinstance(edit, OwnFile):
        if text != edit.content:
            raise Trouble("it is there, but not as Remuda wrote it")
        return ""
    if isinstance(edit, TableValue):
        return tomledit.take(text, edit)
    taken = yamledit.take if _is_yaml(edit) else jsonedit.take
    return taken(text, edit, step.before)
