"""Whether what a run gave is what the runtime's declaration says: pure functions, each with its complaint.

A complaint is a sentence for a person; None means that the claim holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.events import Event, MessageChunk, Result, ThoughtChunk, ToolCall, ToolCallUpdate, Usage
from remuda.rehearsal import exchange
from remuda.rehearsal.journal import Heard
from remuda.runtimes.base import Arrival, Channel, Conduct, Runtime

LONGEST = 300
"""Characters that are told of what a program itself has said."""


class Seen(msgspec.Struct, frozen=True):
    """What one run gave: its events, its result, what the model heard, the file it was to write, and the
    files that it was not to write."""

    events: tuple[Event, ...]
    result: Result
    heard: tuple[Heard, ...]
    written: str | None
    escaped: bool = False

    @property
    def kinds(self) -> list[str]:
        """The kinds of the updates, in order; chunks that follow each other count as one."""
        updates = [event.update for event in self.events if event.update is not None]
        names = [str(type(update).__struct_config__.tag) for update in updates]
        return [name for name, _ in groupby(name for name in names if name != "usage_update")]


Judge = Callable[[Runtime, Sequence[Seen]], str | None]


def hangs(seen: Seen) -> str | None:
    """The complaint about a run that was ended because it took too long."""
    error = seen.result.error
    return f"{error.message}: the program hangs" if error and error.kind == "timeout" else None


def _failure(seen: Sequence[Seen]) -> str | None:
    error = next((run.result.error for run in seen if run.result.error), None)
    return f"the run failed ({error.kind}): {_plain(error.message)}" if error else None


def _plain(text: str) -> str:
    """What a program said, as one line that is not too long and cannot steer a terminal."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def arrives(how: Arrival, heard: str, sent: str) -> bool:
    """Whether the model heard what was sent."""
    match how:
        case "exact":
            return heard == sent
        case "trimmed":
            return sent.strip() in heard
        case "contained":
            return sent in heard


