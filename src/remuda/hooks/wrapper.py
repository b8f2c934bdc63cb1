"""The text of a hook program: a shell script around the guard that turns its every failure into a deny.

Most CLIs run the tool when a hook crashes, is late or is not there. The script passes on an answer only if it
is one, says the CLI's own deny in all other cases, and looks for nothing on PATH.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import msgspec

from remuda.guard.model import Verdict
from remuda.hooks.answer import DENIED, SILENCE, Dialect, answer, openings
from remuda.hooks.events import COMMANDS, Event

PATIENCE, GRACE = 10, 2
"""Seconds until the guard is told to stop, and then until it is killed; it gives up by itself before that."""

_FAILED = Verdict(
    decision="deny",
    rule="hook.failed",
    reason="the guard could not be asked, or gave no answer",
    hint="Look with 'remuda guard status'; 'remuda guard install' puts the hook program right.",
)

_HEAD = """\
#!/bin/sh
# Remuda's guard for {runtime}. Made by 'remuda guard install'; 'remuda guard remove' takes it away.
unset -f printf
unset ENV BASH_ENV
"""

_JUDGED = """\
deny() {{
  printf '%s\\n' {deny}
  printf '%s\\n' {words} >&2
  exit {denied}
}}
trap deny HUP INT QUIT PIPE ALRM TERM USR1 USR2
said=$({command})
code=$?
case $code:$said in
  {granted}) ;;
  *) deny ;;
esac
printf '%s\\n' "$said"
exit $code
"""

_UNJUDGED = """\
said=$({command} 2>/dev/null)
case $said in
  '{{'*'}}') printf '%s\\n' "$said" ;;
  *) printf '%s\\n' {silence} ;;
esac
exit 0
"""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """For which event of which runtime a program is, and the dialect that its CLI understands."""

    runtime: str
    event: Event
    dialect: Dialect


def command(call: Call) -> list[str]:
    """What the script runs: the guard, by absolute paths, with a Python that nothing outside configures."""
    client = Path(__file__).with_name("client.py")
    start = ("-I", "-S", str(client)) if client.is_file() else ("-I", "-m", "remuda.hooks")
    timeout = _timeout()
    return [
        *((timeout, "-k", str(GRACE), str(PATIENCE)) if timeout else ()),
        *(sys.executable, *start, COMMANDS[call.event]),
        *("--dialect", call.dialect, "--runtime", call.runtime),
    ]


def _timeout() -> str | None:
    """The system's own ``timeout``, wherever PATH points."""
    places = (os.confstr("CS_PATH") or "/usr/bin:/bin").split(os.pathsep)
    found = (Path(place, "timeout") for place in places if place.startswith("/"))
    return next((str(path) for path in found if os.access(path, os.X_OK)), None)


def script(call: Call) -> str:
    """The program's text. A call that nobody judges never fails: a session has to begin and to end."""
    fields = {"command": shlex.join(command(call))}
    head = _HEAD.format(runtime=call.runtime)
    silence = SILENCE.stdout.decode().strip()
    if call.event != "PreToolUse":
        return head + _UNJUDGED.format(**fields, silence=shlex.quote(silence))
    refusal = answer(_FAILED, call.dialect)
    granted = [
        shlex.quote(f"{SILENCE.code}:{silence}"),
        *(f"{shlex.quote(f'{code}:{text}')}*'}}'" for code, text in openings(call.dialect)),
    ]
    return head + _JUDGED.format(
        **fields,
        deny=shlex.quote(refusal.stdout.decode().strip()),
        words=shlex.quote(refusal.stderr.strip()),
        denied=DENIED,
        granted=" | ".join(granted),
    )
