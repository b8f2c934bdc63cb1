"""Entries put into lists of a YAML document and taken out again, as lines: no other line changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from remuda.hooks.settings.edits import ListEntry, Trouble

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

_STEP = "  "


def _compose(text: str) -> Node | None:
    import yaml

    try:
        node: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Trouble(
            error.problem or "it is no YAML", *((mark.line + 1, mark.column + 1) if mark else ())
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise Trouble("it is no YAML") from None
    return node


def _load(text: str) -> object:
    import yaml

    _compose(text)
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Trouble(f"it cannot be read: {type(error).__name__}") from None


def _found(document: object, keys: tuple[str, ...]) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def holds(text: str, edit: ListEntry) -> bool:
    """Whether the entry is there."""
    listed = _found(_load(text), edit.keys)
    return isinstance(listed, list) and edit.value in listed


def put(text: str, edit: ListEntry) -> tuple[str, int]:
    """The text with the entry as the first of its list, and how many of the keys were there before."""
    before = _load(text)
    added, number = _put(text, _compose(text), edit)
    if not _reads(added, _added(before, edit)):
        raise Trouble("it is written in a way that leaves no room for an entry in " + ".".join(edit.keys))
    return added, number


def _reads(text: str, value: object) -> bool:
    try:
        return _load(text) == value
    except Trouble:
        return False


def _added(document: object, edit: ListEntry) -> object:
    listed = _found(document, edit.keys)
    return _with(document, edit.keys, [edit.value, *(listed if isinstance(listed, list) else ())])


def _with(document: object, keys: tuple[str, ...], value: object) -> object:
    if not keys:
        return value
    inner = document if isinstance(document, Mapping) else {}
    return {**inner, keys[0]: _with(inner.get(keys[0]), keys[1:], value)}


def _put(text: str, root: Node | None, edit: ListEntry) -> tuple[str, int]:
    from yaml.nodes import MappingNode

    if root is None:
        return _behind(text, _lines(edit.keys, edit.value, "")), 0
    node = root
    for number, key in enumerate(edit.keys):
        if not isinstance(node, MappingNode):
            raise _mark(node, f"{'.'.join(edit.keys[:number]) or 'the document'} is not a mapping")
        pair = _pair(node, key)
        if pair is None:
            lines = _lines(edit.keys[number:], edit.value, " " * node.start_mark.column)
            return _behind(text, lines) if number == 0 else _before(text, node, lines), number
        if _is_empty(pair[1]):
            indent = " " * pair[0].start_mark.column + _STEP
            return _instead(text, pair, _lines(edit.keys[number + 1 :], edit.value, indent)), number + 1
        node = pair[1]
    return _before(text, node, _lines((), edit.value, " " * node.start_mark.column)), len(edit.keys)


def _mark(node: Node, why: str) -> Trouble:
    return Trouble(why, node.start_mark.line + 1, node.start_mark.column + 1)


def _pair(node: MappingNode, key: str) -> tuple[Node, Node] | None:
    return next((pair for pair in node.value if pair[0].value == key), None)


def _is_empty(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null" or node.value == []


def _lines(keys: tuple[str, ...], value: object, indent: str) -> str:
    """A list with one entry below these keys, in block style."""
    import yaml

    heads = "".join(f"{indent}{_STEP * number}{key}:\n" for number, key in enumerate(keys))
    indent += _STEP * len(keys)
    item = yaml.safe_dump([value], sort_keys=False, allow_unicode=True, width=4096)
    return heads + "".join(f"{indent}{line}\n" for line in item.splitlines())


def _behind(text: str, lines: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}"


def _before(text: str, node: Node, lines: str) -> str:
    place = text.rfind("\n", 0, node.start_mark.index) + 1
    return text[:place] + lines + text[place:]


def _instead(text: str, pair: tuple[Node, Node], lines: str) -> str:
    """The text with lines below a key instead of nothing, or of an empty value."""
    start, end = pair[1].start_mark.index, pair[1].end_mark.index
    line_end = text.find("\n", end)
    rest, below = (text[end:], "") if line_end < 0 else (text[end : line_end + 1], text[line_end + 1 :])
    return _behind(text[:start] + rest, lines) + below


def take(text: str, edit: ListEntry, before: int | None) -> str:
    """The text without the entry. Of the keys that lead there, those beyond the first ``before`` go too where
    nothing is left in them; all stay if that is not known."""
    document = _load(text)
    listed = _found(document, edit.keys)
    if not isinstance(listed, list):
        return text
    left = [each for each in listed if not _ours(each, edit)]
    if left == listed:
        return text
    made = len(edit.keys) if before is None else before
    cut = _cut(text, _compose(text), edit, made if not left else len(edit.keys))
    if (
        _rest(_load(cut), edit.keys) != _rest(document, edit.keys)
        or (_found(_load(cut), edit.keys) or []) != left
    ):
        raise Trouble(f"the entry in {'.'.join(edit.keys)} cannot be taken out without touching others")
    return cut


def _ours(value: object, edit: ListEntry) -> bool:
    texts = value.values() if isinstance(value, Mapping) else ()
    return value == edit.value or any(isinstance(each, str) and edit.mark in each for each in texts)


def _rest(document: object, keys: tuple[str, ...]) -> object:
    """The document without what lies at the keys, and without what is empty on the way there."""
    if not isinstance(document, Mapping):
        return {}
    inner = _rest(document.get(keys[0]), keys[1:]) if len(keys) > 1 else None
    rest = {key: value for key, value in document.items() if key != keys[0]}
    return {**rest, keys[0]: inner} if inner else rest


def _cut(text: str, root: Node | None, edit: ListEntry, made: int) -> str:
    """The text without the lines of our entries, and without those of keys that only lead to them."""
    chain: list[tuple[Node, Node]] = []
    node = root
    for key in edit.keys:
        pair = _pair(cast("MappingNode", node), key)
        assert pair is not None, "the keys were found before"
        chain.append(pair)
        node = pair[1]
    gone = {line for item in _items(chain[-1][1], edit) for line in _span(item)}
    for number in range(made, len(edit.keys)):
        holder = chain[number][1]
        if number == len(edit.keys) - 1 or len(holder.value) == 1:
            gone |= {each[0].start_mark.line for each in chain[number:]}
            break
    return "".join(line for number, line in enumerate(text.splitlines(keepends=True)) if number not in gone)


def _items(listed: Node, edit: ListEntry) -> list[MappingNode]:
    import yaml

    assert isinstance(listed, yaml.SequenceNode)
    return [item for item in listed.value if _ours(_built(item), edit)]


def _built(node: Node) -> object:
    import yaml

    return yaml.SafeLoader("").construct_object(node, deep=True)


def _span(item: MappingNode) -> range:
    """The lines of an entry in block style."""
    last = item.value[-1][1]
    return range(item.start_mark.line, last.end_mark.line + 1)
