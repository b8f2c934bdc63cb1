"""The documented selection table, for every set of channels, size and request."""

from __future__ import annotations

import errno
import itertools
import subprocess
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import UsageError
from remuda.prompts.selection import (
    ARGUMENT_LIMIT,
    AUTO_THRESHOLD,
    NoChannelError,
    Requested,
    from_env,
    select,
    select_mode,
)
from remuda.runtimes import registry
from remuda.runtimes.base import PROMPT, PROMPT_FILE, Channel, Mode, Runtime

MODES: tuple[Mode, ...] = ("argv", "stdin", "tempfile")
REQUESTS: tuple[Requested, ...] = ("auto", *MODES)
ARGUMENTS: dict[Mode, tuple[str, ...]] = {
    "argv": ("--", PROMPT),
    "stdin": (),
    "tempfile": ("--prompt-file", PROMPT_FILE),
}


def channel(mode: Mode, on_request: bool = False) -> Channel:
    return Channel(mode, ARGUMENTS[mode], "1.0", on_request=on_request)


def runtime(*channels: Channel, rejects: frozenset[Mode] = frozenset()) -> Runtime:
    return msgspec.structs.replace(registry.get("rehearsal"), channels=channels, rejects=rejects)


def channel_sets() -> st.SearchStrategy[list[Channel]]:
    return st.permutations(MODES).flatmap(
        lambda modes: st.integers(0, 3).flatmap(
            lambda count: st.tuples(
                *(
                    st.builds(channel, st.just(mode), st.booleans() if mode == "argv" else st.just(False))
                    for mode in modes[:count]
                )
            ).map(list)
        )
    )


requests = st.sampled_from(REQUESTS)
argv_sizes = st.integers(0, ARGUMENT_LIMIT - 64)
sizes = st.one_of(
    st.integers(0, 5000), st.integers(0, 10**7), st.sampled_from([4096, 4097, 131063, 131064, 131072])
)


@pytest.mark.parametrize(
    ("requested", "declared", "small", "large"),
    [
        ("auto", "argv tempfile stdin", "argv", "tempfile"),
        ("auto", "argv stdin", "argv", "stdin"),
        ("auto", "argv", "argv", "argv"),
        ("auto", "tempfile stdin", "tempfile", "tempfile"),
        ("auto", "stdin", "stdin", "stdin"),
        ("argv", "argv tempfile stdin", "argv", "argv"),
        ("argv", "tempfile stdin", "tempfile", "tempfile"),
        ("argv", "stdin", "stdin", "stdin"),
        ("tempfile", "argv tempfile stdin", "tempfile", "tempfile"),
        ("tempfile", "argv stdin", "stdin", "stdin"),
        ("tempfile", "argv", "argv", "argv"),
        ("stdin", "argv tempfile stdin", "stdin", "stdin"),
        ("stdin", "argv tempfile", "argv", "argv"),
        ("stdin", "tempfile", None, None),
    ],
)
def test_the_table(requested: Requested, declared: str, small: Mode | None, large: Mode | None) -> None:
    channels = [channel(mode) for mode in MODES if mode in declared.split()]
    assert select_mode(requested, AUTO_THRESHOLD, channels) == small
    assert select_mode(requested, AUTO_THRESHOLD + 1, channels) == large


def expected(requested: Requested, size: int, channels: Sequence[Channel]) -> Mode | None:
    """The document's rules, told once more and differently."""
    declared = {one.mode for one in channels}
    automatic = any(one.mode == "argv" and not one.on_request for one in channels)
    if requested == "auto" and size <= 4096 and automatic:
        return "argv"
    orders = {"argv": "argv tempfile stdin", "stdin": "stdin argv"}
    order = orders.get(requested, "tempfile stdin argv").split()
    ranked = sorted((order.index(mode), mode) for mode in declared if mode in order)
    return ranked[0][1] if ranked else None


@given(requests, argv_sizes, channel_sets())
def test_any_set_of_channels_obeys_the_table(
    requested: Requested, size: int, channels: list[Channel]
) -> None:
    assert select_mode(requested, size, channels) == expected(requested, size, channels)


@given(requests, sizes, channel_sets())
def test_only_declared_channels_are_chosen_and_argv_only_where_it_fits(
    requested: Requested, size: int, channels: list[Channel]
) -> None:
    mode = select_mode(requested, size, channels)
    assert mode is None or mode in {one.mode for one in channels}
    if mode == "argv":
        assert size < ARGUMENT_LIMIT
    if requested == "stdin":
        assert mode != "tempfile"


@given(sizes, channel_sets())
def test_argv_on_request_is_a_last_resort_of_auto(size: int, channels: list[Channel]) -> None:
    argv = Channel("argv", (PROMPT,), "1.0.0", on_request=True)
    channels = [argv, *(one for one in channels if one.mode != "argv")]
    mode = select_mode("auto", size, channels)
    if len(channels) > 1:
        assert mode != "argv"
    else:
        assert mode == ("argv" if size < ARGUMENT_LIMIT - len(PROMPT) else None)


@given(requests, sizes, channel_sets(), st.sets(st.sampled_from(MODES)))
def test_withdrawn_evidence_only_removes(
    requested: Requested, size: int, channels: list[Channel], withdrawn: set[Mode]
) -> None:
    left = [one for one in channels if one.mode not in withdrawn]
    try:
        mode = select(runtime(*channels), requested, size, withdrawn).mode
    except NoChannelError:
        assert select_mode(requested, size, left) is None
    else:
        assert mode not in withdrawn
        assert mode == select_mode(requested, size, left)


