"""Other judges than the guard: programs of the user's that get the same payload and answer as hooks do.

They are asked all at once. One that fails, is late, or says what nobody understands counts as one that
denies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from remuda.core.config import HooksConfig
from remuda.guard.model import Decision, Verdict
from remuda.hooks.aggregation import Said, aggregate
from remuda.hooks.judging import GRANTED
from remuda.hooks.text import printable

SECONDS = 2.0
"""How long they may take, all together; less than the resident process has for an answer."""

RULE = "hook.judge"
_LONGEST = 1000
_MOST = 1024 * 1024
_OLDER = {"block": "deny", "deny": "deny", "ask": "ask", "approve": "allow", "allow": "allow"}
"""The decisions of hooks in their older form, and what they amount to."""


def ruling(
    verdict: Verdict, settings: HooksConfig, payload: bytes, environ: Mapping[str, str], cwd: str
) -> Verdict:
    """What the guard's verdict and the answers of the other judges amount to. An explicit allow is only
    passed on by the documented precedence: it would override what the CLI itself wants to ask about."""
    guard: Said = {} if verdict.decision == "allow" else {"permissionDecision": verdict.decision}
    others = heard(settings.judges, payload, environ, cwd)
    winner = aggregate([guard], others, settings.precedence)
    if winner is guard or not winner:
        return verdict
    decision = msgspec.convert(winner["permissionDecision"], Decision)
    grants = decision == "allow" and settings.precedence == "documented"
    return Verdict(decision=decision, rule=GRANTED if grants else RULE, reason=_reason(winner))


def heard(judges: Sequence[str], payload: bytes, environ: Mapping[str, str], cwd: str) -> list[Said]:
    """What each judge says, in their order. Never raises."""
    end = time.monotonic() + SECONDS
    asked = [_asked(judge, payload, environ, cwd) for judge in judges]
    pairs = zip(judges, asked, strict=True)
    return [_failed(judge) if each is None else _answer(judge, each, end) for judge, each in pairs]


class _Asked(NamedTuple):
    """A judge that is at work, and the files it writes to."""

    process: subprocess.Popen[bytes]
    stdout: int
    stderr: int


def _asked(judge: str, payload: bytes, environ: Mapping[str, str], cwd: str) -> _Asked | None:
    """Start a judge in a session of its own; its streams are files in memory, on which nobody has to wait."""
    handles = [os.memfd_create("judge", os.MFD_CLOEXEC) for _ in range(3)]
    os.write(handles[0], payload)
    os.lseek(handles[0], 0, os.SEEK_SET)
    try:
        process = subprocess.Popen(
            [judge],
            stdin=handles[0],
            stdout=handles[1],
            stderr=handles[2],
            env=dict(environ),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError:
        for handle in handles:
            os.close(handle)
        return None
    os.close(handles[0])
    return _Asked(process, handles[1], handles[2])


def _answer(judge: str, asked: _Asked, end: float) -> Said:
    """What a judge says, once it has ended; whatever it has started ends with it."""
    try:
        code = asked.process.wait(max(end - time.monotonic(), 0))
        return _said(judge, code, _written(asked.stdout), _written(asked.stderr))
    except subprocess.TimeoutExpired:
        return _denial(f"the judge {judge} was late")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(asked.process.pid, signal.SIGKILL)
        asked.process.wait()
        os.close(asked.stdout)
        os.close(asked.stderr)


def _written(handle: int) -> bytes:
    return os.pread(handle, _MOST + 1, 0)


def _said(judge: str, code: int, stdout: bytes, stderr: bytes) -> Said:
    """What an exit code and an output amount to: exit code 2 denies whatever is printed."""
    if code not in (0, 2) or len(stdout) > _MOST:
        return _failed(judge)
    try:
        document = msgspec.json.decode(stdout, type=dict[str, object]) if stdout.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        document = None
    if code == 2:
        told = document and _flat(document)
        words = stderr.decode("utf-8", "replace").strip() or (_reason(told) if told else "")
        return _denial(words or f"the judge {judge} denies")
    flat = None if document is None else _flat(document)
    return _failed(judge) if flat is None else flat


def _flat(document: Mapping[str, object]) -> Said | None:
    """An answer in the form that is aggregated; None where it decides what nobody understands."""
    inner = document.get("hookSpecificOutput")
    said = {**document, **inner} if isinstance(inner, Mapping) else dict(document)
    if "permissionDecision" not in said and isinstance(older := said.get("decision"), str):
        said["permissionDecision"] = _OLDER.get(older.lower(), older)
    if said.get("permissionDecision") not in (None, "allow", "deny", "ask"):
        return None
    return said


def _reason(said: Said) -> str:
    names = ("permissionDecisionReason", "message", "reason")
    words = next((word for name in names if isinstance(word := said.get(name), str) and word.strip()), "")
    return printable(words.strip() or "another judge says so", _LONGEST)


def _denial(words: str) -> Said:
    return {"permissionDecision": "deny", "message": printable(words, _LONGEST)}


def _failed(judge: str) -> Said:
    return _denial(f"the judge {judge} failed")
