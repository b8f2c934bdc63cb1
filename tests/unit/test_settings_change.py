"""Edits of settings files: what they add, and nothing else, and that undoing them leaves no trace."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import tomlkit
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remuda.hooks.settings import jsontext
from remuda.hooks.settings.change import Change, put, take
from remuda.hooks.settings.edits import Edit, ListEntry, OwnFile, TableValue, Trouble

MARK = "/data/hooks/claude/pre_tool_use"
GROUP = {"matcher": "*", "hooks": [{"type": "command", "command": MARK, "timeout": 30}]}
START = {"hooks": [{"type": "command", "command": "/data/hooks/claude/session_start"}]}
JSON_EDITS = (
    ListEntry(path=Path("s.json"), keys=("hooks", "SessionStart"), value=START, mark="session_start"),
    ListEntry(path=Path("s.json"), keys=("hooks", "PreToolUse"), value=GROUP, mark=MARK),
)
JSONC_EDITS = tuple(
    ListEntry(path=edit.path, keys=edit.keys, value=edit.value, mark=edit.mark, comments=True)
    for edit in JSON_EDITS
)
YAML_EDITS = (
    ListEntry(path=Path("config.yaml"), keys=("hooks", "pre_tool_call"), value={"command": MARK}, mark=MARK),
)
TOML_EDITS = (
    TableValue(path=Path("c.toml"), keys=("hooks", "state", "/x/h.json:a:0:0", "trusted_hash"), value="s:1"),
    TableValue(path=Path("c.toml"), keys=("hooks", "state", '/y "z".json', "trusted_hash"), value="s:2"),
)

keys = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | keys
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
groups = st.lists(st.fixed_dictionaries({"hooks": st.just([{"command": "/theirs"}])}), max_size=2)
hooks = st.dictionaries(st.sampled_from(("PreToolUse", "SessionStart", "Stop")), groups)
documents = st.builds(
    lambda rest, own, first: {"hooks": own, **rest} if first else {**rest, "hooks": own},
    st.dictionaries(keys.filter(lambda key: key != "hooks"), values, max_size=4),
    hooks,
    st.booleans(),
) | st.dictionaries(keys.filter(lambda key: key != "hooks"), values, max_size=4)
comments = st.sampled_from(("", "", " ", "\n", "\r\n\t", " /* [ */ ", ' // { "\n', "/**/"))


def written(value: object, noise: Callable[[], str]) -> str:
    """A document with white space and comments wherever they may be."""
    if isinstance(value, dict):
        parts = [
            f"{noise()}{json.dumps(key)}{noise()}:{noise()}{written(each, noise)}{noise()}"
            for key, each in value.items()
        ]
        return "{" + (",".join(parts) or noise()) + "}"
    if isinstance(value, list):
        return (
            "[" + (",".join(f"{noise()}{written(each, noise)}{noise()}" for each in value) or noise()) + "]"
        )
    return json.dumps(value)


@st.composite
def plain(draw: st.DrawFn) -> str:
    """Strict JSON in the layouts that programs and people write."""
    value = draw(documents)
    indent = draw(st.sampled_from((None, 2, 4, "\t")))
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(("", "\ufeff", "\n"))) + text + draw(st.sampled_from(("", "\n", " \n\n")))


@st.composite
def commented(draw: st.DrawFn) -> str:
    """JSON with comments."""
    return draw(comments) + written(draw(documents), lambda: draw(comments)) + draw(comments)


def value_of(text: str) -> object:
    root = jsontext.read(text, comments=True)
    return root.value if root else {}


def added(value: object) -> object:
    """The document as it should be with both entries."""
    assert isinstance(value, dict)
    own = dict(value.get("hooks", {}))
    for edit in JSON_EDITS:
        own[edit.keys[1]] = [*own.get(edit.keys[1], []), edit.value]
    return {**value, "hooks": own}


def changed(text: str, edits: tuple[Edit, ...]) -> tuple[bytes, Change]:
    data, change = put("f", text.encode(), edits, None)
    assert change is not None
    return data, change


@given(plain())
def test_entries_are_added_to_json_and_nothing_else_changes(text: str) -> None:
    data, change = changed(text, JSON_EDITS)
    assert json.loads(data.decode().removeprefix("\ufeff")) == added(json.loads(text.removeprefix("\ufeff")))
    assert put("f", data, JSON_EDITS, change) == (data, change)
    assert take(data, JSON_EDITS, change) == text.encode()


@given(commented())
def test_comments_survive(text: str) -> None:
    data, change = changed(text, JSONC_EDITS)
    assert value_of(data.decode()) == added(value_of(text))
    for comment in ("/* [ */", '// { "'):
        assert data.decode().count(comment) == text.count(comment)
    assert put("f", data, JSONC_EDITS, change) == (data, change)
    assert take(data, JSONC_EDITS, change) == text.encode()


@given(commented())
def test_only_our_entries_go_where_others_have_changed_the_file(text: str) -> None:
    data, change = changed(text, JSONC_EDITS)
    theirs = "// theirs\n" + data.decode()
    left = take(theirs.encode(), JSONC_EDITS, change)
    assert left is not None
    assert value_of(left.decode()) == value_of(text)
    for comment in ("/* [ */", '// { "', "// theirs"):
        assert left.decode().count(comment) == theirs.count(comment)


@given(documents)
def test_without_a_record_entries_are_found_by_their_mark(value: dict[str, object]) -> None:
    data, _ = changed(json.dumps(value), JSON_EDITS)
    left = take(data, JSON_EDITS, None)
    assert left is not None
    rest = json.loads(left)
    emptied = {key: [] for key in ("SessionStart", "PreToolUse")}
    before = {**value, "hooks": {**emptied, **value.get("hooks", {})}}  # type: ignore[dict-item]
    assert rest == before


@given(st.text(st.sampled_from('{}[]:,"\\/*n 0123-.eEtrufalsu\n\t'), max_size=12) | plain(), st.data())
def test_json_is_read_as_others_read_it(text: str, data: st.DataObject) -> None:
    """A document with a character too few, too."""
    if text:
        place = data.draw(st.integers(0, len(text) - 1))
        text = text[:place] + text[place + 1 :]
    text = text.removeprefix("\ufeff")

    def no_constant(_name: str) -> object:
        raise ValueError

    try:
        expected: object = json.loads(text, parse_constant=no_constant) if text.strip(" \t\r\n") else None
    except ValueError:
        with pytest.raises(Trouble):
            jsontext.read(text)
        return
    root = jsontext.read(text)
    assert (root.value if root else None) == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,}', 1, 9),
        ('{\n  "hooks": [\n', 3, 1),
        ('{"hooks": {"PreToolUse": {}}}', 1, 26),
        ('{"hooks": 3}', 1, 11),
        ("[]", 1, 1),
        ("{} x", 1, 4),
        ('{"a": 01}', 1, 7),
        ("{\n// no\n}", 2, 1),
        ('{"a": "\n"}', 1, 7),
        ("[" * 1000, 1, 202),
    ],
)
def test_trouble_names_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(Trouble) as caught:
        put("f", text.encode(), JSON_EDITS, None)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_file_that_is_not_text_is_trouble() -> None:
    with pytest.raises(Trouble, match="UTF-8"):
        put("f", b'{"a": "\xff"}', JSON_EDITS, None)


@pytest.mark.parametrize("text", ["", "\n", "{}", "{ }\n", "{\n}\n"])
def test_an_empty_document_is_laid_out_for_people(text: str) -> None:
    data, change = changed(text, JSON_EDITS)
    assert json.loads(data) == added({})
    assert b'\n  "hooks": {\n    "SessionStart": [\n      {\n' in data
    assert take(data, JSON_EDITS, change) == text.encode()


def test_a_new_file_is_gone_again_and_stays_if_others_use_it() -> None:
    data, change = put("f", None, JSON_EDITS, None)
    assert change is not None
    assert take(data, JSON_EDITS, change) is None
    assert take(data + b"\n", JSON_EDITS, change) is None
    mine = json.loads(data)
    assert json.loads(take(json.dumps({**mine, "x": 1}).encode(), JSON_EDITS, change) or b"") == {"x": 1}


def test_hooks_that_others_have_added_to_our_entry_stay() -> None:
    data, change = changed("{}", JSON_EDITS)
    value = json.loads(data)
    value["hooks"]["PreToolUse"][0]["hooks"].append({"command": "/theirs"})
    value["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    left = json.loads(take(json.dumps(value).encode(), JSON_EDITS, change) or b"")
    assert left == {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "/theirs"}]}]}}


def test_an_older_entry_of_ours_is_replaced() -> None:
    old = json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"command": MARK, "timeout": 5}]}, {"hooks": []}]}})
    data, _ = changed(old, JSON_EDITS)
    assert json.loads(data)["hooks"]["PreToolUse"] == [{"hooks": []}, GROUP]


def test_a_key_that_is_there_twice_counts_the_last_time() -> None:
    text = '{"hooks": {"PreToolUse": [1]}, "hooks": {"Stop": []}}'
    data, change = changed(text, JSON_EDITS)
    assert json.loads(data)["hooks"] == {"Stop": [], "SessionStart": [START], "PreToolUse": [GROUP]}
    assert take(data, JSON_EDITS, change) == text.encode()


lines = st.sampled_from(("", "", "# a comment\n", "\n"))
words = st.text("abcdefgh -#:'\"é", min_size=1, max_size=8)
plain_values = st.recursive(
    st.integers(-9, 9) | st.booleans() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, min_size=1, max_size=3),
    max_leaves=5,
)
theirs = st.sampled_from(
    (
        None,
        "hooks:\n",
        "hooks: {}  # none\n",
        "hooks:\n  pre_tool_call:\n",
        "hooks:\n    pre_tool_call: []\n    on_session_start:\n    - command: x\n",
        "hooks:\n  pre_tool_call:\n  # theirs\n  - command: /theirs\n    timeout: 3\n",
        "hooks:\n  pre_tool_call:\n    - {command: /theirs}\n",
        "hooks:\n  # only this\n  on_session_start: [{command: x}]\n",
    )
)


@st.composite
def yaml_texts(draw: st.DrawFn) -> str:
    """A YAML document in blocks, with comments, and with or without hooks in it."""
    rest = draw(st.dictionaries(st.text("abcdefg", min_size=1, max_size=5), plain_values, max_size=3))
    blocks = [
        f"{key}: {yaml.safe_dump(value, default_flow_style=True, width=999)}"
        if isinstance(value, list | dict) and draw(st.booleans())
        else yaml.safe_dump({key: value}, allow_unicode=True)
        for key, value in rest.items()
    ]
    own = draw(theirs)
    if own is not None:
        blocks.insert(draw(st.integers(0, len(blocks))), own)
    text = "".join(draw(lines) + block for block in blocks) + draw(lines)
    return text.removesuffix("\n") if draw(st.booleans()) else text


@given(yaml_texts())
def test_an_entry_is_added_to_yaml_and_nothing_else_changes(text: str) -> None:
    before = yaml.safe_load(text) or {}
    data, change = changed(text, YAML_EDITS)
    after = yaml.safe_load(data)
    own = dict(before.get("hooks") or {})
    own["pre_tool_call"] = [{"command": MARK}, *(own.get("pre_tool_call") or [])]
    assert after == {**before, "hooks": own}
    assert data.decode().count("#") == text.count("#")
    assert put("f", data, YAML_EDITS, change) == (data, change)
    assert take(data, YAML_EDITS, change) == text.encode()


@given(yaml_texts())
def test_only_our_entry_goes_from_yaml_that_others_have_changed(text: str) -> None:
    data, change = changed(text, YAML_EDITS)
    left = take(b"# theirs\n" + data, YAML_EDITS, change)
    assert left is not None

    def told(value: object) -> object:
        """Nothing, however it is written, is nothing."""
        return (
            {key: inner for key, each in value.items() if (inner := told(each))}
            if isinstance(value, dict)
            else value
        )

    assert told(yaml.safe_load(left) or {}) == told(yaml.safe_load(text) or {})
    assert left.count(b"#") == text.count("#") + 1


@pytest.mark.parametrize(
    "text", ["a: [\n", "- a\n", "hooks: 3\n", "hooks: {x: 1}\n", "{a: 1}\n", "a: 1\n...\n"]
)
def test_yaml_that_leaves_no_room_is_trouble(text: str) -> None:
    with pytest.raises(Trouble):
        put("f", text.encode(), YAML_EDITS, None)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """A TOML document with comments, and with or without tables of hooks in it."""
    rest = draw(st.dictionaries(st.text("abcdefg", min_size=1, max_size=5), plain_values, max_size=3))
    own = draw(
        st.sampled_from(("", "[hooks]\nx = 1\n", "[hooks.state.a]\nb = 1", "[[hooks.Stop]]\nhooks = []\n"))
    )
    text = draw(lines) + tomlkit.dumps(rest) + draw(lines) + own
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(toml_texts())
def test_values_are_added_to_toml_and_nothing_else_changes(text: str) -> None:
    data, change = changed(text, TOML_EDITS)
    after = tomllib.loads(data.decode())
    assert data.startswith(text.encode())
    for edit in TOML_EDITS:
        assert after["hooks"]["state"].pop(edit.keys[2]) == {"trusted_hash": edit.value}
    assert put("f", data, TOML_EDITS, change) == (data, change)
    assert take(data, TOML_EDITS, change) == text.encode()
    left = take(data + b"\n# theirs", TOML_EDITS, change)
    assert left is not None
    assert tomllib.loads(left.decode()) == tomllib.loads(text)


def test_a_value_of_somebody_else_stays() -> None:
    data, change = changed("", TOML_EDITS)
    theirs = data.replace(b"s:1", b"theirs")
    left = take(theirs, TOML_EDITS, change)
    assert tomllib.loads((left or b"").decode()) == {
        "hooks": {"state": {"/x/h.json:a:0:0": {"trusted_hash": "theirs"}}}
    }
    replaced, again = put("f", theirs, TOML_EDITS[:1], None)
    assert b"s:1" in replaced
    assert take(replaced, TOML_EDITS[:1], again) == theirs


@pytest.mark.parametrize("text", ["a = \n", "hooks = 3\n", "hooks = {}\n", "[hooks.state]\n[hooks.state]\n"])
def test_toml_that_leaves_no_room_is_trouble(text: str) -> None:
    with pytest.raises(Trouble):
        put("f", text.encode(), TOML_EDITS, None)


def test_a_file_of_our_own_replaces_no_other() -> None:
    edit = OwnFile(path=Path("remuda.json"), content="ours\n")
    data, change = put("f", None, [edit], None)
    assert data == b"ours\n"
    assert take(data, [edit], change) is None
    assert take(data, [edit], None) is None
    newer = OwnFile(path=edit.path, content="newer\n")
    assert put("f", data, [newer], change)[0] == b"newer\n"
    for known in (None, change):
        with pytest.raises(Trouble, match="not as Remuda wrote it"):
            put("f", b"theirs\n", [edit], known)
        with pytest.raises(Trouble, match="not as Remuda wrote it"):
            take(b"theirs\n", [edit], known)
