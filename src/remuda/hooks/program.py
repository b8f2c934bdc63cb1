"""The hook as a program: a payload in, an answer out. What goes wrong on the way to a verdict is a deny."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import NoReturn, get_args

import msgspec

from remuda.core.clock import now, rfc3339
from remuda.core.paths import folders
from remuda.guard.judge import judge
from remuda.guard.model import Capability, Context, Verdict
from remuda.guard.paths import Disk
from remuda.guard.table import TABLE
from remuda.guard.tools import ToolCall
from remuda.hooks import audit
from remuda.hooks.answer import DIALECTS, SILENCE, Answer, Dialect, answer
from remuda.hooks.events import COMMANDS, Event, event_of
from remuda.hooks.payload import LARGEST, Payload, Refusal, read
from remuda.hooks.text import printable

SECONDS = 5
"""How long a hook may take; less than any CLI waits, for most of them run the tool when a hook is late."""

CAPABILITIES: tuple[str, ...] = get_args(Capability)
_ENDINGS = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LONGEST_NAME = 128
_WIRING = "Whoever set this hook up has to correct that."


class Request(msgspec.Struct, frozen=True):
    """How the hook is called: for an event, with a payload or none, in a dialect."""

    event: str = ""
    payload: str | None = None
    dialect: str = "claude"


def request_of(arguments: Sequence[str]) -> Request:
    """The request in ``EVENT [JSON] [--dialect NAME]``. One that cannot be understood is for no event."""
    places: list[str] = []
    dialect = "claude"
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.partition("=")
        if name == "--dialect":
            dialect = value if equals else next(rest, "")
        elif each.startswith("-"):
            return Request()
        else:
            places.append(each)
    if not 1 <= len(places) <= 2:
        return Request()
    return Request(places[0], places[1] if len(places) > 1 else None, dialect)


def run(request: Request) -> int:
    """Answer a request on standard output and standard error, in time; the exit code."""

    def give_up(_number: int, _frame: FrameType | None) -> NoReturn:
        """Leave from wherever this happens, at the latest when the record of it takes too long, too. Only a
        tool call is stopped by that: a session has to be able to end."""
        stops = event_of(request.event) in (None, "PreToolUse")
        given = answer(_LATE, _dialect(request)) if stops else SILENCE
        _print(given)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(given.code))
        signal.alarm(1)
        _record(request, _NOTHING, _LATE if stops else None, os.environ)
        os._exit(given.code)

    for each in _ENDINGS:
        signal.signal(each, give_up)
    signal.alarm(SECONDS)
    given = respond(request, _received(request), os.environ)
    signal.alarm(0)
    _print(given)
    return given.code


def respond(request: Request, received: Callable[[], bytes], environ: Mapping[str, str]) -> Answer:
    """The answer to a request, which is on record before it is given. Never raises."""
    event = event_of(request.event)
    payload = _payload(received)
    judged = event in (None, "PreToolUse") or payload.event == "PreToolUse"
    verdict = _verdict(request, event, payload, environ) if judged else None
    recorded = _record(request, payload, verdict, environ)
    if verdict is None:
        return SILENCE if recorded else Answer(SILENCE.stdout, _UNRECORDED.reason + "\n", SILENCE.code)
    return answer(verdict if recorded or verdict.decision != "allow" else _UNRECORDED, _dialect(request))


def _deny(rule: str, reason: str, hint: str = _WIRING) -> Verdict:
    return Verdict(decision="deny", rule=rule, reason=reason, hint=hint)


_LATE = _deny("hook.time", "the guard had to stop before it came to a verdict", "Say it more simply.")
_FAILED = _deny("guard.error", TABLE["guard.error"].reason, TABLE["guard.error"].hint)
_NOTHING = Payload(Refusal("it cannot be read"))
_UNRECORDED = _deny(
    "hook.audit", "the audit cannot be written", "Make the state folder of Remuda writable for its user."
)


def _dialect(request: Request) -> Dialect:
    return next((each for each in DIALECTS if each == request.dialect), "claude")


def _payload(received: Callable[[], bytes]) -> Payload:
    try:
        return read(received(), _here())
    except Exception:
        return _NOTHING


def _here() -> str:
    """The working folder; empty when there is none any more."""
    try:
        return os.getcwd()  # noqa: PTH109 - it need not be a path of its own
    except OSError:
        return ""


def _verdict(request: Request, event: Event | None, payload: Payload, environ: Mapping[str, str]) -> Verdict:
    """The guard's verdict, or a deny for what keeps it from one."""
    if event is None:
        return _deny("hook.event", f"there is no such hook event; there are: {', '.join(COMMANDS.values())}")
    if request.dialect not in DIALECTS:
        return _deny("hook.dialect", f"there is no such dialect; there are: {', '.join(DIALECTS)}")
    if isinstance(payload.call, Refusal):
        row = TABLE["guard.input"]
        return _deny("guard.input", row.reason.format_map({"what": payload.call.why}), row.hint)
    try:
        context = context_of(environ)
        return context if isinstance(context, Verdict) else judge(payload.call, context, Disk())
    except Exception:
        return _FAILED


def context_of(environ: Mapping[str, str]) -> Context | Verdict:
    """Who asks, and where, as whoever started the agent has said; a deny where that makes no sense."""
    capability = environ.get("REMUDA_CAPABILITY", "supervised")
    if capability not in CAPABILITIES:
        known = ", ".join(CAPABILITIES)
        return _deny("hook.context", f"REMUDA_CAPABILITY names no capability; there are: {known}")
    for name in ("REMUDA_WORKTREE", "REMUDA_PROJECT_ROOT"):
        if not environ.get(name, "/").startswith("/"):
            return _deny("hook.context", f"{name} is not an absolute path")
    return Context(
        capability=msgspec.convert(capability, Capability),
        worktree=environ.get("REMUDA_WORKTREE"),
        project_root=environ.get("REMUDA_PROJECT_ROOT"),
        branch_prefix=environ.get("REMUDA_BRANCH_PREFIX") or None,
        home=environ.get("HOME"),
    )


def _record(request: Request, payload: Payload, verdict: Verdict | None, environ: Mapping[str, str]) -> bool:
    """Put a decision, or an event that needs none, on record; whether that worked."""
    try:
        call = payload.call if isinstance(payload.call, ToolCall) else None
        mark, length = audit.digest(call) if call else ("", 0)
        capability = environ.get("REMUDA_CAPABILITY", "supervised")
        record = audit.Record(
            time=rfc3339(now()),
            event=event_of(request.event) or "unknown",
            dialect=_dialect(request),
            session=printable(payload.session, _LONGEST_NAME),
            tool=printable(call.tool, _LONGEST_NAME) if call else "",
            capability=capability if capability in CAPABILITIES else "unknown",
            decision=verdict.decision if verdict else None,
            rule=verdict.rule if verdict else "",
            digest=mark,
            length=length,
        )
        audit.store(audit.place(folders(environ)), record)
    except Exception:
        return False
    return True


def _received(request: Request) -> Callable[[], bytes]:
    """The payload: the argument, or else standard input up to a byte more than is understood."""

    def receive() -> bytes:
        if request.payload is not None:
            return os.fsencode(request.payload)
        with os.fdopen(0, "rb", closefd=False) as stream:
            return stream.read(LARGEST + 1)

    return receive


def _print(given: Answer) -> None:
    """Write an answer as far as anybody reads it; the exit code holds also when nobody does."""
    for handle, data in ((1, given.stdout), (2, given.stderr.encode())):
        try:
            written = 0
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError:
            continue