def delivers(channel: Channel, prompt: str) -> Judge:
    """A channel is judged by what the model heard, whatever became of the run."""

    def judge(runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        sent = runtime.disarm(prompt)
        heard = [request.prompt for request in seen[0].heard if request.api]
        if any(arrives(channel.arrives, text, sent) for text in heard):
            return None
        return _lost(channel, sent, heard, _failure(seen))

    return judge


def _lost(channel: Channel, sent: str, heard: list[str], failure: str | None) -> str:
    size = len(sent.encode())
    if not heard:
        return f"a prompt of {size} bytes by {channel.mode} never reached the model" + (
            f": {failure}" if failure else ""
        )
    nearest = max(heard, key=len)
    return (
        f"of a prompt of {size} bytes by {channel.mode} the model heard {len(nearest.encode())} bytes, "
        "and not the same"
    )


def tells_turns(text: str, tool: str, thought: str) -> Judge:
    """A turn of text, and one that uses the shell, where the runtime has one."""

    def judge(runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        return _text_turn(seen[0], text) or (
            _tool_turn(runtime.conduct, seen[1], tool, thought) if len(seen) > 1 else None
        )

    return judge


def _text_turn(run: Seen, answer: str) -> str | None:
    return _failure([run]) or _numbering(run) or _story(run, ["agent_message_chunk"], answer)


def _tool_turn(conduct: Conduct, run: Seen, answer: str, thought: str) -> str | None:
    thoughts = ["agent_thought_chunk"] if conduct.tells_thoughts else []
    tools = ["tool_call", "tool_call_update"] if conduct.tells_tools else []
    complaint = (
        _failure([run])
        or _numbering(run)
        or ("the shell command that the model asked for was not run" if run.written is None else None)
        or _story(run, [*thoughts, *tools, "agent_message_chunk"], answer)
        or (_tool_call(run) if tools else None)
    )
    told = _text(run, ThoughtChunk)
    return complaint or (
        f"the model's thought was told as {_plain(told)!r}" if thoughts and told != thought else None
    )


def _text(run: Seen, kind: type[MessageChunk] | type[ThoughtChunk]) -> str:
    return "".join(event.update.content.text for event in run.events if isinstance(event.update, kind))


def _numbering(run: Seen) -> str | None:
    whole = [event.seq for event in run.events] == list(range(1, len(run.events) + 1))
    return None if whole else "the events are not numbered without a gap"


def _story(run: Seen, kinds: list[str], answer: str) -> str | None:
    if run.kinds != kinds:
        return f"the turn told {', '.join(run.kinds) or 'nothing'} instead of {', '.join(kinds)}"
    if not run.result.text == _text(run, MessageChunk) == answer:
        return "the answer is not what the model said"
    return None


def _tool_call(run: Seen) -> str | None:
    updates = [event.update for event in run.events]
    calls = [update for update in updates if isinstance(update, ToolCall)]
    outcomes = [update for update in updates if isinstance(update, ToolCallUpdate)]
    if (len(calls), len(outcomes)) != (1, 1):
        return f"one shell command was told as {len(calls)} calls with {len(outcomes)} outcomes"
    call, outcome = calls[0], outcomes[0]
    if call.kind != "execute" or outcome.tool_call_id != call.tool_call_id or outcome.status != "completed":
        return f"a shell command that succeeded was told as {call.kind}, {outcome.status}"
    output = "".join(part.content.text for part in outcome.content)
    return None if (run.written or "").strip() in output else "the output of the shell command was not told"


def counts(said: Sequence[exchange.Usage]) -> Judge:
    """The tokens of each turn are those that the server named, as far as the runtime can tell them."""

    def judge(runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        if failure := _failure(seen):
            return failure
        for run, tokens in zip(seen, said, strict=False):
            expected = _counted(runtime.conduct, tokens)
            if run.result.usage != expected:
                return f"the server said {_numbers(expected)}, the runtime told {_numbers(run.result.usage)}"
        return None

    return judge


def _counted(conduct: Conduct, said: exchange.Usage) -> Usage | None:
    if not conduct.usage:
        return None
    return Usage(
        said.input,
        said.output,
        said.cache_read if conduct.cache_reads else 0,
        said.cache_write if conduct.cache_writes else 0,
    )


def _numbers(usage: Usage | None) -> str:
    """Tokens in a few words: in, out, read from and written to the cache."""
    if usage is None:
        return "nothing"
    return (
        f"{usage.input_tokens} in, {usage.output_tokens} out, "
        f"{usage.cached_read_tokens} and {usage.cached_write_tokens} cached"
    )


def fails_with(kind: ErrorKind, cause: str) -> Judge:
    """A failing model gives one kind of error."""

    def judge(_runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        error = seen[0].result.error
        if error is None:
            return f"{cause} was taken for a success"
        return None if error.kind == kind else f"{cause} gave '{error.kind}' instead of '{kind}'"

    return judge


def resumes(question: str, answer: str, next_question: str) -> Judge:
    """The second run continues the conversation of the first."""

    def judge(_runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        if failure := _failure(seen):
            return failure
        first, second = seen
        if second.result.runtime_session != first.result.runtime_session:
            return "the second run got a session of its own"
        body = next((request.body or "" for request in reversed(second.heard) if request.api), "")
        places = [body.find(question), body.find(answer), body.rfind(next_question)]
        told = min(places) >= 0 and places == sorted(places)
        return None if told else "the model did not hear the earlier conversation again"

    return judge


def bounds(inside: str, outside: str) -> Judge:
    """A guarded run writes the file inside its worktree, and not the one outside."""

    def judge(runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        run = seen[0]
        if run.escaped:
            return f"not blocked: {outside} was written outside the worktree"
        if (error := run.result.error) and error.kind == "refused":
            return f"hooks not loaded: {_plain(error.message)}"
        if failed := _failure(seen):
            return failed
        if run.written is None and runtime.conduct.builder_writes:
            return f"{inside} was not written, although the guard allows it"
        return None

    return judge


def forbids(file: str) -> Judge:
    """A bounded run writes nothing."""

    def judge(_runtime: Runtime, seen: Sequence[Seen]) -> str | None:
        return f"not blocked: {file} was written" if seen[0].written is not None else _failure(seen)

    return judge
