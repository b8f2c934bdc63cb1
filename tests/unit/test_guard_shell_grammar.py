"""The grammar takes what bash takes, refuses what bash refuses, and never raises."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.guard.shell.grammar import parse
from remuda.guard.shell.syntax import (
    Assignment,
    Chain,
    Loop,
    Pipeline,
    Redirected,
    Refusal,
    Simple,
    Subshell,
    Substitution,
    Token,
)

BASH = shutil.which("bash")

TEXTS = [
    *(
        "",
        "  ls  ",
        "ls;",
        "ls &",
        "a | b |& c",
        "a && b || c",
        "! a",
        "! ! a",
        "time -p ls",
        "time",
        "{ a; }",
    ),
    *(
        "(a; b) > f",
        "((1 + 2))",
        "((a) ; (b))",
        "$((a) ; (b))",
        "x=1",
        "x= y",
        "a=(1 2) b",
        "a+=(x)",
        "a[1]=2",
    ),
    *(
        "a[b c]=d",
        "declare -A m=([k v]=w)",
        "if a; then b; elif c; then d; else e; fi",
        "while a; do b; done",
    ),
    *("for x in a b; do c; done", "for x; do c; done", "for ((;;)); do c; done", "for x in a; { b; }"),
    *(
        "select x in a; do b; done",
        "until a\ndo b\ndone",
        "case x in a|b) c;; (d) e;& *) ;; esac",
        "case x in esac",
    ),
    *(
        "f() { a; }",
        "f() (a)",
        "function f { a; } 2>&1",
        "function f() if a; then b; fi",
        "coproc a",
        "coproc N { a; }",
    ),
    *(
        "[[ a && ( b || ! c ) ]]",
        "[[ $x =~ ^(a|b)+$ ]]",
        "[[ a < b ]]",
        "[ a \\> b ]",
        "exec 3<> f",
        "a {fd}> f",
    ),
    *(
        "cat <<A\nx\nA",
        "cat <<A; b\nx\nA",
        "cat <<A <<B\nx\nA\ny\nB",
        "cat <<-'A B'\n\tx\n\tA B\nls",
        "cat <<A",
        "a <<< b",
    ),
    *(
        "echo ${x:=`a`} ${x//\\//_} ${x: -1} ${!x@} ${#x[@]} ${x@Q}",
        'echo "${x:-"a b"}" "$(b "$(c)")"',
        "echo $[1+2]",
    ),
    *(
        "echo a#b # c",
        "a\\\nb",
        "a \\\n b",
        "echo 'a\nb'",
        "{a,b}",
        "echo {",
        "echo }",
        "a=b c=d e",
        ">f",
        "2>&1 a",
    ),
    *(
        "a &> f",
        "a &>> f",
        "a >& f",
        "a >| f",
        "a <(b) >(c)",
        "echo $",
        "echo $'\\'' $\"x\"",
        "echo \\",
        "echo a\\;b",
    ),
    *(
        "if",
        "then",
        "fi",
        "a;;",
        "; a",
        "a &&",
        "| a",
        "a | | b",
        "(a",
        "a)",
        "{ a",
        "}",
        "echo 'a",
        'echo "a',
        "echo `a",
    ),
    *(
        "echo $(a",
        "echo ${a",
        "for",
        "for x in",
        "case x",
        "case x in a) b",
        "a >",
        "a <<",
        "f()",
        "((1",
        "[[ a",
        "a & & b",
    ),
    *(
        "if a; then b; done",
        "while a; do b; fi",
        "echo a (b)",
        "a () ; b",
        "echo ${a b}",
        "x=(1",
        "function",
        "! | a",
    ),
]


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_the_grammar_agrees_with_bash() -> None:
    script = 'while IFS= read -r -d "" text; do bash -n -c "$text" 2>/dev/null; echo $?; done'
    given = "".join(f"{text}\0" for text in TEXTS)
    answer = subprocess.run(
        [str(BASH), "-c", script], input=given, capture_output=True, text=True, timeout=60
    )
    codes = dict(zip(TEXTS, answer.stdout.split(), strict=True))
    different = [text for text, code in codes.items() if (code == "0") == isinstance(parse(text), Refusal)]
    assert different == ["echo ${a b}"]  # which bash only finds when it runs it


def test_words_after_a_redirection_belong_to_the_command() -> None:
    node = parse("rm >/dev/null -rf x")
    assert isinstance(node, Simple)
    assert [word.bare for word in node.words if isinstance(word, Token)] == ["rm", "-rf", "x"]


def test_a_continued_line_is_one_word_but_a_comment_is_not_continued() -> None:
    node = parse("r\\\nm x")
    assert isinstance(node, Simple)
    assert isinstance(word := node.words[0], Token)
    assert word.bare == "rm"
    assert type(parse("true # x \\\nrm y")).__name__ == "Sequence"


@pytest.mark.parametrize("text", ["x=${y:=`a`}", "cat <<A\n`a`\nA", 'echo "${x:-$(a)}"', "x=([$(a)]=b)"])
def test_no_substitution_is_overlooked(text: str) -> None:
    assert "Substitution" in repr(parse(text))
    assert Substitution.__name__ == "Substitution"


def test_shapes() -> None:
    assert isinstance(parse("a | b"), Pipeline)
    assert isinstance(parse("a && b"), Chain)
    assert isinstance(parse("a &"), Subshell)
    assert isinstance(parse("for x in a; do b; done"), Loop)
    assert isinstance(parse("{ a; } > f"), Redirected)
    node = parse("export a=1 b=(2)")
    assert isinstance(node, Simple)
    assert [type(word) for word in node.words] == [Token, Assignment, Assignment]


@pytest.mark.parametrize(
    "piece", ["(", "$(", "{ ", "${", "$((", "<(", "if ", "while ", "[[ ", "a=(", "@(", "f() "]
)
@pytest.mark.parametrize("times", [30, 3_000, 200_000])
def test_deep_nesting_is_refused(piece: str, times: int) -> None:
    assert isinstance(parse(piece * times), Refusal)


@pytest.mark.parametrize(
    "text", ["a;" * 400_000, "x " * 400_000, "'a'" * 300_000, "a" * 2_000_000, "ls \0 a"]
)
def test_what_is_too_long_or_has_a_nul_is_refused(text: str) -> None:
    assert isinstance(parse(text), Refusal)


def test_a_long_here_document_is_not_too_long() -> None:
    body = "line `with` $(marks) 'and' \"quotes\"\n" * 20_000
    assert isinstance(parse(f"cat > f <<'EOF'\n{body}EOF\n"), Simple)


SHELL = """
    a b x = $ ( ) { } [ ] ' " ` \\ ; & | < > # ~ ! * ? + @ , : / - 1 é $( ${ $(( (( )) [[ ]] << <<< <( EOF
    if then fi else elif for in do done case esac while until function time coproc
"""
MARKS = st.sampled_from([*SHELL.split(), "\n", "\t", "\x01"])


@given(st.lists(st.one_of(MARKS, MARKS.map(lambda mark: f"{mark} ")), max_size=40).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_tree_or_a_refusal(text: str) -> None:
    parse(text)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_quoted_text_is_itself(text: str) -> None:
    if "'" in text or "\0" in text:
        return
    node = parse(f"echo '{text}'")
    assert isinstance(node, Simple)
    assert "".join(getattr(part, "text", "?") for part in node.words[1].parts) == text  # type: ignore[union-attr]
