"""Generated input for the resolvers: values for a variable, and files that are nearly a launcher context."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from tests.integration.resolver_site import NAMES

any_name = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))
variables = st.one_of(
    st.builds(
        "{}{}{}".format, st.text(" \t\n\x0b\u00a0", max_size=3), any_name, st.text(" \r.-", max_size=3)
    ),
    st.sampled_from(NAMES).map(str.title),
    st.text("claudeCLAUDE \u212a\u0131", max_size=9),
).filter(lambda value: "\0" not in value)

timestamps = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat(timespec="seconds") + "Z"),
    st.from_regex(
        r"2[01][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|[+-][0-2][0-9]:[0-6]0)"
    ),
    st.text(max_size=5),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), any_name)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_name, inner, max_size=3)
)
usable = st.sampled_from(("claude", "codex", " Claude ", "amplifier"))
launchers = st.booleans().flatmap(lambda good: usable if good else values)
objects = st.builds(
    lambda launcher, rest, more: {**rest, "launcher": launcher, **more},
    launchers,
    st.dictionaries(st.text(max_size=3), values, max_size=2),
    st.dictionaries(st.just("started_at"), timestamps, max_size=1),
)
texts = st.builds(
    lambda document, plain, indent: json.dumps(document, ensure_ascii=not plain, indent=indent),
    objects,
    st.booleans(),
    st.sampled_from((None, 2)),
).map(lambda text: text.encode("utf-8", "surrogatepass"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid document in which a few bytes were replaced, inserted or left out."""
    content = draw(texts)
    start = draw(st.integers(0, len(content)))
    stop = min(len(content), start + draw(st.integers(0, 3)))
    tokens = st.sampled_from(
        (b'"', b"\\", b"\\u0041", b"{", b"]", b",", b"1", b"\xc3", b"\xed\xa0\x80", b' "a":0,')
    )
    return content[:start] + draw(st.binary(max_size=2) | tokens) + content[stop:]


documents = st.one_of(texts, damaged(), st.binary(max_size=40))
