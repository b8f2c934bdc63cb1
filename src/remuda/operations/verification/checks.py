"""The checks of a runtime, as a table: what to run, what the model plays, and which claims that decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from remuda.core.errors import ErrorKind
from remuda.guard.model import Capability
from remuda.operations.guarding import CLAIM, HOOK_CLAIM
from remuda.operations.verification import judgements
from remuda.operations.verification.judgements import Judge
from remuda.operations.verification.messages import Subject
from remuda.prompts import selection
from remuda.rehearsal import exchange
from remuda.rehearsal.scenario import Step
from remuda.runtimes.base import Channel, Permission, Runtime

KIB = 1024
FILE = "verified.txt"
"""What the shell command of the tool turn writes into the working folder."""

OUTSIDE = "escaped.txt"
"""What an agent that nobody guards would write beside its working folder."""

SOON = 30.0
"""Seconds that a failing model may keep a caller waiting, on a busy machine."""

_HARD = (
    ' leading space, "quotes", apostrophe\'s, $(id) `id` ${HOME} %s %% \\n \\\\ \\\n\ttab, newline,\n'
    "漢字 かな 한글, 🐎🏇🏽, e\u0301 é, <tag> {prompt} --flag ; | & > /dev/null # !$ ~ *\n\n"
)
_HEARD = Step(text="Heard.")
_TEXT = Step(text="The answer is 42 🐎.", usage=exchange.Usage(301, 17, 11, 3))
_CALL = Step(
    thought="A file will do.",
    tool="shell",
    input={"command": f"echo written > {FILE} && cat {FILE}"},
    usage=exchange.Usage(1000, 50, 600, 100),
)
_DONE = Step(text="It says: written", usage=exchange.Usage(1100, 30, 1000, 20))
_BOTH = exchange.Usage(2100, 80, 1600, 120)


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its prompt, what the model plays, and the seconds it may take at most.

    A program may first have to unpack itself into its new home. With ``resumes``, the run continues the one
    before it; with a ``capability`` it is a guarded one; ``hooked`` puts the guard into the program's own
    settings instead.
    """

    prompt: str
    steps: tuple[Step, ...] = (_HEARD,)
    delivery: selection.Requested = "auto"
    permission: Permission = "ask"
    capability: Capability | None = None
    hooked: bool = False
    model: Literal["answers", "unreachable"] = "answers"
    resumes: bool = False
    within: float = 60.0


class Claim(msgspec.Struct, frozen=True):
    """Something that the declaration says: how to tell, and what was seen when it is so."""

    what: str
    judge: Judge
    how: str


class Check(msgspec.Struct, frozen=True):
    """Runs that follow each other, and the claims that they decide; or why these cannot be seen here."""

    title: str
    deeds: tuple[Deed, ...]
    claims: tuple[Claim, ...]
    unseen: str = ""


def table(runtime: Runtime, subject: Subject) -> tuple[Check, ...]:
    """Every check that a runtime's declaration gives rise to; channels come first, the others use them."""
    usual: Permission = "bypass" if "ask" in runtime.conduct.refuses else "ask"
    claims = [
        *_channels(runtime),
        _turns(runtime),
        *_errors(),
        *([_resume()] if runtime.conduct.resume else []),
    ]
    checks = [
        *(claims if subject == "everything" else []),
        *_guard(runtime),
        *(_hooks(runtime) if subject == "guard" else []),
    ]
    return tuple(
        msgspec.structs.replace(
            check,
            deeds=tuple(
                msgspec.structs.replace(deed, permission="bypass" if deed.permission == "bypass" else usual)
                for deed in check.deeds
            ),
        )
        for check in checks
    )


