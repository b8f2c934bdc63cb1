"""OpenCode under the guard: an agent of our own, all of whose tools ask over the Agent Client Protocol.

A request has not all of the tool's input; what is told of the call before or right after it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Connection, Turn, TurnState
from remuda.runtimes.opencode import stream

_PLUGINS = ("plugin", "plugins")
_FILES = ("opencode.json", "opencode.jsonc", "config.json")
_MISCALLED = {"tool", "error"}
"""The input of the tool that stands for a call of one that is not there."""


def understands(_call: wire.Change, told: Told, cwd: str) -> ToolCall | None:
    """The tool call that a request is about: OpenCode first calls it by its tool's name."""
    return ToolCall(told.title, told.fields(), cwd) if told.title else None


def enough(told: Told) -> bool:
    """The input is complete once a call is said to be in progress, which does not mean that it runs."""
    return told.begun


def ran(update: wire.Change, told: Told) -> bool:
    """Only what is completed is sure to have run; a call of a tool that is not there just says so."""
    miscalled = update.title == "Invalid Tool" and told.kind == "other" and told.fields().keys() == _MISCALLED
    return update.status == "completed" and not miscalled


def model(name: str) -> str:
    """A model's name without that of its provider."""
    return name.partition("/")[2] or name


def hear(state: TurnState, line: bytes) -> None:
    """Take note of what the log tells."""
    stream.hear(state, line)


_DIALECT = Dialect(
    continues="session/resume",
    counted_since="call",
    model=model,
    hear=hear,
    manners=Manners(understands=understands, enough=enough, ran=ran),
)


def connection(turn: Turn) -> Connection:
    """A conversation, under the guard or in a person's own session."""
    return AcpConnection(turn, _DIALECT)


def objection(turn: Turn) -> str | None:
    """OpenCode runs a project's plugins, whatever it is told: with project configuration switched off, and
    with external plugins, too."""
    home = turn.environ.get("HOME")
    for folder in _project(turn.cwd.resolve()):
        own = folder / ".opencode"
        if home and folder == Path(home).resolve():
            continue
        places = itertools.chain((own / name for name in _PLUGINS), _naming_plugins(folder, own))
        if found := next((place for place in places if place.exists()), None):
            return f"OpenCode would run the plugins of {found}"
    return None


def _project(cwd: Path) -> Iterator[Path]:
    """The folders that OpenCode takes for the project's: up to the top of the work tree, or all of them."""
    for folder in (cwd, *cwd.parents):
        yield folder
        if (folder / ".git").exists():
            return


def _naming_plugins(*folders: Path) -> Iterator[Path]:
    """Configuration that may name plugins. An escaped letter would hide the word, so none is accepted."""
    for file in (folder / name for folder in folders for name in _FILES):
        try:
            text = file.read_text(errors="replace")
        except FileNotFoundError:
            continue
        except OSError:
            yield file
            continue
        if "plugin" in text or "\\u" in text:
            yield file
