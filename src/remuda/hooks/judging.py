"""Judges a tool call and puts that on record: the one place, for hooks and for the connections of guarded
runs. Never raises; what cannot be put on record is not allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from remuda.core.clock import now, rfc3339
from remuda.guard.judge import judge
from remuda.guard.model import Context, Verdict
from remuda.guard.paths import Disk
from remuda.guard.table import TABLE
from remuda.guard.tools import ToolCall
from remuda.hooks import audit
from remuda.hooks.answer import unattended
from remuda.hooks.text import printable

if TYPE_CHECKING:
    from remuda.guard.own import Policy

CONNECTION = "connection"
GRANTED = "hook.granted"
"""The rule of a call about which the guard finds nothing, and that another judge grants in so many words."""

_LONGEST_NAME = 128
FAILED = Verdict(
    decision="deny", rule="guard.error", reason=TABLE["guard.error"].reason, hint=TABLE["guard.error"].hint
)
UNRECORDED = Verdict(
    decision="deny",
    rule="hook.audit",
    reason="the audit cannot be written",
    hint="Make the state folder of Remuda writable for its user.",
)


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks the guard about what, as the audit has it."""

    dialect: str
    capability: str
    event: str = "PreToolUse"
    runtime: str = ""
    session: str = ""


def recording_judge(
    context: Context,
    place: Path,
    *,
    runtime: str,
    session: str,
    policy: Policy | None = None,
    attended: bool = False,
) -> Callable[[ToolCall], Verdict]:
    """A judge for one session of one runtime, with a policy of one's own; ``place`` is where the audit is.
    Where it is ``attended``, a person can be asked."""
    asker = Asker(dialect=CONNECTION, capability=context.capability, runtime=runtime, session=session)

    def judged(call: ToolCall) -> Verdict:
        verdict = verdict_on(call, context, policy)
        verdict = settled(verdict, recorded=record(place, asker, call, verdict))
        return verdict if attended else unattended(verdict)

    return judged


def verdict_on(call: ToolCall, context: Context, policy: Policy | None = None) -> Verdict:
    """What the guard says, on the disk as it is."""
    try:
        return judge(call, context, Disk(), policy)
    except Exception:
        return FAILED


def settled(verdict: Verdict, *, recorded: bool) -> Verdict:
    """A verdict, as far as it holds: an allow that is not on record does not."""
    return verdict if recorded or verdict.decision != "allow" else UNRECORDED


def record(place: Path, asker: Asker, call: ToolCall | None, verdict: Verdict | None) -> bool:
    """Put a decision, or an event that needs none, on record; whether that worked."""
    try:
        digest, length = audit.digest(call) if call else ("", 0)
        audit.store(
            place,
            audit.Record(
                time=rfc3339(now()),
                event=asker.event,
                dialect=asker.dialect,
                runtime=asker.runtime,
                session=printable(asker.session, _LONGEST_NAME),
                tool=printable(call.tool, _LONGEST_NAME) if call else "",
                capability=asker.capability,
                decision=verdict.decision if verdict else None,
                rule=verdict.rule if verdict else "",
                digest=digest,
                length=length,
            ),
        )
    except Exception:
        return False
    return True
