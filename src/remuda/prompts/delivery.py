"""Puts a prompt on its way: the command to start, and the private folder that lives as long as the child."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core.errors import UsageError
from remuda.core.files import private_folder, write_new
from remuda.core.ids import ulid
from remuda.core.processes import Command
from remuda.runtimes.base import PROMPT, PROMPT_FILE, Channel, Invocation, Runtime, ScratchFile

_PROMPT_NAME = "prompt.md"


def check_prompt(prompt: str) -> None:
    """Refuse a prompt that no agent can receive unchanged."""
    if not prompt.strip():
        raise UsageError("the prompt is empty", "Give a prompt, '-' for standard input, or '@file'.")
    if "\0" in prompt:
        raise UsageError("the prompt holds a NUL byte", "Remove it: no agent can receive it unchanged.")
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise UsageError("the prompt is not valid UTF-8", "Convert it to UTF-8 first.") from None


@contextlib.contextmanager
def scratch_folder(base: Path) -> Iterator[Path]:
    """A private folder for one run, gone when the run is over; leftovers of killed runs are cleared first."""
    private_folder(base)
    _clear_leftovers(base)
    folder = private_folder(base / f"{os.getpid()}-{ulid()}")
    try:
        yield folder
    finally:
        _remove(folder)


def _clear_leftovers(base: Path) -> None:
    """Remove the folders whose owner is no longer running."""
    for folder in base.iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            _remove(folder)


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def payload(runtime: Runtime, invocation: Invocation, prompt: str) -> str:
    """The text that goes through the channel: preamble and prompt, with its traps disarmed."""
    return runtime.disarm(f"{invocation.preamble}\n\n{prompt}" if invocation.preamble else prompt)


def deliver(
    command: Command, channel: Channel, text: str, files: tuple[ScratchFile, ...], scratch: Path
) -> Command:
    """The command with the prompt on its way. ``scratch`` must outlive the child: it may hold the prompt."""
    places = {PROMPT: text}
    if channel.mode == "tempfile":
        places[PROMPT_FILE] = str(write_new(scratch / _PROMPT_NAME, text.encode()))
    for file in files:
        place = scratch / file.name
        private_folder(place.parent)
        write_new(place, file.content.encode())
    return msgspec.structs.replace(
        command,
        argv=(*command.argv, *_filled(channel.arguments, places)),
        stdin=text.encode() if channel.mode == "stdin" else None,
        converses=channel.mode == "connection",
    )


def _filled(arguments: tuple[str, ...], places: Mapping[str, str]) -> Iterator[str]:
    """Channel arguments with their placeholder replaced; a prompt's own braces are left alone."""
    for argument in arguments:
        head, placeholder, tail = next(
            (argument.partition(place) for place in places if place in argument), (argument, "", "")
        )
        yield head + places.get(placeholder, "") + tail
