"""The guard's part in turns over the Agent Client Protocol: what a request is for, and who ran without one.

A request names a tool call, not a tool. What it means is for the agent's ``Manners`` to say.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from remuda.core.events import Failure
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.base import Guard

_UNREADABLE = Verdict(
    decision="deny",
    rule="tool.unreadable",
    reason="what the agent asks for cannot be told from its request",
    hint="Do it with a shell command.",
)
_UNCLEAR = Verdict(
    decision="ask",
    rule="tool.unreadable",
    reason="what the agent asks for cannot be told from its request",
)
_TOOLS = {"read": "read", "edit": "edit", "delete": "delete", "move": "edit"}


class Told(msgspec.Struct, frozen=True):
    """What an agent has told of a tool call: its first title, which often is the tool's name, its kind, the
    last input, and whether it was said to be under way."""

    title: str = ""
    kind: str = ""
    input: msgspec.Raw = wire.NULL
    begun: bool = False

    def fields(self) -> dict[str, object]:
        """The input, as far as it is an object."""
        return wire.decode(self.input, dict[str, object]) or {}


def by_kind(call: wire.Change, told: Told, cwd: str) -> ToolCall | None:
    """A tool call by nothing but what the protocol has for everybody."""
    kind = call.kind or told.kind
    if kind == "execute":
        given = wire.decode(call.raw_input, dict[str, object]) or told.fields()
        return ToolCall("shell", given, cwd) if "command" in given else None
    named = wire.paths(call)
    return ToolCall(_TOOLS[kind], {"paths": named}, cwd) if kind in _TOOLS and named else None


def _always(_told: Told) -> bool:
    return True


def _unknown(_update: wire.Change, _told: Told) -> bool:
    """Nothing tells whether a tool call needed to ask."""
    return False


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent asks before it acts.

    ``understands`` makes a tool call of a request and of what was told before; None is refused. A request
    waits until ``enough`` is told. ``ran`` tells by an update that a tool runs, or has run, which has to have
    asked.
    """

    understands: Callable[[wire.Change, Told, str], ToolCall | None] = by_kind
    enough: Callable[[Told], bool] = _always
    ran: Callable[[wire.Change, Told], bool] = _unknown


class Gate:
    """Lets tool calls pass or not, and notices those that did not come through it, unless they need not."""

    def __init__(self, guard: Guard, cwd: str, manners: Manners) -> None:
        self._guard = guard
        self._cwd = cwd
        self._manners = manners
        self._told: dict[str, Told] = {}
        self._judged: dict[str, tuple[ToolCall, Verdict]] = {}
        self._granted: set[str] = set()
        self._denied: set[str] = set()

    def next_turn(self) -> None:
        """What was told and judged is of no use any more; what was granted may still be under way."""
        self._told.clear()
        self._judged.clear()

    def forget(self, ident: str) -> None:
        """A tool call of an earlier turn had the same name as one that begins now."""
        self._granted.discard(ident)
        self._denied.discard(ident)

    def note(self, ident: str, update: wire.Change) -> Failure | None:
        """Remember what is told of a tool call. One that ran without having been granted breaks the guard."""
        known = self._told.get(ident, Told())
        given = wire.decode(update.raw_input, object)
        told = self._told[ident] = Told(
            title=known.title or update.title or "",
            kind=update.kind or known.kind,
            input=known.input if given is None else update.raw_input,
            begun=known.begun or update.status == "in_progress",
        )
        if not self._guard.binding or not self._manners.ran(update, told):
            return None
        if ident in self._granted - self._denied:
            return None
        asked = "although it was refused" if ident in self._denied else "without having asked"
        return Failure("refused", f"the agent ran a tool {asked}: the guard does not hold")

    def enough(self, ident: str) -> bool:
        """Whether a request about this tool call can be judged by now."""
        return self._manners.enough(self._told.get(ident, Told()))

    def rule(self, call: wire.Change) -> tuple[ToolCall, Verdict]:
        """Judge a request, which an agent may make in several steps. What cannot be read is judged as the
        worst that it may be, and refused; in a person's own session that person looks at it."""
        ident = call.tool_call_id or ""
        understood = self._manners.understands(call, self._told.get(ident, Told()), self._cwd)
        if understood is None:
            return self._unread(call)
        before = self._judged.get(ident)
        if before is None or before[0] != understood:
            before = self._judged[ident] = (understood, self._guard.judge(understood))
        return before

    def settle(self, ident: str, call: ToolCall, verdict: Verdict, *, granted: bool) -> None:
        """A request was answered, perhaps by a person, and so is each further step of it."""
        self._judged[ident] = (call, verdict)
        (self._granted if granted else self._denied).add(ident)

    def _unread(self, call: wire.Change) -> tuple[ToolCall, Verdict]:
        shown = wire.decode(wire.shown_input(call), object)
        unread = ToolCall(call.title or call.kind or "a tool", shown, self._cwd)
        if not self._guard.binding:
            return unread, _UNCLEAR
        self._guard.judge(ToolCall("shell", None, self._cwd))
        return unread, _UNREADABLE