@given(requests, sizes, channel_sets())
def test_a_degradation_warns_with_both_modes_and_nothing_else_does(
    requested: Requested, size: int, channels: list[Channel]
) -> None:
    try:
        chosen = select(runtime(*channels), requested, size)
    except NoChannelError:
        assert select_mode(requested, size, channels) is None
        return
    assert chosen.requested == requested
    if requested in ("auto", chosen.mode):
        assert chosen.warnings == ()
    else:
        [warning] = chosen.warnings
        assert f"requested {requested} " in warning
        assert warning.endswith(f"degrading to {chosen.mode}")


def test_the_documented_wording_of_a_degradation() -> None:
    chosen = select(runtime(channel("argv")), "tempfile", 100)
    assert chosen.warnings == ("requested tempfile is unsupported; degrading to argv",)


def test_a_prompt_too_long_for_argv_is_told_apart_from_a_missing_channel() -> None:
    chosen = select(runtime(channel("argv"), channel("stdin")), "argv", ARGUMENT_LIMIT)
    assert chosen.mode == "stdin"
    assert chosen.warnings == ("requested argv cannot hold a prompt this long; degrading to stdin",)


@pytest.mark.parametrize("requested", ["tempfile", "stdin"])
def test_a_rejected_request_fails_instead_of_degrading(requested: Requested) -> None:
    strict = runtime(channel("argv"), rejects=frozenset({"tempfile", "stdin"}))
    with pytest.raises(NoChannelError, match=f"no documented {requested} prompt channel"):
        select(strict, requested, 10)
    assert select(strict, "auto", 10).mode == "argv"
    assert select(strict, "argv", 10).mode == "argv"


def test_a_rejection_does_not_apply_to_a_channel_that_is_declared() -> None:
    both = runtime(channel("argv"), channel("stdin"), rejects=frozenset({"tempfile", "stdin"}))
    assert select(both, "stdin", 10).mode == "stdin"
    with pytest.raises(NoChannelError):
        select(both, "stdin", 10, withdrawn={"stdin"})


def test_a_prompt_that_nothing_can_carry_is_an_error_with_its_size() -> None:
    with pytest.raises(UsageError, match="131072 bytes") as caught:
        select(runtime(channel("argv")), "auto", 131072)
    assert caught.value.exit_code == 2


def _argument(size: int) -> int:
    return subprocess.run(["/bin/true", "x" * size], check=False).returncode


def test_the_kernel_takes_an_argument_just_under_the_limit_and_no_longer_one() -> None:
    assert _argument(ARGUMENT_LIMIT - 1) == 0
    with pytest.raises(OSError, match="too long") as caught:
        _argument(ARGUMENT_LIMIT)
    assert caught.value.errno == errno.E2BIG


@pytest.mark.parametrize("arguments", [("--", PROMPT), (f"--prompt={PROMPT}",), (PROMPT,)])
def test_the_longest_prompt_that_argv_is_chosen_for_really_starts(arguments: tuple[str, ...]) -> None:
    only = Channel("argv", arguments, "1.0")
    longest = next(size for size in range(ARGUMENT_LIMIT, 0, -1) if select_mode("argv", size, [only]))
    assert longest > ARGUMENT_LIMIT - 64
    argv = [argument.replace(PROMPT, "x" * longest) for argument in arguments]
    assert subprocess.run(["/bin/true", *argv], check=False).returncode == 0


class Warnings(list[tuple[str, dict[str, object]]]):
    """Collects warnings."""

    def __call__(self, message: str, **fields: object) -> None:
        self.append((message, fields))


@pytest.mark.parametrize(
    ("ours", "documented", "configured", "requested"),
    [
        (None, None, None, "auto"),
        ("", "", "", "auto"),
        ("stdin", "argv", "tempfile", "stdin"),
        (None, "argv", "tempfile", "argv"),
        (" ", "argv", None, "argv"),
        (None, None, "tempfile", "tempfile"),
        ("TempFile", None, None, "tempfile"),
        (" STDIN\n", None, None, "stdin"),
        (None, None, " Argv ", "argv"),
        ("auto", "argv", "stdin", "auto"),
    ],
)
def test_where_the_request_comes_from(
    ours: str | None, documented: str | None, configured: str | None, requested: Requested
) -> None:
    names = {"REMUDA_PROMPT_DELIVERY": ours, "AMPLIHACK_PROMPT_DELIVERY": documented}
    warnings = Warnings()
    environ = {name: value for name, value in names.items() if value is not None}
    assert from_env(environ, configured, warnings) == requested
    assert warnings == []


@given(st.text(min_size=1).filter(lambda text: text.strip() and text.strip().lower() not in REQUESTS))
def test_an_unknown_request_means_auto_with_a_warning_that_keeps_the_value_to_itself(value: str) -> None:
    warnings = Warnings()
    assert from_env({"REMUDA_PROMPT_DELIVERY": value}, "stdin", warnings) == "auto"
    [(message, fields)] = warnings
    assert message == "unknown prompt delivery mode; using auto"
    assert set(fields) == {"value"}
    assert str(fields["value"]).strip("<>").split()[1] == "bytes"


@pytest.mark.parametrize(("name", "requested"), list(itertools.product(registry.names(), REQUESTS)))
def test_every_runtime_takes_or_refuses_a_long_prompt_under_every_request(
    name: str, requested: Requested
) -> None:
    found = registry.get(name)
    if requested in found.rejects:
        with pytest.raises(NoChannelError):
            select(found, requested, 64 * 1024)
        return
    chosen = select(found, requested, 64 * 1024)
    assert chosen.mode in {one.mode for one in found.channels}
    if requested == "auto" and len(found.channels) > 1:
        assert chosen.mode != "argv"
