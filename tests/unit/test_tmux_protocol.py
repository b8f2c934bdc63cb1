"""What is said to tmux, and what it says in control mode."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import UsageError
from remuda.sessions.tmux import protocol
from remuda.sessions.tmux.protocol import Changed, Closed, Exit, Output, Paused, Reader, Reply, Switched


def read(data: bytes) -> list[protocol.Message]:
    return list(Reader().feed(data))


def escaped(data: bytes) -> bytes:
    """A pane's output as tmux writes it."""
    return b"".join(b"\\%03o" % byte if byte < 32 or byte == 92 else bytes((byte,)) for byte in data)


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")))
def test_a_quoted_word_is_one_line_of_ascii_and_nothing_in_it_is_expanded(text: str) -> None:
    word = protocol.quoted(text)
    assert word.isascii()
    assert word.isprintable()
    assert re.fullmatch(r'"(?:[^"\\$~]|\\[0-3][0-7]{2})*"', word)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_argument_can_hold_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        protocol.quoted(text)


def test_a_sequence_is_one_line_so_that_nothing_runs_behind_a_failure() -> None:
    assert protocol.sequence([("a", "1\n2"), ("b",)]) == '"a" "1\\0122" ; "b"\n'


@pytest.mark.parametrize(
    "name",
    ["", "a.b", "a:b", "=a", "$1", "@1", "%1", "-a", "a b", "a*", "ä", "a\n", "x" * 101, "{last}", "!", "+1"],
)
def test_names_that_tmux_reads_as_something_else_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        protocol.session_target(name)


def test_targets_are_exact() -> None:
    assert protocol.session_target("b1") == "=b1:"
    assert protocol.pane_target("b1", "%12") == "=b1:.%12"
    for pane in ("12", "%", "%1.2", "%1:", "%-1", "{last}"):
        with pytest.raises(UsageError):
            protocol.pane_target("b1", pane)


def test_keys_by_name() -> None:
    names = ["Enter", "Escape", "C-c", "M-x", "C-M-Up", "S-Tab", "F12", "y", "-", "~", "C-\\", "BTab"]
    assert protocol.checked_keys(names) == tuple(names)


@pytest.mark.parametrize(
    "name", ["", "Entre", "enter", "C-", "C-Foo", "yes", "é", "\n", " ", "F13", "X-a", "-l"]
)
def test_what_is_no_key_is_refused_because_tmux_would_type_it(name: str) -> None:
    with pytest.raises(UsageError):
        protocol.checked_keys(["Enter", name])


def test_replies_carry_their_number_their_lines_and_whose_they_are() -> None:
    said = b"%begin 1700 12 0\n%end 1700 12 0\n%begin 1701 13 1\none\n\ntwo\n%end 1701 13 1\n"
    assert read(said) == [Reply(12, True, False), Reply(13, True, True, ("one", "", "two"))]
    assert read(b"%begin 1 2 1\nno such thing\n%error 1 2 1\n") == [Reply(2, False, True, ("no such thing",))]


def test_only_the_same_numbers_end_a_reply() -> None:
    said = b"%begin 5 7 1\n%end 5 6 1\n%error 4 7 1\n%output %1 x\n%exit\n%end 5 7 1\n"
    assert read(said) == [
        Reply(7, True, True, ("%end 5 6 1", "%error 4 7 1", "%output %1 x", "%exit")),
    ]


def test_output_is_unescaped() -> None:
    assert read(b"%output %3 a\\033[1m\\134\\015\\012 b \xc3\n%output %3 \xa9\n") == [
        Output("%3", b"a\x1b[1m\\\r\n b \xc3"),
        Output("%3", b"\xa9"),
    ]
    assert read(b"%extended-output %3 120 : a : b\\011\n") == [Output("%3", b"a : b\t")]
    assert read(b"%extended-output %3 120 : \n%output %4 \n") == [Output("%3", b""), Output("%4", b"")]
    assert read(b"%output %1 \\9 \\12 \\477\n") == [Output("%1", b"\\9 \\12 \\477")]


def test_notifications() -> None:
    assert read(b"%pause %1\n%window-close @4\n%unlinked-window-close @5\n%session-changed $1 b 1\n") == [
        Paused("%1"),
        Closed("@4"),
        Closed("@5"),
        Switched("b 1"),
    ]
    assert read(b"%subscription-changed ended $1 @2 3 %4 : 1 : x\n") == [Changed("ended", "%4", "1 : x")]
    assert read(b"%subscription-changed ended $1 - - - : x\n") == [Changed("ended", "-", "x")]
    assert read(b"%exit\n%exit server exited\n") == [Exit(), Exit("server exited")]


def test_what_is_not_known_is_passed_over() -> None:
    assert read(b"%layout-change @1 x y\n%new-thing\n\nnoise\n%begin x y z\n%begin\n%exit\n") == [Exit()]


def test_the_wrapping_of_a_terminal_is_tolerated() -> None:
    assert read(b"\x1bP1000p%begin 1 2 1\r\nx\r\n%end 1 2 1\r\n%exit\r\n\x1b\\") == [
        Reply(2, True, True, ("x",)),
        Exit(),
    ]


def test_a_reply_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LONGEST_REPLY", 10)
    assert read(b"%begin 1 2 1\n12345678\nmore\n%end 1 2 1\n") == [Reply(2, True, True, ("12345678",))]


@given(st.binary(), st.integers(0, 200), st.integers(0, 200))
def test_output_arrives_whole_however_it_is_cut(data: bytes, cut: int, chunk: int) -> None:
    pieces = [data[:cut], data[cut:]]
    said = b"".join(b"%output %1 " + escaped(piece) + b"\n" for piece in pieces)
    reader = Reader()
    heard = [*reader.feed(said[:chunk]), *reader.feed(said[chunk:])]
    assert [message.data for message in heard if isinstance(message, Output)] == pieces


_WORDS = st.sampled_from(
    (
        *(b"%begin", b"%end", b"%error", b"%output", b"%extended-output", b"%exit", b"%pause"),
        *(b"%subscription-changed", b"%session-changed", b" ", b"\n", b"\r\n", b"1", b"2", b"%1", b" : "),
        *(b"\\01", b"\x1bP1000p", b"\xff"),
    )
)


@given(st.lists(st.one_of(_WORDS, st.binary(max_size=6)), max_size=60))
def test_nothing_makes_the_reader_fail_and_cutting_changes_nothing(parts: list[bytes]) -> None:
    whole = read(b"".join(parts))
    reader = Reader()
    assert [message for part in parts for message in reader.feed(part)] == whole
