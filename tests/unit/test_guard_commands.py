"""The tables as a whole, the reading of options, and programs for text and files."""

from __future__ import annotations

import importlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.guard_calls import effects, told

from remuda.guard.commands import MODULES, lookup
from remuda.guard.commands.options import parse
from remuda.guard.model import UNKNOWN, Effect, Word, literal

NAMES = sorted(name for listed in MODULES.values() for name in listed.split())


def test_the_index_lists_what_the_tables_have() -> None:
    for module, listed in MODULES.items():
        table = importlib.import_module(f"remuda.guard.commands.{module}").TABLE
        assert sorted(listed.split()) == sorted(table), module
    assert len(NAMES) == len(set(NAMES))


def test_a_name_is_found_whatever_its_capitals() -> None:
    assert lookup("GIT") is not None
    assert lookup("no-such-program") is None


@pytest.mark.parametrize("name", ["rm", "git", "shutdown", "terraform", "claude", "psql", "npm"])
def test_asking_for_help_or_the_version_does_nothing(name: str) -> None:
    assert told(f"{name} --help") == set()
    assert told(f"{name} --version") == set()


def _words(*texts: str) -> list[Word]:
    return [literal(text) for text in texts]


def test_options_are_taken_apart() -> None:
    parsed = parse(
        "-abc -n: -o|--output:w --color?", _words("-ab", "-n5", "-o", "x", "--color=y", "p", "-c", "--", "-q")
    )
    assert [option.name for option, _ in parsed.given] == ["a", "b", "n", "output", "color", "c"]
    assert [word.text for word in parsed.operands] == ["p", "-q"]
    assert parsed.value("output") == literal("x")
    assert parsed.value("n") == literal("5")
    assert not parsed.strange


def test_a_long_option_may_be_abbreviated_when_only_one_begins_so() -> None:
    assert parse("--output:w --only", _words("--outp=x")).value("output") == literal("x")
    assert parse("--output:w --only", _words("--o=x")).strange == ["--o=x"]


@pytest.mark.parametrize("word", [literal("--new"), literal("-q"), literal("\u2013rf"), Word(("-a", "b"))])
def test_what_a_declaration_does_not_know_is_strange(word: Word) -> None:
    assert parse("-a --old", [word]).strange


