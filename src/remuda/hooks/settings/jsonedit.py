"""Entries put into lists of a JSON document and taken out again, as text: nothing else in it changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from remuda.hooks.settings.edits import ListEntry, at
from remuda.hooks.settings.jsontext import Node, Part, member, read

_INDENT = "  "


class _Style(msgspec.Struct, frozen=True):
    """How a document is laid out: line ends, one step of indentation, all on one line or not."""

    newline: str
    step: str
    compact: bool
    spaced: bool

    def written(self, value: object, indent: str) -> str:
        if self.compact:
            return json.dumps(
                value, ensure_ascii=False, separators=(", ", ": ") if self.spaced else (",", ":")
            )
        lines = json.dumps(value, ensure_ascii=False, indent=self.step).split("\n")
        return f"{self.newline}{indent}".join(lines)


def _style(text: str, root: Node | None) -> _Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    inside = text[root.start : root.end] if root else ""
    step = re.search(r"\n([ \t]+)\S", inside)
    compact = bool(root and root.parts) and "\n" not in inside
    return _Style(newline, step.group(1) if step else _INDENT, compact, ": " in inside)


def holds(text: str, edit: ListEntry) -> bool:
    """Whether the entry is there."""
    return position(text, edit) is not None


def position(text: str, edit: ListEntry) -> int | None:
    """Which item of its list the entry is."""
    place = _place(read(text, comments=edit.comments), edit.keys)
    items = place.value if place else None
    return items.index(edit.value) if isinstance(items, list) and edit.value in items else None


def put(text: str, edit: ListEntry) -> tuple[str, int]:
    """The text with the entry at the end of its list, and how many of the keys were there before."""
    root = read(text, comments=edit.comments)
    style = _style(text, root)
    if root is None:
        return text + style.written(_nested(edit.keys, edit.value), "") + style.newline, 0
    node = root
    for number, key in enumerate(edit.keys):
        _check(text, node, dict, edit.keys[:number])
        part = member(node, key)
        if part is None:
            label = json.dumps(key, ensure_ascii=False) + (": " if style.spaced or not style.compact else ":")
            return _add(text, node, label, _nested(edit.keys[number + 1 :], edit.value), style), number
        node = part.node
    _check(text, node, list, edit.keys)
    return _add(text, node, "", edit.value, style), len(edit.keys)


def _check(text: str, node: Node, kind: type, keys: tuple[str, ...]) -> None:
    if not isinstance(node.value, kind):
        wanted = "a list" if kind is list else "an object"
        raise at(text, node.start, f"{'.'.join(keys) or 'the document'} is not {wanted}")


def _nested(keys: tuple[str, ...], value: object) -> object:
    nested: object = [value]
    for key in reversed(keys):
        nested = {key: nested}
    return nested


def _add(text: str, node: Node, label: str, value: object, style: _Style) -> str:
    """The text with one part more at the end of an object or a list. Comments behind the last part stay with
    it, and a comment's line is always ended before something follows."""
    closing = node.end - 1
    last = node.parts[-1].node.end if node.parts else node.start + 1
    gap = text[last:closing]
    behind = last + len(gap.rstrip())
    inline = "\n" not in text[node.start : node.end] and (bool(node.parts) or style.compact)
    if inline:
        style = msgspec.structs.replace(style, compact=True)
        space = " " if style.spaced and node.parts else ""
        added = f"{space}{label}{style.written(value, '')}"
    else:
        indent = _indent(text, node, style)
        added = f"{style.newline}{indent}{label}{style.written(value, indent)}"
        if "\n" not in text[behind:closing]:
            added += style.newline + _line_indent(text, node.start)
    comma = "," if node.parts else ""
    return text[:last] + comma + text[last:behind] + added + text[behind:]


def _indent(text: str, node: Node, style: _Style) -> str:
    """How far parts are indented: as the last one, if that begins its line."""
    if node.parts:
        start = node.parts[-1].start
        before = text[text.rfind("\n", 0, start) + 1 : start]
        if not before.strip():
            return before
    return _line_indent(text, node.start) + style.step


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _place(root: Node | None, keys: tuple[str, ...]) -> Node | None:
    node = root
    for key in keys:
        part = member(node, key) if node else None
        node = part.node if part else None
    return node


def take(text: str, edit: ListEntry, before: int | None) -> str:
    """The text without the entry, wherever in its list it is now. Of the keys that lead there, those beyond
    the first ``before`` go too where nothing is left in them; all stay if that is not known."""
    while True:
        root = read(text, comments=edit.comments)
        found = _removable(root, edit, len(edit.keys) if before is None else before)
        if root is None or found is None:
            return text
        text = _cut(text, root, *found, comments=edit.comments)


def _removable(root: Node | None, edit: ListEntry, before: int) -> tuple[Node, Part] | None:
    """The next part to be removed, and what it is in."""
    listed = _place(root, edit.keys)
    if listed is None:
        return None
    if isinstance(listed.value, list):
        for holder, part in _ours(listed, edit):
            return holder, part
    return _left_empty(root, edit.keys, before) if listed.value == [] else None


def _ours(listed: Node, edit: ListEntry) -> Iterator[tuple[Node, Part]]:
    """Entries of ours: the whole of one, or the part of it with the mark where others have added to it."""
    for part in listed.parts:
        if _marked(part.node.value, edit.mark) or part.node.value == edit.value:
            yield listed, part
        for within in part.node.parts:
            inner = within.node
            marked = [each for each in inner.parts if _marked(each.node.value, edit.mark)]
            if marked and isinstance(inner.value, list):
                yield (inner, marked[0]) if len(inner.parts) > 1 else (listed, part)


def _marked(value: object, mark: str) -> bool:
    return isinstance(value, dict) and any(isinstance(each, str) and mark in each for each in value.values())


def _left_empty(root: Node | None, keys: tuple[str, ...], before: int) -> tuple[Node, Part] | None:
    """The outermost key of ours below which nothing is left but ours."""
    for number in range(before, len(keys)):
        holder = _place(root, keys[:number])
        part = member(holder, keys[number]) if holder else None
        if holder and part and part.node.value == _emptied(keys[number + 1 :]):
            return holder, part
    return None


def _emptied(keys: tuple[str, ...]) -> object:
    nested: object = []
    for key in reversed(keys):
        nested = {key: nested}
    return nested


def _cut(text: str, root: Node, holder: Node, part: Part, *, comments: bool) -> str:
    """The text without one part: with the comma and the white space that belong to it, never a comment."""
    end, index = part.node.end, holder.parts.index(part)
    if part.comma is not None:
        cut = text[: part.start] + text[end : part.comma] + text[part.comma + 1 :].lstrip()
    else:
        head, tail = text[: part.start], text[end:]
        previous = holder.parts[index - 1].comma if index else None
        if previous is not None:
            head = head[:previous] + head[previous + 1 :]
        if not comments or tail.lstrip(" \t").startswith(("\n", "\r")):
            head = head.rstrip()
        cut = head + tail
    if _without(root, holder, part) != _value(read(cut, comments=comments)):
        raise at(text, part.start, "this entry cannot be taken out without touching others")
    return cut


def _value(root: Node | None) -> object:
    return root.value if root else None


def _without(root: Node, holder: Node, part: Part) -> object:
    """The document's value without one part."""
    if isinstance(holder.value, list):
        del holder.value[holder.parts.index(part)]
    elif isinstance(holder.value, dict):
        del holder.value[part.key]
    return root.value
