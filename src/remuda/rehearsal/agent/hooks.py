"""Hooks as Claude Code obeys them, its fail-open cases included.

Exit code 2 blocks. So does a deny, ask or block in the output, whatever the exit code. A hook that crashes,
prints garbage or runs out of time has no say, and the tool runs: what a guard must reckon with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from remuda.rehearsal.agent.process import Command, Ended, Processes
from remuda.rehearsal.agent.settings import Settings

Event = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
Decision = Literal["none", "allow", "ask", "block"]

_RANKS: tuple[Decision, ...] = ("none", "allow", "ask", "block")
_DECISIONS: dict[str, Decision] = {"allow": "allow", "ask": "ask", "deny": "block"}
_TAKES_CONTEXT = ("SessionStart", "UserPromptSubmit")


class Identity(Struct, frozen=True):
    """What every payload of a session says."""

    session_id: str
    transcript_path: str
    cwd: str
    permission_mode: str


class Occasion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What hooks are asked about: the event and the fields that belong to it."""

    hook_event_name: Event
    source: str | None = None
    reason: str | None = None
    prompt: str | None = None
    tool_name: str | None = None
    tool_input: dict[str, object] | None = None
    tool_use_id: str | None = None
    tool_response: str | None = None
    stop_hook_active: bool | None = None
    last_assistant_message: str | None = None

    @property
    def subject(self) -> str:
        """What a matcher is compared with."""
        return self.tool_name or self.source or self.reason or ""


class Verdict(Struct, frozen=True):
    """What hooks said, with the reason for the model and any context for it."""

    decision: Decision = "none"
    reason: str = ""
    context: str = ""


class _Specific(Struct, frozen=True, rename="camel"):
    hook_event_name: str | None = None
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str = ""
    additional_context: str = ""


class _Output(Struct, frozen=True, rename="camel"):
    decision: Literal["approve", "block"] | None = None
    reason: str = ""
    hook_specific_output: _Specific = _Specific()


def judge(event: Event, ended: Ended) -> Verdict:
    """What one hook's end means."""
    if ended.returncode is None:
        return Verdict()
    if ended.returncode == 2:
        return Verdict("block", ended.stderr.strip() or "A hook blocked this without giving a reason")
    clean = ended.returncode == 0
    try:
        output = msgspec.json.decode(ended.stdout, type=_Output)
    except (msgspec.DecodeError, RecursionError):
        return Verdict(context=ended.stdout.strip() if clean and event in _TAKES_CONTEXT else "")
    return _read(event, output, clean=clean)


def _read(event: Event, output: _Output, *, clean: bool) -> Verdict:
    """A refusal counts from any hook, a grant or context only from one that ended well."""
    specific = output.hook_specific_output
    if specific.hook_event_name not in (None, event):
        specific = _Specific()
    context = specific.additional_context if clean else ""
    if output.decision == "block":
        return Verdict("block", output.reason or "A hook blocked this", context)
    decision = _DECISIONS.get(specific.permission_decision or "", "none")
    if decision == "allow" and not clean:
        decision = "none"
    return Verdict(decision, specific.permission_decision_reason, context)


def answered(event: Event, answer: msgspec.Raw) -> Verdict:
    """What the answer of a host means; one that says nothing readable blocks."""
    try:
        output = msgspec.json.decode(answer, type=_Output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Verdict("block", "The host gave no answer")
    return _read(event, output, clean=True)


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The most restrictive verdict, with the context of all."""
    every = tuple(verdicts)
    strictest = max(every, key=lambda verdict: _RANKS.index(verdict.decision), default=Verdict())
    context = "\n".join(verdict.context for verdict in every if verdict.context)
    return msgspec.structs.replace(strictest, context=context)


Consult = Callable[[Occasion, Mapping[str, object]], list[Verdict]]
"""Asks a host that wants to be asked as a hook."""


def _nobody(_occasion: Occasion, _payload: Mapping[str, object]) -> list[Verdict]:
    return []


class Hooks:
    """The hooks of a session: asks all that an occasion concerns."""

    def __init__(
        self,
        settings: Settings,
        identity: Identity,
        cwd: Path,
        processes: Processes,
        consult: Consult = _nobody,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._cwd = cwd
        self._processes = processes
        self._consult = consult

    def ask(self, occasion: Occasion) -> Verdict:
        """Run every hook of the occasion, one after the other, and take the strictest answer."""
        payload = msgspec.to_builtins(self._identity) | msgspec.to_builtins(occasion)
        stdin = msgspec.json.encode(payload) + b"\n"
        event = occasion.hook_event_name
        env = {"CLAUDE_PROJECT_DIR": str(self._cwd)}
        return combine(
            [
                *self._consult(occasion, payload),
                *(
                    judge(
                        event, self._processes.run(Command(hook.command, self._cwd, hook.timeout, stdin, env))
                    )
                    for hook in self._settings.hooks_for(event, occasion.subject)
                ),
            ]
        )
