"""What a terminal sends, read as keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remuda.rehearsal.agent.keys import Key, Keys

ENTER, ESCAPE = Key("enter"), Key("escape")


def read(*pieces: bytes) -> list[Key]:
    keys = Keys()
    return [key for piece in pieces for key in keys.feed(piece)]


def text_of(keys: list[Key]) -> bytes:
    return b"".join(key.text for key in keys if key.kind == "text")


def test_typed_text_and_control_keys() -> None:
    assert read(b"hi\r") == [Key("text", b"hi"), ENTER]
    assert [key.kind for key in read(b"\x03\x04\x7f\x08\x15\n")] == [
        *("break", "end", "erase", "erase"),
        *("clear", "enter"),
    ]
    assert read(b"a\x01b") == [Key("text", b"a"), Key("text", b"b")]


def test_keys_that_send_sequences_mean_nothing() -> None:
    assert read(b"\x1b[A\x1bOP\x1b[1;5Cx") == [Key("text", b"x")]


def test_an_escape_stands_alone_when_nothing_follows() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.open
    assert keys.flush() == [ESCAPE]
    assert not keys.open
    assert keys.flush() == []


def test_an_escape_in_front_of_a_text_is_a_key() -> None:
    assert read(b"\x1bhi") == [ESCAPE, Key("text", b"hi")]


def test_a_pasted_line_end_is_no_enter() -> None:
    assert read(b"\x1b[200~a\r\nb\x03\x1b[201~\r") == [Key("text", b"a\r\nb\x03"), ENTER]


@given(st.binary(max_size=200).filter(lambda data: b"\x1b" not in data), st.integers(1, 7))
def test_what_is_pasted_arrives_in_pieces_of_any_size(data: bytes, size: int) -> None:
    sent = b"\x1b[200~" + data + b"\x1b[201~\r"
    keys = read(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert text_of(keys) == data
    assert [key for key in keys if key.kind != "text"] == [ENTER]


@given(st.binary(max_size=200))
def test_no_input_breaks_it(data: bytes) -> None:
    keys = Keys()
    keys.feed(data)
    keys.flush()
