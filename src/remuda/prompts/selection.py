"""Which prompt channel to use: the documented selection table as a pure function.

A request is a wish, not a capability: a channel is used only when the runtime declares it, and stored
evidence can withdraw a declared channel but never add one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, get_args

import msgspec

from remuda.core.errors import UsageError
from remuda.core.log import Warn, redacted
from remuda.runtimes.base import Channel, Mode, Runtime

Requested = Literal["auto", "argv", "stdin", "tempfile"]

AUTO_THRESHOLD = 4096
"""Prompts up to this many bytes may go on the command line by themselves."""

ARGUMENT_LIMIT = 128 * 1024
"""Linux refuses a single argument of this many bytes, its terminating NUL included."""

VARIABLES = ("REMUDA_PROMPT_DELIVERY", "AMPLIHACK_PROMPT_DELIVERY")

_ORDER: dict[Requested, tuple[Mode, ...]] = {
    "auto": ("tempfile", "stdin", "connection", "argv"),
    "argv": ("argv", "tempfile", "stdin", "connection"),
    "tempfile": ("tempfile", "stdin", "argv", "connection"),
    "stdin": ("stdin", "argv", "connection"),
}
"""What each request falls back to. An explicit stdin request never becomes a prompt file; a connection cannot
be asked for and takes the place of what a program does not offer."""


class Selection(msgspec.Struct, frozen=True):
    """The chosen channel and the warnings that are due, free of any prompt text."""

    requested: Requested
    mode: Mode
    warnings: tuple[str, ...] = ()


class NoChannelError(UsageError):
    """No channel of the runtime can carry this prompt; nothing was started."""


def from_env(environ: Mapping[str, str], configured: str | None, warn: Warn) -> Requested:
    """The requested mode: REMUDA_PROMPT_DELIVERY, then its documented twin, then the configuration.

    Case does not matter; an unknown value means auto, with a warning.
    """
    raw = next(
        (value for name in VARIABLES if (value := environ.get(name, "").strip())), configured or "auto"
    )
    value = raw.strip().lower() or "auto"
    for mode in get_args(Requested):
        if mode == value:
            return mode  # type: ignore[no-any-return]
    warn("unknown prompt delivery mode; using auto", value=redacted(raw))
    return "auto"


def fits_argument(size: int, channel: Channel) -> bool:
    """Whether the kernel takes a prompt of this size as (part of) one argument."""
    overhead = max((len(argument) for argument in channel.arguments), default=0)
    return size + overhead < ARGUMENT_LIMIT


def select_mode(requested: Requested, size: int, channels: Iterable[Channel]) -> Mode | None:
    """The effective mode for a prompt of ``size`` bytes; None when no channel can carry it."""
    usable = {
        channel.mode: channel
        for channel in channels
        if channel.mode != "argv" or fits_argument(size, channel)
    }
    order = _ORDER[requested]
    if requested == "auto":
        argv = usable.get("argv")
        if argv and not argv.on_request and size <= AUTO_THRESHOLD:
            return "argv"
    return next((mode for mode in order if mode in usable), None)


def select(runtime: Runtime, requested: Requested, size: int, withdrawn: Collection[Mode] = ()) -> Selection:
    """Choose a runtime's channel, or explain why none will do."""
    channels = [channel for channel in runtime.channels if channel.mode not in withdrawn]
    declared = {channel.mode for channel in channels}
    if requested in runtime.rejects and requested not in declared:
        raise NoChannelError(
            f"{runtime.title} has no documented {requested} prompt channel, and this request is not degraded",
            "Unset REMUDA_PROMPT_DELIVERY, or set it to auto.",
        )
    mode = select_mode(requested, size, channels)
    if not declared:
        raise NoChannelError(
            f"every prompt channel of the installed {runtime.title} was seen to fail",
            f"Look again with 'remuda doctor --verify {runtime.name}', or choose another agent.",
        )
    if mode is None:
        raise NoChannelError(
            f"a prompt of {size} bytes cannot be delivered to {runtime.title}: "
            f"it takes prompts by {', '.join(sorted(declared))} only",
            "Shorten the prompt, or choose an agent with a stdin or file channel ('remuda runtimes').",
        )
    if requested in ("auto", mode):
        return Selection(requested, mode)
    why = "cannot hold a prompt this long" if requested in declared else "is unsupported"
    return Selection(requested, mode, (f"requested {requested} {why}; degrading to {mode}",))
