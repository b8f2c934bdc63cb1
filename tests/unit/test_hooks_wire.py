"""What the hook's client and the resident process say to each other, whoever says it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from remuda.core.paths import folders
from remuda.hooks import wire

FIELDS = st.lists(st.binary(max_size=50), min_size=1, max_size=8)
PLACES = st.sampled_from(("", "relative", "/abs", "/a b/ü", "/trailing/", "~/x"))
VARIABLES = ("REMUDA_HOME", "HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")


def reader(data: bytes, most: int = 1 << 20) -> Callable[[int], bytes]:
    stream = io.BytesIO(data)
    return lambda size: stream.read(min(size, most))


@hypothesis.given(FIELDS, st.integers(1, 20))
def test_a_message_arrives_in_whatever_pieces(fields: list[bytes], most: int) -> None:
    assert wire.receive(reader(wire.message(*fields), most), len(fields)) == fields


@hypothesis.given(FIELDS, st.data())
def test_a_message_that_is_cut_short_is_none(fields: list[bytes], data: st.DataObject) -> None:
    whole = wire.message(*fields)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(wire.BrokenError):
        wire.receive(reader(whole[:cut]), len(fields))


@hypothesis.given(st.binary(max_size=200), st.booleans())
@hypothesis.example(b"\0\0\0\x01x", True)
@hypothesis.example(b"\xff\xff\xff\xff", True)
def test_garbage_is_broken_and_nothing_else(data: bytes, begins_well: bool) -> None:
    with pytest.raises(wire.BrokenError):
        wire.receive(reader((wire.MAGIC if begins_well else b"") + data), 99)


def test_the_length_is_bounded_before_anything_is_read() -> None:
    asked: list[int] = []

    def recv(size: int) -> bytes:
        asked.append(size)
        return wire.MAGIC + (wire.MOST + 1).to_bytes(4, "big")

    with pytest.raises(wire.BrokenError):
        wire.receive(recv, 1)
    assert asked == [8]


@hypothesis.given(st.dictionaries(st.sampled_from(VARIABLES), PLACES))
@hypothesis.example({"REMUDA_HOME": "/r", "XDG_RUNTIME_DIR": "/x"})
@hypothesis.example({"HOME": "/h", "XDG_STATE_HOME": "relative"})
def test_both_sides_meet_where_the_other_folders_are(environ: dict[str, str]) -> None:
    found = wire.runtime_folder(environ)
    assert found is None or Path(found) == folders(environ).runtime
    if environ.get("REMUDA_HOME", "").startswith("/") or environ.get("HOME", "").startswith("/"):
        assert found is not None or not environ.get("REMUDA_HOME", "/").startswith("/")


@hypothesis.given(
    st.dictionaries(
        st.sampled_from((*wire.CARRIED, "SECRET", "PATHS")),
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20),
    )
)
def test_only_some_of_an_environment_travels(environ: dict[str, str]) -> None:
    expected = {name: value for name, value in environ.items() if name in wire.CARRIED}
    assert wire.unpacked(wire.packed(environ)) == expected
    everything = b"\0".join(f"{name}={value}".encode() for name, value in environ.items())
    assert wire.unpacked(everything) == expected


def test_a_socket_is_reached_whatever_the_length_of_its_path(tmp_path: Path) -> None:
    assert wire.address("/short") == ("/short/serve.sock", None)
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    path, handle = wire.address(str(deep))
    assert handle is not None
    assert len(path) < wire.LONGEST_PATH
    assert Path(path).parent.resolve() == deep.resolve()
    os.close(handle)