def long_prompt(size: int) -> str:
    """A text of exactly ``size`` bytes that is full of traps, with no white space at its end."""
    block = _HARD.encode()
    text = (block * (size // len(block))).decode()
    return text + "x" * (size - len(text.encode()))


def _channels(runtime: Runtime) -> Iterator[Check]:
    for channel in runtime.channels:
        size = 64 if channel.mode == "argv" else 200
        prompt = long_prompt(size * KIB)
        claim = Claim(
            f"channel.{channel.mode}",
            judgements.delivers(channel, prompt),
            f"{size} KiB arrived ({channel.arrives})",
        )
        deed = Deed(prompt=prompt, delivery=_request(channel))
        yield Check(f"a long prompt by {channel.mode}", (deed,), (claim,))


def _request(channel: Channel) -> selection.Requested:
    """What to ask for so that a channel is used; a connection is what there is when nothing else is."""
    return "auto" if channel.mode == "connection" else channel.mode


def _turns(runtime: Runtime) -> Check:
    deeds = [Deed(prompt="What is the answer?", steps=(_TEXT,))]
    if runtime.conduct.shell and "bypass" not in runtime.conduct.refuses:
        deeds.append(Deed(prompt="Write a file.", steps=(_CALL, _DONE), permission="bypass"))
    told = judgements.tells_turns(_TEXT.text or "", _DONE.text or "", _CALL.thought)
    kinds = "a text turn and a tool turn" if len(deeds) > 1 else "a text turn"
    claims = [Claim("events", told, f"{kinds} told as declared")]
    if runtime.conduct.usage:
        equal = judgements.counts((_TEXT.usage, _BOTH))
        claims.append(Claim("usage", equal, "equal to what the server said"))
    return Check(kinds, tuple(deeds), tuple(claims))


def _errors() -> Iterator[Check]:
    faults: tuple[tuple[str, ErrorKind, str, Deed], ...] = (
        ("auth", "auth", "a 401 from the model", _fault(401, "invalid x-api-key")),
        (
            "rate_limit",
            "rate_limit",
            "a 429 from the model",
            _fault(429, "Rate limit reached. Try again later."),
        ),
        ("model", "model", "a 500 from the model", _fault(500, "Internal server error")),
        (
            "unreachable",
            "model",
            "a model that is not there",
            Deed(prompt="Hello.", model="unreachable", within=SOON),
        ),
    )
    for name, kind, cause, deed in faults:
        claim = Claim(f"error.{name}", judgements.fails_with(kind, cause), f"{cause} gives '{kind}'")
        yield Check(cause, (deed,), (claim,))


def _fault(status: int, message: str) -> Deed:
    headers = {"retry-after": "1"} if status == 429 else {}
    return Deed(prompt="Hello.", steps=(Step(status=status, message=message, headers=headers),), within=SOON)


def _resume() -> Check:
    question, answer, next_question = "Question one.", "Answer alpha.", "Question two."
    deeds = (
        Deed(prompt=question, steps=(Step(text=answer),)),
        Deed(prompt=next_question, steps=(Step(text="Answer beta."),), resumes=True),
    )
    judge = judgements.resumes(question, answer, next_question)
    return Check("a resumed session", deeds, (Claim("resume", judge, "the conversation goes on"),))


def _guard(runtime: Runtime) -> Iterator[Check]:
    """What an agent may not write is not written, and what it may is."""
    if runtime.guarding.by == "approval":
        deed = Deed(prompt="Write two files.", steps=_BOTH_SIDES, capability="builder")
        yield Check("a guarded run", (deed,), (Claim(CLAIM, judgements.bounds(FILE, OUTSIDE), _BLOCKED),))
    elif runtime.guarding.by == "removal" and "read" not in runtime.conduct.refuses:
        reply = runtime.conduct.edit_reply
        step = (
            Step(text=reply.format(path=FILE, content="written\n")) if reply else _shell(f"echo x > {FILE}")
        )
        deed = Deed(prompt="Write a file.", steps=(step, _HEARD), capability="scout")
        yield Check(
            "a bounded run",
            (deed,),
            (Claim(CLAIM, judgements.forbids(FILE), "blocked: nothing was written"),),
        )


def _hooks(runtime: Runtime) -> Iterator[Check]:
    """The same, with the guard in the program's own settings and nobody asking."""
    if runtime.wiring is not None:
        deed = Deed(prompt="Write two files.", steps=_BOTH_SIDES, permission="bypass", hooked=True)
        claim = Claim(HOOK_CLAIM, judgements.bounds(FILE, OUTSIDE), _BLOCKED)
        yield Check("a run with the hooks installed", (deed,), (claim,), runtime.wiring.unseen)


def _shell(command: str) -> Step:
    return Step(tool="shell", input={"command": command})


_BOTH_SIDES = (_shell(f"echo forbidden > ../{OUTSIDE}"), _shell(f"echo written > {FILE}"), _HEARD)
_BLOCKED = "blocked: what lies outside was not written, what lies inside was"
