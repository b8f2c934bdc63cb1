"""Ask the guard what may become of a tool call, and why; one call, or many from a file of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from remuda.core.errors import UsageError
from remuda.guard.judge import Hearing, hear
from remuda.guard.loading import Loader, line_of_origin
from remuda.guard.model import AnyEffect, Capability, Context, Decision, Verdict
from remuda.guard.paths import Disk, Place
from remuda.guard.policy import explain as in_words
from remuda.guard.table import COLUMNS, TABLE, Finding
from remuda.guard.tools import ToolCall
from remuda.hooks.wire import LARGEST
from remuda.operations.world import World

CAPABILITIES: tuple[Capability, ...] = get_args(Capability)


class Case(msgspec.Struct, frozen=True):
    """A tool call to be judged, as a line of a batch has it. ``command`` stands for a shell's input."""

    id: str | int | None = None
    tool: str = "Bash"
    input: object = None
    command: str | None = None
    cwd: str | None = None
    context: Context | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as a person asks about it: a command, or the input of a tool as JSON."""

    command: str | None = None
    tool: str = "Bash"
    input: str | None = None
    capability: Capability = "supervised"
    worktree: str | None = None
    branch_prefix: str | None = None
    cwd: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """The guard's answer to a case."""

    id: str | int | None
    decision: Decision
    rule: str
    reason: str
    hint: str
    effects: tuple[AnyEffect, ...]


class Step(msgspec.Struct, frozen=True):
    """One effect on the way to a verdict: where its paths lead, the rows it touches and what they say, and
    the rows that a rule of one's own has lifted."""

    effect: AnyEffect
    decision: Decision
    places: tuple[Place, ...]
    rows: list[Rule]
    lifted: list[Rule]


class Rule(msgspec.Struct, frozen=True):
    """A row of the table that an effect touches, with what it says for each capability. ``file`` and ``line``
    are where a rule of one's own stands that has added or lifted it."""

    rule: str
    reason: str
    hint: str
    decisions: dict[Capability, Decision]
    file: str | None = None
    line: int | None = None


class Explanation(msgspec.Struct, frozen=True):
    """An answer with the sources that a shell would get and every step to the verdict; ``own`` is what rules
    of one's own find about the call as such."""

    answer: Answer
    context: Context
    cwd: str
    sources: tuple[str, ...]
    steps: list[Step]
    own: list[Rule]


def case(world: World, question: Question) -> Case:
    """The case that a question describes; folders are meant from where it is asked."""
    if (question.command is None) == (question.input is None):
        raise UsageError("say what to judge: a command or an input", 'As in: remuda guard check "git push"')
    try:
        given: object = None if question.input is None else msgspec.json.decode(question.input)
    except msgspec.DecodeError as error:
        raise UsageError(f"the input is not JSON: {error}", 'Say it like {"file_path": "x"}.') from None
    worktree = str(world.cwd / question.worktree) if question.worktree else None
    return Case(
        tool=question.tool,
        input=given,
        command=question.command,
        cwd=question.cwd,
        context=Context(
            capability=question.capability, worktree=worktree, branch_prefix=question.branch_prefix
        ),
    )


def loader(world: World, policy: str | None = None) -> Loader:
    """What loads the policies that hold for calls; ``policy`` is a file to be tried out in place of one's own
    configuration."""
    own = str(world.cwd / policy) if policy else str(world.folders.config_file)
    return Loader(own, world.environ.get("HOME"))


def check(world: World, case: Case, policies: Loader | None = None) -> Answer:
    """Judge one tool call, with policies of one's own or by the table alone."""
    return _answer(case, _hear(world, case, policies)[0])


def explain(world: World, case: Case, policies: Loader) -> Explanation:
    """Judge one tool call, and show every step of that."""
    hearing, context = _hear(world, case, policies)
    return Explanation(
        answer=_answer(case, hearing),
        context=context,
        cwd=_cwd(world, case),
        sources=hearing.sources,
        steps=[
            Step(
                each.effect,
                each.decision,
                each.places,
                [_rule(found, context) for found in each.findings],
                [_rule(found, context) for found in each.lifted],
            )
            for each in hearing.weighed
        ],
        own=[_rule(found, context) for found in hearing.own],
    )


def batch(world: World, lines: Iterable[bytes], policies: Loader) -> Iterator[Answer]:
    """Judge the tool calls of a JSON-lines stream, in order. A line that is no tool call is denied."""
    decoder = msgspec.json.Decoder(Case)
    for line in lines:
        if not line.strip():
            continue
        try:
            if len(line) > LARGEST:
                raise msgspec.DecodeError(f"it is longer than {LARGEST} bytes")
            case = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield _refused(line, str(error))
        else:
            yield check(world, case, policies)


def _hear(world: World, case: Case, policies: Loader | None) -> tuple[Hearing, Context]:
    """What the guard says, and the context that it was said in."""
    given = (
        case.input
        if case.input is not None
        else {"command": case.command}
        if case.command is not None
        else {}
    )
    context, cwd = _context(world, case), _cwd(world, case)
    policy = policies.load(cwd, context) if policies else None
    if isinstance(policy, Verdict):
        return Hearing(policy), context
    hearing = hear(ToolCall(case.tool, given, cwd), context, Disk(), policy)
    return hearing, context if policy is None else policy.completed(context)


def _cwd(world: World, case: Case) -> str:
    return str(world.cwd / case.cwd) if case.cwd else str(world.cwd)


def _context(world: World, case: Case) -> Context:
    """The context, with the home of whoever asks where it names none."""
    context = case.context or Context()
    return context if context.home else msgspec.structs.replace(context, home=world.environ.get("HOME"))


def _answer(case: Case, hearing: Hearing) -> Answer:
    verdict = hearing.verdict
    return Answer(case.id, verdict.decision, verdict.rule, verdict.reason, verdict.hint, verdict.effects)


def _rule(finding: Finding, context: Context) -> Rule:
    row = TABLE[finding.rule]
    reason, hint = in_words(finding, context, context.worktree)
    decisions = {name: row.decision(name) for name in COLUMNS}
    if not finding.origin:
        return Rule(finding.rule, reason, hint, decisions)
    return Rule(finding.rule, reason, hint, decisions, finding.origin, line_of_origin(finding.origin))


class _Named(msgspec.Struct):
    id: str | int | None = None


def _refused(line: bytes, why: str) -> Answer:
    """The answer to a line that cannot be understood, with its id if that at least can."""
    try:
        name = msgspec.json.decode(line, type=_Named).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        name = None
    row = TABLE["guard.input"]
    return Answer(name, "deny", "guard.input", row.reason.format_map({"what": why}), row.hint, ())