def test_an_option_with_a_value_that_is_not_known_is_still_that_option() -> None:
    parsed = parse("--output:w", [Word((), prefix="--output=")])
    assert parsed.has("output")
    assert parsed.operands == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a b", {"read a", "read b"}),
        ("ls -la src", {"look src"}),
        ("grep -rn 'rm -rf' src", {"read src"}),
        ("grep -e x -f patterns a", {"read patterns", "read a"}),
        ("head -20 a", {"read a"}),
        ("sort a -o b", {"read a", "truncate b"}),
        ("sort --outp=b a", {"read a", "truncate b"}),
        ("uniq a b", {"read a", "truncate b"}),
        ("sort --compress-program=x a", {"unknown", "read a"}),
        ("rg --pre x y", {"unknown", "read ."}),
        ("grep -r x", {"read ."}),
        ("grep x", set()),
        ("ptx -G a b", {"read a", "truncate b"}),
        ("file -p a", {"unknown", "look a"}),
        ("zstdcat -o o a", {"read a", "truncate o"}),
        ("ps -ef", set()),
        ("ps auxe", {"show $*"}),
        ("less '+!x' a", {"unknown", "read a"}),
        ("echo rm -rf / --force", set()),
        ("jq .name a.json", {"read a.json"}),
        ("jq -n '$ENV'", {"show $*"}),
        ("jq --arg a b . c.json", {"read c.json"}),
        ("printenv", {"show $*"}),
        ("printenv HOME", {"show $HOME"}),
        ("date -s tomorrow", {"unknown"}),
        ("enable -n echo", {"unknown"}),
        ("sort --no-such-option", {"unknown"}),
    ],
)
def test_readers_read_unless_an_option_says_otherwise(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rm a", {"delete a"}),
        ("rm -rf a -- -b", {"delete-tree! a", "delete-tree! -b"}),
        ("rm --rec --forc a", {"delete-tree! a"}),
        ("cp a b", {"read a", "truncate b|b/a"}),
        ("cp a b/", {"read a", "truncate b/a"}),
        ("cp -T a b", {"read a", "truncate b"}),
        ("cp -t d x/a b", {"read x/a", "read b", "truncate d/a", "truncate d/b"}),
        ("mv a d/", {"rename a", "truncate d/a"}),
        ("install -d a b", {"create a", "create b"}),
        ("ln -s ../t l", {"link l|l/t"}),
        ("ln a b", {"mode a", "link b|b/a"}),
        ("tee -a x", {"append x"}),
        ("tee /dev/stderr", set()),
        ("dd if=a of=b bs=1", {"read a", "truncate b"}),
        ("split a p_", {"read a", "truncate p_*"}),
        ("chmod -x a", {"mode a"}),
        ("chmod -R 777 a", {"mode a"}),
        ("chown me a", {"mode a"}),
        ("mktemp", {"create /tmp/tmp.*"}),
        ("rsync -a a/ b/", {"read a/", "create b/"}),
        ("rsync -a --delete a/ b/", {"read a/", "create b/", "delete-tree! b/"}),
        ("rsync -a a/ h:b", {"read a/", "send h"}),
        ("tar xf a.tar -C d", {"read a.tar", "create d"}),
        ("tar czf d/a.tgz s", {"truncate d/a.tgz", "read s"}),
        ("tar tf a.tar", {"read a.tar"}),
        ("tar cf x a --checkpoint-action=exec='rm b'", {"truncate x", "read a", "delete b"}),
        ("unzip -l a.zip", {"read a.zip"}),
        ("unzip a.zip -d d", {"read a.zip", "create d"}),
        ("gzip a", {"read a", "create a.gz", "delete a"}),
        ("gzip -c a", {"read a"}),
        ("find . -name '*.pyc' -delete", {"look .", "delete-tree! **/*.pyc"}),
        ("find . -delete", {"look .", "delete-tree! .|**"}),
        ("find a -exec rm {} +", {"look a", "delete a|a/**"}),
        ("find a -type f -fprint o", {"look a", "truncate o"}),
        ("find . -name -delete", {"look ."}),
        ("find . -not -path x -name y -delete", {"look .", "delete-tree! **/y"}),
        ("find . -path ./b/c -delete", {"look .", "delete-tree! b/**"}),
        ("find . -name a -o -delete", {"look .", "delete-tree! .|**"}),
        ("find . -frobnicate", {"look .", "unknown"}),
        ("fd x -x rm", {"delete **"}),
        ("patch -p1 -i x.diff", {"read x.diff", "edit ."}),
        ("patch --dry-run -i x.diff", {"read x.diff"}),
        ("apply_patch '*** Begin Patch\n*** Add File: a\n+x\n*** End Patch'", {"create a"}),
        ("apply_patch '*** Update File: a\n*** Move to: ../b\n+*** Add File: c'", {"edit a", "create ../b"}),
        ("apply_patch '*** Delete File: a'", {"delete a"}),
        ("apply_patch x.diff", {"unknown"}),
        ("apply_patch", {"unknown"}),
        ("vim -c 'w! x' a", {"unknown", "edit a"}),
        ("nano a", {"edit a"}),
    ],
)
def test_files_are_changed_where_the_operands_say(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sed -n 1,5p a", {"read a"}),
        ("sed -i s/a/b/ a", {"edit a"}),
        ("sed -i '' s/a/b/ a", {"edit a"}),
        ("sed 's/a/b/w o' a", {"truncate o", "read a"}),
        ("sed '/x/w o' a", {"truncate o", "read a"}),
        ("sed '1e rm b' a", {"delete b", "read a"}),
        ("sed 's/[/]/rm/e' a", {"unknown", "read a"}),
        ("sed ':a;N;$!ba;s/w o/e/g' a", {"read a"}),
        ("sed ':a;w o' a", {"truncate o", "read a"}),
        ("sed '/w x/d;y/we/ab/' a", {"read a"}),
        ("awk '$1 > 5' a", {"read a"}),
        ("awk '{print > \"o\"}' a", {"truncate o", "read a"}),
        ("awk '{print >> \"o\"}' a", {"append o", "read a"}),
        ("awk '{print > $1}' a", {"truncate ?", "read a"}),
        ("awk '/system/ {print (1 > 2)}' a", {"read a"}),
        ("awk 'BEGIN{system(\"rm b\")}'", {"delete b"}),
        ("awk 'BEGIN{system(x)}'", {"unknown"}),
        ("awk '{print | \"rm b\"}' a", {"delete b", "read a"}),
        ("awk 'BEGIN{\"rm b\" | getline}'", {"delete b"}),
        ("awk 'BEGIN{i++ / 2; system(\"rm b\"); x / 1}'", {"unknown"}),
        ("awk 'BEGIN{getline l < \"s\"}'", {"read s"}),
        ("awk -f p.awk a", {"execute project", "read a"}),
        ("awk -i inplace '{print}' a", {"edit a"}),
    ],
)
def test_scripts_of_sed_and_awk_are_read(command: str, expected: set[str]) -> None:
    assert told(command) == expected


@pytest.mark.parametrize("name", ["sed", "awk"])
def test_a_script_that_is_not_known_is_code_that_cannot_be_read(name: str) -> None:
    assert [type(effect).__name__ for effect in effects([name, UNKNOWN, "a"])] == ["Evaluate", "Read"]


_pieces = st.sampled_from(
    [
        "-",
        "--",
        "-o",
        "-c",
        "-e",
        "=",
        "/a",
        "*",
        ">",
        "|",
        "'",
        '"',
        "\0",
        "é",
        "(",
        "{}",
        ";",
        "s/a/b/",
        "run",
        "-rf",
    ]
)
_text = st.lists(_pieces, min_size=1, max_size=4).map("".join)
_word = st.one_of(
    _text.map(literal),
    st.tuples(_text, _text).map(Word),
    _text.map(lambda text: Word((text,), pattern=True)),
    _text.map(lambda text: Word((), prefix=text)),
    st.just(UNKNOWN),
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(NAMES), st.lists(_word, max_size=6), st.one_of(st.none(), st.text(max_size=30)))
def test_no_arguments_make_a_handler_fail(name: str, words: list[Word], text: str | None) -> None:
    handler = lookup(name)
    assert handler is not None
    found = effects(
        [name, *words], text=text, given=frozenset({"file"} if text is None else set()), deep=False
    )
    assert all(isinstance(effect, Effect) for effect in found)


@pytest.mark.parametrize(
    "code", ["(" * 100_000, "a." * 100_000, "'" * 100_000, "x=>" * 50_000, "-" * 1_000_000]
)
@pytest.mark.parametrize(
    "program", ["python3 -c", "node -e", "perl -e", "ruby -e", "awk", "sed", "psql -c", "git -c"]
)
def test_large_and_deep_code_is_given_up(program: str, code: str) -> None:
    found = effects([*program.split(), code], deep=False)
    assert all(isinstance(effect, Effect) for effect in found)
