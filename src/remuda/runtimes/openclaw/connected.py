"""OpenClaw over a connection: its bridge to the Agent Client Protocol, as a gateway stands behind it.

A turn that failed ends like any other, only without a word: why is told in the gateway's log, which comes by
standard error.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from remuda.core.events import Failure
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection, Dialect
from remuda.runtimes.acp_guard import Manners, Told, by_kind
from remuda.runtimes.base import Connection, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.openclaw.stream import trouble

_FAILED = re.compile(rb"Embedded agent failed before reply: (.+)")
_NO_GATEWAY = re.compile(rb"ACP bridge failed: .*ECONNREFUSED")
_ALONE = Failure(
    "start_failed", "OpenClaw's gateway does not run: start it ('openclaw gateway run'), or use --mode tmux"
)
_SORRY = re.compile(r"⚠️ OpenClaw couldn't produce or deliver a reply")
_UNANSWERED = Failure("model", "OpenClaw ended the turn without an answer: its gateway's log may tell why")


def _understood(call: wire.Change, told: Told, cwd: str) -> ToolCall | None:
    """A command, in the folder that it is to run in: that is told before the request, and not in it."""
    found, folder = by_kind(call, told, cwd), told.fields().get("workdir")
    if found is None or not isinstance(folder, str):
        return found
    return ToolCall(found.tool, found.input, str(Path(cwd, folder)))


def _hear(state: TurnState, line: bytes) -> None:
    """What the log says of the model, or the bridge of the gateway."""
    if _NO_GATEWAY.search(line):
        state.failure = _ALONE
    elif found := _FAILED.search(line):
        state.trouble = state.trouble or failure(found[1].decode("utf-8", "replace"))
    else:
        trouble(state, line)


def _sorry(text: str) -> bool:
    return _SORRY.match(text) is not None


def _denied(output: str) -> bool:
    """It refuses by itself what its approvals cannot hold, such as a command that redirects its output."""
    return output.startswith("Exec denied")


_DIALECT = Dialect(refuses=_denied, hear=_hear, chatter=_sorry, manners=Manners(understands=_understood))


class OpenClawConnection(AcpConnection):
    """A conversation with OpenClaw."""

    def _ended(self, result: msgspec.Raw) -> None:
        """The turn is over. Trouble that no word came after was the end of it."""
        if not self._aborting:
            self.state.failure = self.state.trouble or (None if self._course.begun else _UNANSWERED)
        super()._ended(result)


def connection(turn: Turn) -> Connection:
    """A conversation in a person's own session."""
    return OpenClawConnection(turn, _DIALECT)
