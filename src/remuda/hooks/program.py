"""The hook as a program: a payload in, an answer out. What goes wrong on the way to a verdict is a deny.

Whichever way a hook is called, :func:`respond` answers: for ``remuda hook``, for the client, and in the
resident process for all clients.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import FrameType
from typing import NoReturn, get_args

import msgspec

from remuda.core.errors import ConfigError
from remuda.core.paths import folders
from remuda.guard.loading import Loader
from remuda.guard.model import Capability, Context, Verdict
from remuda.guard.table import TABLE
from remuda.guard.tools import ToolCall
from remuda.hooks import audit, wire
from remuda.hooks.answer import DIALECTS, SILENCE, Answer, Dialect, answer, granted
from remuda.hooks.asking import ENDINGS, SECONDS, folder, parse, put, received
from remuda.hooks.events import COMMANDS, Event, event_of
from remuda.hooks.judging import FAILED, GRANTED, UNRECORDED, Asker, record, settled, verdict_on
from remuda.hooks.payload import Payload, Refusal, read

CAPABILITIES: tuple[str, ...] = get_args(Capability)
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_LONGEST_NAME = 64
_OF_SESSIONS: frozenset[Event] = frozenset({"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"})
"""What a session tells about itself, as a peer."""

_WIRING = "Whoever set this hook up has to correct that."


class Request(msgspec.Struct, frozen=True):
    """How the hook is called: for an event, in a dialect, by a runtime, in a folder or right here."""

    event: str = ""
    dialect: str = "claude"
    runtime: str = ""
    cwd: str | None = None

    @property
    def of_session(self) -> bool:
        """Whether it is about a session as a peer, for which there has to be time."""
        return event_of(self.event) in _OF_SESSIONS

    @property
    def stops(self) -> bool:
        """Whether a tool waits for the answer. Only that is denied when something goes wrong: a session has
        to be able to end."""
        return event_of(self.event) in (None, "PreToolUse")


def main(arguments: Sequence[str]) -> int:
    """Answer a command line, with a verdict of this process; the exit code."""
    event, given, dialect, runtime = parse(arguments)
    return run(Request(event, dialect, runtime), lambda: received(given))


def run(request: Request, payload: Callable[[], bytes], seconds: float = SECONDS) -> int:
    """Answer a request on standard output and standard error, in time; the exit code. What was to be done
    after the answer is left undone where nobody took that."""

    def give_up(_number: int, _frame: FrameType | None) -> NoReturn:
        stop(request)

    for each in ENDINGS:
        signal.signal(each, give_up)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    given, after = _responded(request, payload, os.environ)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if _print(given):
        after()
    return given.code


def stop(request: Request) -> NoReturn:
    """Leave without a verdict, from wherever this happens, at the latest when the record of that takes too
    long as well."""
    given = late(request)
    _print(given)
    signal.signal(signal.SIGALRM, lambda *_: os._exit(given.code))
    signal.alarm(1)
    _recorded(request, _NOTHING, _LATE if request.stops else None, os.environ)
    os._exit(given.code)


def late(request: Request) -> Answer:
    """What is answered when there is no time for a verdict."""
    return answer(_LATE, _dialect(request)) if request.stops else SILENCE


def respond(request: Request, payload: Callable[[], bytes], environ: Mapping[str, str]) -> Answer:
    """The answer to a request about a tool call, which is on record before it is given; to any other event,
    that it is on record. Never raises."""
    data = _data(payload)
    understood = _understood(request, data)
    if not request.stops and understood.event != "PreToolUse":
        recorded = _recorded(request, understood, None, environ)
        return SILENCE if recorded else Answer(SILENCE.stdout, UNRECORDED.reason + "\n", SILENCE.code)
    return _judged(request, understood, data, environ)


def _responded(
    request: Request, payload: Callable[[], bytes], environ: Mapping[str, str]
) -> tuple[Answer, Callable[[], None]]:
    """The answer of a process that is there for this request only, and what to do once it is given: it has
    the time to look for messages to the session."""
    data = _data(payload)
    given, event = respond(request, lambda: data or b"", environ), event_of(request.event)
    if given is not SILENCE or event is None or data is None or not request.runtime:
        return given, _nothing
    if not request.of_session or _misused(request, environ):
        return given, _nothing
    from remuda.hooks.peering import Call, heard

    here = folder() if request.cwd is None else request.cwd
    call = Call(event=event, dialect=_dialect(request), runtime=request.runtime, cwd=here)
    said = heard(call, data, environ)
    return said.answer or given, said.after


def _nothing() -> None:
    """Nothing is left to do."""


def _understood(request: Request, data: bytes | None) -> Payload:
    return _NOTHING if data is None else read(data, folder() if request.cwd is None else request.cwd)


def _judged(request: Request, understood: Payload, data: bytes | None, environ: Mapping[str, str]) -> Answer:
    verdict = _verdict(request, understood, data or b"", environ)
    recorded = _recorded(request, understood, verdict, environ)
    attended = _capability(environ) == "supervised"
    return _said(settled(verdict, recorded=recorded), _dialect(request), attended=attended)


def _deny(rule: str, reason: str, hint: str = _WIRING) -> Verdict:
    return Verdict(decision="deny", rule=rule, reason=reason, hint=hint)


_LATE = _deny("hook.time", "the guard had to stop before it came to a verdict", "Say it more simply.")
_NOTHING = Payload(Refusal("it cannot be read"))


def _dialect(request: Request) -> Dialect:
    return next((each for each in DIALECTS if each == request.dialect), "claude")


def _data(payload: Callable[[], bytes]) -> bytes | None:
    try:
        return payload()
    except Exception:
        return None


def _said(verdict: Verdict, dialect: Dialect, *, attended: bool) -> Answer:
    """A verdict in a CLI's words. What another judge grants in so many words is passed on; the guard itself
    grants nothing."""
    if verdict.decision == "allow" and verdict.rule == GRANTED:
        return granted(verdict, dialect)
    return answer(verdict, dialect, attended=attended)


def _verdict(request: Request, payload: Payload, data: bytes, environ: Mapping[str, str]) -> Verdict:
    """The verdict of all judges, or a deny for what keeps them from one."""
    if wrong := _misused(request, environ):
        return wrong
    if isinstance(payload.call, Refusal):
        row = TABLE["guard.input"]
        return _deny("guard.input", row.reason.format_map({"what": payload.call.why}), row.hint)
    context = context_of(environ)
    if isinstance(context, Verdict):
        return context
    try:
        return _ruling(payload.call, context, data, environ)
    except ConfigError as error:
        return _deny("hook.config", error.message, error.hint)
    except Exception:
        return FAILED


def _ruling(call: ToolCall, context: Context, data: bytes, environ: Mapping[str, str]) -> Verdict:
    """What the guard says, with the policy of the folder, and the other judges that the user has."""
    file = folders(environ).config_file
    policy = _loader(str(file), context.home).load(call.cwd, context)
    if isinstance(policy, Verdict):
        return policy
    verdict = verdict_on(call, context, policy)
    if not file.exists():
        return verdict
    from remuda.core.config import load_user
    from remuda.hooks.judges import ruling

    others = load_user(file).hooks
    return ruling(verdict, others, data, wire.carried(environ), call.cwd) if others.judges else verdict


@lru_cache(maxsize=4)
def _loader(file: str, home: str | None) -> Loader:
    """Who reads policies, and in the resident process each of them once."""
    return Loader(file, home)


def _misused(request: Request, environ: Mapping[str, str]) -> Verdict | None:
    """That the hook is called wrongly, if it is."""
    if event_of(request.event) is None:
        return _deny("hook.event", f"there is no such hook event; there are: {', '.join(COMMANDS.values())}")
    if request.dialect not in DIALECTS:
        return _deny("hook.dialect", f"there is no such dialect; there are: {', '.join(DIALECTS)}")
    if not (_NAME.issuperset(request.runtime) and len(request.runtime) <= _LONGEST_NAME):
        return _deny("hook.runtime", "this is no name of a runtime")
    if wire.engine(environ) not in ("auto", "python"):
        return _deny("hook.engine", f"{wire.ENGINES[0]} names no engine; there are: auto, python, rust")
    return None


def _capability(environ: Mapping[str, str]) -> str:
    """For whom to judge: a person at their own agent, where nobody has said otherwise."""
    return environ.get("REMUDA_CAPABILITY", "supervised")


def context_of(environ: Mapping[str, str]) -> Context | Verdict:
    """Who asks, and where, as whoever started the agent has said; a deny where that makes no sense."""
    capability = _capability(environ)
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
        protected=folders(environ).guarded,
    )


def _recorded(
    request: Request, payload: Payload, verdict: Verdict | None, environ: Mapping[str, str]
) -> bool:
    """Put a decision, or an event that needs none, on record; whether that worked."""
    capability = _capability(environ)
    asker = Asker(
        event=event_of(request.event) or "unknown",
        dialect=_dialect(request),
        runtime=request.runtime if _NAME.issuperset(request.runtime[:_LONGEST_NAME]) else "unknown",
        session=payload.session,
        capability=capability if capability in CAPABILITIES else "unknown",
    )
    call = payload.call if isinstance(payload.call, ToolCall) else None
    try:
        place = audit.place(folders(environ))
    except Exception:
        return False
    return record(place, asker, call, verdict)


def _print(given: Answer) -> bool:
    """Say it; whether the CLI has it."""
    said = put(1, given.stdout)
    put(2, given.stderr.encode())
    return said
